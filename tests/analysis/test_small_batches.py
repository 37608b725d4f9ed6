"""Small batches, enumerated over the randomness of devices and shuffler: every bound is one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from fractions import Fraction
from math import exp

import pytest

from veilcount_analysis.audit import small_batches
from veilcount_analysis.audit.batch_bugs import BATCH_BUGS, honest_batch
from veilcount_analysis.audit.small_batches import (
    SmallBatch,
    TooManyOutcomesError,
    check_batches,
    enumerated,
    small_batch,
)
from veilcount_analysis.audit.support_classes import ClassAudit, audit_classes, class_batch
from veilcount_analysis.mechanisms import handler_of
from veilcount_analysis.privacy.shuffled import cover_delta
from veilcount_analysis.privacy.shuffled.honest import honest_delta
from veilcount_client.testing import SeededRandomSource
from veilcount_shared import Collection, RandomSource, parse_collections
from veilcount_shared.composition import Overlap
from veilcount_shared.mechanisms import HashedStrings, SubsetSelection

ONE, FOUR = Fraction(1), Fraction(4)
PUBLIC = 'presence = "public"'
SHAPES = {
    "boolean": "boolean = true",
    "values": 'values = ["a", "b", "c"]',
    "mean": f'range = [0, 9]\nmeasure = "mean"\n{PUBLIC}',
    "distribution": f'range = [0, 9]\nmeasure = "distribution"\n{PUBLIC}',
    "ranges": f'range = [0, 9]\nmeasure = "ranges"\n{PUBLIC}',
    "features": f'features = {{a = [0, 1], b = [0, 1]}}\nmeasure = "moments"\n{PUBLIC}',
    "tables": f"questions = {{a = [1, 2], b = [1, 2], c = [1, 2, 3]}}\ntables = true\n{PUBLIC}",
    "strings": f'values = "open"\n{PUBLIC}',
    "many": "values = " + json.dumps([f"v{number}" for number in range(256)]),
}


def collection(shape: str) -> Collection:
    text = (
        f'app = "acme"\n[it]\nquestion = "Which?"\n{SHAPES[shape]}\nmodel = "shuffled"\n'
        'epsilon = 4\nunit = "month"\nbatch = {epsilon = 1, delta = 1e-6, covers = 500}\n'
        "from = 2026-12-01\nuntil = 2027-12-01\n"
    )
    return parse_collections(text, lambda _: ())["it"]


def of_values(k: int, epsilon: Fraction) -> tuple[SubsetSelection, SmallBatch]:
    mechanism = SubsetSelection.for_epsilon(epsilon, k, 1)
    reports = tuple(
        enumerated(lambda source, x=x: mechanism.randomize(x, source))  # type: ignore[misc] # bound now
        for x in range(k)
    )
    return mechanism, SmallBatch(reports, enumerated(mechanism.cover))


@pytest.mark.parametrize("k", [2, 3, 4])
@pytest.mark.parametrize("devices", [1, 2, 3, 4])
def test_covers_alone_bound_every_data_set(k: int, devices: int) -> None:
    """Whatever other devices send. Planted: a bound that counts a cover more than there is."""
    mechanism, batch = of_values(k, FOUR if devices < 4 else ONE)
    overlaps, epsilon = handler_of(mechanism).overlaps(), float(mechanism.epsilon) / 2
    for covers in range(4):
        exact = batch.delta(Fraction(exp(epsilon)), covers, devices)

        assert exact <= cover_delta(overlaps, covers, epsilon)
        if devices == 1:
            assert exact > cover_delta(overlaps, covers + 1, epsilon)


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("devices", [2, 3, 4])
def test_honest_devices_bound_every_data_set_of_theirs(k: int, devices: int) -> None:
    mechanism, batch = of_values(k, ONE)
    overlaps, epsilon = handler_of(mechanism).overlaps(), 0.25
    for covers in range(3):
        exact = batch.delta(Fraction(exp(epsilon)), covers, devices)

        assert exact <= honest_delta(overlaps, devices, covers, epsilon)
        assert exact > honest_delta(overlaps, devices + 4, covers, epsilon), (
            "planted: counted twice"
        )


@pytest.mark.parametrize("shape", [shape for shape in SHAPES if shape not in {"strings", "many"}])
def test_the_bounds_of_each_kind_hold_in_small_batches(shape: str) -> None:
    checks = check_batches(collection(shape))

    assert {check.covers for check in checks} == {0, 1, 2, 3}
    assert [check for check in checks if not check.holds] == []
    assert max(check.exact / check.bound for check in checks) > 0.5, "and say most of it"


# -- by classes of messages ------------------------------------------------------------------------

SAMPLES, ALPHA = 4000, 1e-6  # of each false alarm; the source of randomness is seeded


def audited(shape: str) -> ClassAudit:
    audit = audit_classes(collection(shape), SeededRandomSource(1), SAMPLES, ALPHA)
    assert audit is not None
    return audit


@pytest.mark.parametrize("shape", ["strings", "many"])
def test_what_has_too_many_outcomes_is_counted_by_classes(shape: str) -> None:
    with pytest.raises(TooManyOutcomesError, match="outcomes of one report"):
        small_batch(collection(shape))
    audit = audited(shape)

    assert not audit.deviation
    assert {check.covers for check in audit.checks} == {0, 1, 2, 3}
    assert [check for check in audit.checks if not check.holds] == []
    assert max(check.exact / check.bound for check in audit.checks) > 0.9, "and say most of it"


def test_what_has_not_two_levels_has_no_classes() -> None:
    assert audit_classes(collection("ranges"), SeededRandomSource(1), SAMPLES, ALPHA) is None


@pytest.mark.parametrize("covers", [0, 1, 2])
def test_classes_have_the_delta_of_all_outcomes(covers: int) -> None:
    """Exactly, where both can be computed: subsets of 2 of 6."""
    mechanism = SubsetSelection.for_epsilon(ONE, 6, 2)
    reports, cover = honest_batch(mechanism).reports, enumerated(mechanism.cover)
    classes = class_batch(handler_of(mechanism).overlaps()[0])

    for e_epsilon in (ONE, Fraction(2)):
        every = SmallBatch(reports, cover).delta(e_epsilon, covers)
        assert classes.delta(e_epsilon, covers) == every


def test_covers_that_depend_on_a_value_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: a shuffler that draws covers as a device draws reports."""
    first = collection("strings").domain.input("a", SeededRandomSource(1))
    monkeypatch.setattr(HashedStrings, "cover", lambda self, source: self.randomize(first, source))

    assert audited("strings").deviation == "covers"


