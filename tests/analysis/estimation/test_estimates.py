"""Estimates: their target, their intervals, hidden presence, sums, and no reports yet."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from veilcount_analysis.estimation import IntervalTarget, NoReports, margin
from veilcount_analysis.estimation.results import ESTIMANDS
from veilcount_analysis.mechanisms import estimate, estimate_sums
from veilcount_shared import Collection, parse_collections
from veilcount_shared.domain import Cross
from veilcount_shared.errors import TrustModelError

from .collection_fixtures import (
    ONE_OF,
    falling,
    of_number,
    of_values,
    question,
    received,
    shares,
    sums,
)

HIDDEN = 'values = ["a", "b", "c"]\npresence = "hidden"'
CROSSED = 'values = ["light", "dark"]\ncross = {arm = ["A", "B", "C"], plan = ["free", "paid"]}'


# -- the target ------------------------------------------------------------------------------------


def monthly() -> Collection:
    """Twelve answers a person."""
    return parse_collections(
        ONE_OF.replace("user", "month") + "epsilon = 1\nboolean = true", lambda _: []
    )["c"]


@pytest.mark.parametrize(
    ("collection", "options", "target"),
    [
        (of_values(2), {}, IntervalTarget.POPULATION),
        (monthly(), {}, IntervalTarget.COHORT),
        (monthly(), {"contributions": 1}, IntervalTarget.POPULATION),
    ],
    ids=["one answer a person", "several answers", "one period of several"],
)
def test_only_one_answer_a_person_is_a_sample_of_the_population(
    collection: Collection, options: dict[str, Any], target: IntervalTarget
) -> None:
    shown = shares(collection, received(collection, [300, 700]), **options)

    assert shown.terms.target is target
    assert shown.estimand == ESTIMANDS[target]


def test_true_values_are_not_estimated() -> None:
    text = ONE_OF + 'boolean = true\nmodel = "central"\nbudget = 1\n'
    collection = parse_collections(text, lambda _: [])["c"]

    with pytest.raises(TrustModelError, match="releases"):
        estimate(collection, np.array([3, 4]))
    with pytest.raises(TrustModelError, match="releases"):
        estimate_sums(collection, np.array([3, 4]), [[0]])


@pytest.mark.parametrize(
    ("collection", "options", "problem"),
    [
        *((of_values(5), {"level": level}, "between 0 and 1") for level in (0.0, 1.0, 95.0, -0.1)),
        (of_values(5), {"view": "consistent", "values": [1]}, "all values"),
        (of_values(5), {"among": "answered"}, "presence is public"),
        (monthly(), {"target": "population"}, "12 of these answers"),
    ],
    ids=["0", "1", "95", "below 0", "part of a composition", "nobody absent", "no sample"],
)
def test_an_estimate_that_would_mean_nothing_is_refused(
    collection: Collection, options: dict[str, Any], problem: str
) -> None:
    with pytest.raises(ValueError, match=problem):
        shares(collection, received(collection, falling(collection.inputs, 10)), **options)


@pytest.mark.parametrize(
    ("collection", "low", "high"),
    [
        *((of_values(k), [0.0] * k, [1.0] * k) for k in (2, 20, 300)),
        (of_number(-40, 60), [-40.0], [60.0]),
    ],
    ids=["2 values", "20 values", "300 values", "a mean"],
)
def test_without_answers_everything_is_possible(
    collection: Collection, low: list[float], high: list[float]
) -> None:
    shown = estimate(collection, np.zeros(collection.mechanism.counters, np.int64))

    assert isinstance(shown, NoReports)
    assert (shown.n, shown.frequency, shown.mean) == (0, None, None)
    assert (shown.low.tolist(), shown.high.tolist()) == (low, high)


# -- intervals -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("k", "n"), [(2, 1), (7, 30), (300, 30), (300, 20_000)])
@pytest.mark.parametrize("target", ["population", "cohort"])
def test_an_interval_holds_its_point_and_grows_with_the_level(k: int, n: int, target: str) -> None:
    collection = of_values(k)
    counters = received(collection, falling(k, n))
    inner, outer = (shares(collection, counters, level=at, target=target) for at in (0.8, 0.99))

    assert (inner.low <= inner.frequency + 1e-12).all()
    assert (inner.frequency <= inner.high + 1e-12).all()
    assert (outer.low <= inner.low + 1e-12).all()
    assert (inner.high <= outer.high + 1e-12).all()


def test_intervals_for_all_at_once_are_wider_except_for_two_that_mirror_each_other() -> None:
    for k, wider in ((2, False), (3, True)):
        collection = of_values(k)
        counters = received(collection, falling(k, 5000))
        alone, together = (shares(collection, counters, simultaneous=yes) for yes in (False, True))

        assert bool((together.high - together.low > alone.high - alone.low).all()) is wider


def test_a_composition_has_the_raw_intervals_within_0_and_1() -> None:
    collection = of_values(30)
    counters = received(collection, falling(30, 400))
    raw, shown = (shares(collection, counters, view=view) for view in ("raw", "consistent"))

    assert raw.frequency.min() < 0 <= shown.frequency.min()
    assert raw.frequency.sum() == pytest.approx(1)
    assert shown.frequency.sum() == pytest.approx(1)
    assert (shown.low == np.clip(raw.low, 0, 1)).all()
    assert (shown.high == np.clip(raw.high, 0, 1)).all()


# -- hidden presence -------------------------------------------------------------------------------


def test_hidden_presence_gives_shares_of_all_devices_and_of_those_who_answered() -> None:
    collection = question(HIDDEN, "4")
    counters = received(collection, [2000, 1000, 500, 6500])
    devices, answered = (shares(collection, counters, among=who) for who in ("all", "answered"))

    assert len(devices.frequency) == 3
    assert devices.absent is not None
    assert devices.absent.frequency[0] == pytest.approx(0.65, abs=0.02)
    assert devices.frequency.sum() + devices.absent.frequency[0] == pytest.approx(1)
    assert devices.estimand.startswith("of all devices")
    assert answered.frequency == pytest.approx([20 / 35, 10 / 35, 5 / 35], abs=0.05)
    assert answered.frequency.sum() == pytest.approx(1)
    assert answered.estimand.startswith("of those who answered")


def test_when_all_may_have_been_absent_every_share_is_possible() -> None:
    """Nobody answered; 40 reports say so, but not for certain."""
    collection = question(HIDDEN, "1")
    shown = shares(collection, received(collection, [0, 0, 0, 40]), among="answered")

    assert (shown.low <= 0).all()
    assert (shown.high >= 1).all()
    assert np.isfinite([shown.frequency, shown.low, shown.high]).all()


# -- sums ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("k", "epsilon"), [(9, "3"), (20, "1"), (300, "1")])
def test_a_sum_is_the_sum_of_the_shares(k: int, epsilon: str) -> None:
    collection = of_values(k, epsilon)
    counters = received(collection, falling(k, 2000))
    single = shares(collection, counters)
    groups = [range(3), [0, k - 1], [2]]
    shown = sums(collection, counters, groups)

    assert shown.frequency == pytest.approx([single.frequency[list(g)].sum() for g in groups])
    assert (shown.low <= shown.frequency).all()


@pytest.mark.parametrize("target", ["population", "cohort"])
def test_a_group_of_one_is_that_value_and_all_of_a_cohort_are_certain(target: str) -> None:
    """Of subset selection to the last digit, since the distribution is the same."""
    collection = of_values(20)
    counters = received(collection, falling(20, 2000))
    single = shares(collection, counters, target=target)
    shown = sums(collection, counters, [[4], range(20)], target=target)

    assert (shown.low[0], shown.high[0]) == pytest.approx((single.low[4], single.high[4]))
    if target == "cohort":
        assert (shown.low[1], shown.high[1]) == pytest.approx((1, 1))


def test_margins_of_a_crossed_question_and_shares_within_one() -> None:
    """The parts of all, and the plans of the dark ones."""
    collection = question(CROSSED, "4")
    domain = collection.domain
    assert isinstance(domain, Cross)
    people = np.arange(1, 13) * 500
    counters = received(collection, people)
    themes, arms, plans = (margin(domain, part) for part in (None, "arm", "plan"))
    answer, plan = list(themes.values()), list(plans.values())
    dark = sums(collection, counters, plan, within=themes["dark"])
    for shown, true in (
        (sums(collection, counters, answer), people.reshape(2, 6).sum(axis=1) / people.sum()),
        (sums(collection, counters, plan), people.reshape(6, 2).sum(axis=0) / people.sum()),
        (dark, [27 / 57, 30 / 57]),
    ):
        assert shown.frequency == pytest.approx(true, abs=0.03)
    assert dark.frequency.sum() == pytest.approx(1)
    assert dark.estimand.startswith("of those in the group")
    assert (list(themes), list(arms)) == (["light", "dark"], ["A", "B", "C"])
    with pytest.raises(ValueError, match="plan"):
        margin(domain, "theme")
