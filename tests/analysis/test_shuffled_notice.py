"""The notice of a server: epsilon against it over all batches, beside what both together reach."""

from __future__ import annotations

from fractions import Fraction

import pytest

from veilcount_analysis.privacy.shuffled import composed_epsilon, full_notice
from veilcount_analysis.privacy.shuffled.composed_notice import epsilon_in_all
from veilcount_shared.notice import Notice, notice

from ..notice_definitions import COLLECTIONS
from ..properties.definition_harness import parse_definition

THEME = parse_definition(
    'values = ["light", "dark", "system"]\nmodel = "shuffled"\nepsilon = 4\n'
    "batch = {epsilon = 1, delta = 1e-6, covers = 142}"
)


def text(shown: Notice) -> str:
    return " ".join(part.text for part in shown.texts())


def test_a_year_of_batches_is_stated_rounded_up_after_what_both_together_reach() -> None:
    """Of four cells and 142 covers: 3.65 in 12 months, where the plain sum is 12."""
    stated = text(full_notice(THEME, shuffler="Example Trust"))
    exact = composed_epsilon(THEME.mechanism, 142, 12, Fraction(1, 10**6))

    assert exact <= (epsilon_in_all(THEME) or 0) < exact + Fraction(1, 100)
    assert stated.index("epsilon 4 a report, 48 in all 12") < stated.index(
        "1 a report, 3.65 in all"
    )
    assert "run by Example Trust" in stated


@pytest.mark.parametrize("name", ["local", "batched", "mixed", "removable", "trend"])
def test_where_covers_promise_nothing_the_notice_is_that_of_the_device(name: str) -> None:
    collection = COLLECTIONS[name]

    assert epsilon_in_all(collection) is None
    assert full_notice(collection, relay="Ada") == notice(collection, relay="Ada")


def test_a_plain_sum_of_batches_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: epsilon times batches, which says more than is lost."""
    monkeypatch.setattr(
        "veilcount_analysis.privacy.shuffled.composed_notice.composed_epsilon",
        lambda mechanism, covers, batches, delta: Fraction(batches),
    )
    epsilon_in_all.cache_clear()

    with pytest.raises((AssertionError, ValueError)):
        test_a_year_of_batches_is_stated_rounded_up_after_what_both_together_reach()
    epsilon_in_all.cache_clear()