def test_reports_of_a_larger_epsilon_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: half of the reports that do not support their value are drawn again."""
    randomize = SubsetSelection.randomize

    def leaking(self: SubsetSelection, x: int, randomness: RandomSource) -> int:
        message = randomize(self, x, randomness)
        while x not in self.members(message) and randomness.below(2) == 0:
            message = randomize(self, x, randomness)
        return message

    monkeypatch.setattr(SubsetSelection, "randomize", leaking)

    assert audited("many").deviation.startswith("reports of v0")


def test_an_accounting_that_counts_a_cover_too_many_is_refuted_by_classes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def one_more(overlaps: Sequence[Overlap], covers: int, epsilon: float) -> float:
        return cover_delta(overlaps, covers + 1, epsilon)

    monkeypatch.setattr(small_batches, "cover_delta", one_more)

    assert [check for check in audited("strings").checks if not check.holds]


# -- planted faults --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", BATCH_BUGS)
def test_each_planted_fault_is_detected_and_its_repair_is_not(name: str) -> None:
    planted, mended = (BATCH_BUGS[name].check(repaired=repaired) for repaired in (False, True))

    assert planted.exact > 1.2 * planted.claimed
    assert planted.broken
    assert not mended.broken


def test_an_honest_batch_is_that_of_a_definition() -> None:
    own = small_batch(collection("values"))
    of_ends = honest_batch(collection("values").randomizer)

    assert of_ends.cover == own.cover
    assert of_ends.reports == (own.reports[0], own.reports[-1])
