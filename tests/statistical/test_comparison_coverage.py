"""A comparison covers the true difference, with the same persons on both sides and picked lists.

Simulated, seeded. A setting fails only if its true coverage is below LEAST, or the share of false
differences above 1 - LEAST, with a confidence of 99.99 % (ALPHA, Clopper-Pearson). Planted variants
treat the persons as disjoint, or pick the list by one side: the same check rejects both.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from functools import cache, partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from veilcount_aggregator.queries import comparison_sides
from veilcount_aggregator.queries.comparison import CompareResult, compare_sides
from veilcount_aggregator.queries.comparison_sides import Side, SideData
from veilcount_analysis.estimation.clopper_pearson import lower, upper
from veilcount_analysis.estimation.confidence_intervals import Counts
from veilcount_analysis.kinds.estimate_query import EstimateQuery
from veilcount_analysis.kinds.source import Tally
from veilcount_analysis.kinds.time_ranges import time_range
from veilcount_analysis.series.series import Series
from veilcount_analysis.simulation import simulate
from veilcount_shared import Collection, parse_collections

from ..analysis.estimation.collection_fixtures import falling

Ints = NDArray[np.int64]
Pair = tuple[Ints, Ints]
Draw = Callable[[int, int, np.random.Generator], Pair]
Compared = Callable[[np.random.Generator], CompareResult]

ALPHA = 1e-4
LEAST = 0.935
ROUNDS = 200
TODAY = date(2027, 3, 1)
TEXT = """
app = "acme"
[c]
question = "Which?"
unit = "{unit}"
epsilon = {epsilon}
from = 2026-12-01
until = 2027-03-01
{domain}
"""
VALUES = 'values_file = "values.txt"'
MEAN = 'range = [0, 1]\nmeasure = "mean"'


@cache
def collection(domain: str, epsilon: str, k: int = 2, unit: str = "month") -> Collection:
    text = TEXT.format(domain=domain, epsilon=epsilon, unit=unit)
    return parse_collections(text, lambda _: [f"value {place}" for place in range(k)])["c"]


#: where no cells are read: these definitions state no margins
NOWHERE: Any = None


def side(made: Collection, period: int, counters: Counts, common: EstimateQuery) -> SideData:
    series = Series(made)
    covered = time_range(series, range(period, period + 1), TODAY)
    return SideData(
        Side((f"period {period}",)), common, series, covered, (0,), Tally(counters), NOWHERE
    )


@dataclass(frozen=True)
class Outcome:
    """How many intervals held the true difference of 0, and how many comparisons found one."""

    intervals: int
    held: int
    rounds: int
    differing: int

    @property
    def holds(self) -> bool:
        """Whether the rounds leave room for what a comparison claims."""
        covers = upper(self.held, self.intervals, ALPHA / 2) >= LEAST
        return bool(covers and lower(self.differing, self.rounds, ALPHA / 2) <= 1 - LEAST)


def outcome(compared: Compared, rounds: int) -> Outcome:
    """Compare two sides between which there is no difference, again and again."""
    rng = np.random.default_rng(21)
    found = [compared(rng) for _ in range(rounds)]
    rows = [row for answer in found for row in answer.rows]
    held = sum(row.low <= 0 <= row.high for row in rows)
    differing = sum(any(row.differs for row in answer.rows) for answer in found)
    return Outcome(len(rows), held, rounds, differing)


# -- the same persons on both sides ----------------------------------------------------------------


def of_two_periods(made: Collection, draw: Draw, n: int, rng: np.random.Generator) -> CompareResult:
    common, pair = EstimateQuery(), draw(n, made.mechanism.inputs, rng)
    a, b = (
        side(made, period, simulate(made, people, rng), common)
        for period, people in enumerate(pair)
    )
    return compare_sides("c", a, b, common)


def stable(n: int, size: int, rng: np.random.Generator) -> Pair:
    """Persons who answer the same twice, half of them the first input and half the last."""
    people = _ends(rng.binomial(n, 0.5), n, size)
    return people, people


def opposed(n: int, size: int, rng: np.random.Generator) -> Pair:
    """Persons who move from the first to the last input, or back: none stays."""
    people = _ends(rng.binomial(n, 0.5), n, size)
    return people, people[::-1].copy()


def opposed_in_part(n: int, size: int, rng: np.random.Generator) -> Pair:
    """The same, but only a quarter of the persons answer again."""
    first = rng.binomial(n, 0.5)
    again = rng.hypergeometric(first, n - first, n // 4)
    return _ends(first, n, size), _ends(n // 4 - again, n // 4, size)


def _ends(first: int, n: int, size: int) -> Ints:
    people = np.zeros(size, np.int64)
    people[0], people[-1] = first, n - first
    return people


SETTINGS = {
    "shares": (VALUES, "4"),
    "shares, mostly noise": (VALUES, "1"),
    "mean": (MEAN, "4"),
    "mean, hardly any noise": (MEAN, "8"),
}
MORE = {
    f"{measure} at {epsilon}": (f'range = [0, 1]\nmeasure = "{measure}"', epsilon)
    for measure in ("distribution", "ranges")
    for epsilon in ("0.5", "8")
}


@pytest.mark.one_in(4)
@pytest.mark.parametrize("n", [2_000, pytest.param(40, marks=pytest.mark.full)])
@pytest.mark.parametrize("draw", [stable, opposed, opposed_in_part])
@pytest.mark.parametrize(
    ("domain", "epsilon"),
    [
        *SETTINGS.values(),
        *(pytest.param(*value, marks=pytest.mark.full) for value in MORE.values()),
    ],
    ids=[*SETTINGS, *MORE],
)
def test_a_difference_is_covered_though_the_same_persons_answered_both_periods(
    domain: str, epsilon: str, draw: Draw, n: int
) -> None:
    found = outcome(partial(of_two_periods, collection(domain, epsilon), draw, n), ROUNDS)

    assert found.holds, found


@pytest.mark.parametrize("name", ["shares", "mean, hardly any noise"])
def test_persons_taken_for_disjoint_are_covered_too_seldom(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At .83 instead of .95, and 17 % of the comparisons find a difference where there is none."""
    monkeypatch.setattr(comparison_sides, "may_share_persons", lambda _a, _b: False)
    found = outcome(partial(of_two_periods, collection(*SETTINGS[name]), opposed, 2_000), ROUNDS)

    assert not found.holds, found


def test_what_is_disjoint_is_no_wider() -> None:
    """A period against itself cannot be: two cells of one period, and one answer a campaign."""
    monthly, once = collection(VALUES, "4"), collection(f"{VALUES}\nanswers = 1", "4")
    half = np.array([1_000, 1_000])
    pair = [side(monthly, 0, half, EstimateQuery()) for _ in "ab"]
    campaign = [side(once, period, half, EstimateQuery()) for period in range(2)]
    again = [side(monthly, period, half, EstimateQuery()) for period in range(2)]

    assert not comparison_sides.may_share_persons(*pair)
    assert not comparison_sides.may_share_persons(*campaign)
    assert comparison_sides.may_share_persons(*again)
    assert comparison_sides.may_share_persons(pair[0], campaign[0])


# -- lists that are picked by their shares ---------------------------------------------------------


def of_two_series(n: tuple[int, int], rng: np.random.Generator) -> CompareResult:
    """Compare the ten largest shares of two definitions; all 150 shares are the same."""
    common = EstimateQuery(top=10)
    a, b = (
        side(made, 0, simulate(made, rng.multinomial(each, np.full(150, 1 / 150)), rng), common)
        for made, each in zip(
            (collection(VALUES, epsilon, 150, "user") for epsilon in "23"), n, strict=True
        )
    )
    return compare_sides("c", a, b, common)


@pytest.mark.parametrize(
    "n", [(3_000, 3_000), pytest.param((8_000, 1_000), marks=pytest.mark.full)]
)
def test_a_list_of_the_largest_values_is_covered(n: tuple[int, int]) -> None:
    found = outcome(partial(of_two_series, n), 40)

    assert found.holds, found


def test_a_list_picked_by_one_side_is_covered_too_seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    def by_first(a: SideData, b: SideData, first: Counts, second: Counts) -> Counts:
        del b, second
        return np.argsort(-comparison_sides._precision(a, first)[0])

    monkeypatch.setattr(comparison_sides, "_most_frequent", by_first)
    found = outcome(partial(of_two_series, (3_000, 3_000)), 40)

    assert not found.holds, found


def test_values_are_picked_by_both_sides_according_to_their_precision() -> None:
    """The larger side decides, and a value that only the smaller holds is left out."""
    made, common = collection(VALUES, "4", 150), EstimateQuery(top=1)
    rng = np.random.default_rng(3)
    large, small = falling(150, 50_000), np.zeros(150, np.int64)
    small[9] = 50
    a, b = (
        side(made, period, simulate(made, people, rng), common)
        for period, people in enumerate((small, large))
    )

    assert [row.value for row in compare_sides("c", a, b, common).rows] == ["value 0"]
