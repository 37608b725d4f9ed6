"""What an estimate says of itself: of whom, how surely, and when there is nothing to say."""

from __future__ import annotations

import numpy as np
import pytest

from tests.aggregator.estimation.collection_fixtures import (
    ONE_OF,
    falling,
    of_number,
    of_values,
    question,
)
from veilcount_aggregator.analysis.simulation import simulate
from veilcount_aggregator.estimation import (
    IntervalTarget,
    MeanEstimate,
    NoReports,
    ShareEstimates,
    margin,
)
from veilcount_aggregator.mechanisms import estimate, estimate_sums
from veilcount_aggregator.series.packed_rows import Counters
from veilcount_shared import Collection, parse_collections
from veilcount_shared.domain import Boolean, Choice, Cross
from veilcount_shared.errors import TrustModelError

HIDDEN = 'values = ["a", "b", "c"]\npresence = "hidden"'
CROSSED = 'values = ["light", "dark"]\ncross = {arm = ["A", "B", "C"], plan = ["free", "paid"]}'


def received(collection: Collection, people: list[int] | Counters, seed: int = 1) -> Counters:
    """The counters of these people's reports, seeded."""
    return simulate(collection, np.array(people), np.random.default_rng(seed))


def shares(collection: Collection, counters: Counters, **keys: object) -> ShareEstimates:
    """The estimate of a collection of values."""
    shown = estimate(collection, counters, **keys)  # type: ignore[arg-type] # as the caller asks
    assert isinstance(shown, ShareEstimates)
    return shown


# -- of whom ---------------------------------------------------------------------------------------


def test_one_answer_a_person_is_a_sample_of_the_population() -> None:
    shown = shares(of_values(5), received(of_values(5), falling(5, 1000)))

    assert shown.terms.target is IntervalTarget.POPULATION
    assert shown.estimand == "of the population that could have been asked"


def monthly() -> Collection:
    """Twelve answers a person."""
    return parse_collections(
        ONE_OF.replace("user", "month") + "epsilon = 1\nboolean = true", lambda _: []
    )["c"]


def test_several_answers_a_person_are_a_cohort() -> None:
    shown = shares(monthly(), received(monthly(), [300, 700]))

    assert shown.terms.target is IntervalTarget.COHORT
    assert shown.estimand == "of these n answers"


def test_one_period_of_several_is_a_sample_again() -> None:
    shown = shares(monthly(), received(monthly(), [300, 700]), contributions=1)

    assert shown.terms.target is IntervalTarget.POPULATION


def test_several_answers_a_person_are_never_called_a_sample() -> None:
    with pytest.raises(ValueError, match="12 of these answers"):
        shares(monthly(), received(monthly(), [300, 700]), target="population")


def test_true_values_are_not_estimated() -> None:
    text = ONE_OF + 'boolean = true\nmodel = "central"\nbudget = 1\n'
    collection = parse_collections(text, lambda _: [])["c"]

    with pytest.raises(TrustModelError, match="releases"):
        estimate(collection, np.array([3, 4]))
    with pytest.raises(TrustModelError, match="releases"):
        estimate_sums(collection, np.array([3, 4]), [[0]])


@pytest.mark.parametrize("level", [0.0, 1.0, 95.0, -0.1])
def test_a_level_is_a_probability(level: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        shares(of_values(5), received(of_values(5), falling(5, 10)), level=level)


# -- nothing yet -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("k", "epsilon"), [(2, "1"), (20, "1"), (300, "1")])
def test_without_answers_every_share_is_possible(k: int, epsilon: str) -> None:
    collection = of_values(k, epsilon)

    shown = estimate(collection, np.zeros(collection.mechanism.counters, np.int64))

    assert isinstance(shown, NoReports)
    assert (shown.n, shown.frequency, shown.mean) == (0, None, None)
    assert shown.low.tolist() == [0.0] * k
    assert shown.high.tolist() == [1.0] * k


def test_without_answers_the_mean_may_be_anywhere_in_the_range() -> None:
    collection = of_number(-40, 60)

    shown = estimate(collection, np.zeros(collection.mechanism.counters, np.int64))

    assert isinstance(shown, NoReports)
    assert (shown.low.tolist(), shown.high.tolist()) == ([-40.0], [60.0])


@pytest.mark.parametrize("target", ["population", "cohort"])
@pytest.mark.parametrize("level", range(0, 15, 7))
def test_one_answer_has_an_interval_too(level: int, target: str) -> None:
    """And identical answers have one: no interval has no width."""
    collection = of_number()
    for times in (1, 1000):
        counters = np.zeros(collection.mechanism.counters, np.int64)
        counters[level] = times
        shown = estimate(collection, counters, target=target)  # type: ignore[arg-type] # both words
        assert isinstance(shown, MeanEstimate)

        assert shown.high - shown.low > 0.05
        assert shown.low < shown.mean < shown.high


# -- intervals -------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [2, 7, 300])
@pytest.mark.parametrize("n", [1, 30, 20_000])
@pytest.mark.parametrize("target", ["population", "cohort"])
def test_an_interval_holds_its_point_and_grows_with_the_level(k: int, n: int, target: str) -> None:
    collection = of_values(k)
    counters = received(collection, falling(k, n))
    inner, outer = (shares(collection, counters, level=at, target=target) for at in (0.8, 0.99))

    assert (inner.low <= inner.frequency + 1e-12).all()
    assert (inner.frequency <= inner.high + 1e-12).all()
    assert (outer.low <= inner.low + 1e-12).all()
    assert (inner.high <= outer.high + 1e-12).all()


def test_raw_shares_of_a_subset_are_together_one() -> None:
    collection = of_values(20)
    shown = shares(collection, received(collection, falling(20, 500)))

    assert shown.frequency.sum() == pytest.approx(1)
    assert shown.frequency.min() < 0


def test_intervals_for_all_at_once_are_wider_except_for_two_that_mirror_each_other() -> None:
    for k, wider in ((2, False), (3, True)):
        collection = of_values(k)
        counters = received(collection, falling(k, 5000))
        alone, together = (shares(collection, counters, simultaneous=yes) for yes in (False, True))

        assert bool((together.high - together.low > alone.high - alone.low).all()) is wider


def test_several_periods_are_estimated_from_their_sum() -> None:
    collection = of_values(5)
    one, two = (received(collection, falling(5, n), seed=n) for n in (400, 600))
    whole = shares(collection, one + two)
    parts = [shares(collection, each).frequency for each in (one, two)]

    assert whole.n == 1000
    assert whole.frequency == pytest.approx(0.4 * parts[0] + 0.6 * parts[1])


def test_a_few_values_of_a_large_domain_are_those_of_the_whole() -> None:
    collection = of_values(5000)
    counters = received(collection, falling(5000, 300))
    whole, few = shares(collection, counters), shares(collection, counters, values=[4000, 3])

    assert few.places.tolist() == [4000, 3]
    assert (few.frequency == whole.frequency[[4000, 3]]).all()
    assert (few.high == whole.high[[4000, 3]]).all()


def test_a_composition_needs_all_values() -> None:
    collection = of_values(5)

    with pytest.raises(ValueError, match="all values"):
        shares(collection, received(collection, falling(5, 9)), view="consistent", values=[1])


def test_a_composition_has_the_raw_intervals_within_0_and_1() -> None:
    collection = of_values(30)
    counters = received(collection, falling(30, 400))
    raw, shown = (shares(collection, counters, view=view) for view in ("raw", "consistent"))

    assert shown.frequency.min() >= 0
    assert shown.frequency.sum() == pytest.approx(1)
    assert (shown.low == np.clip(raw.low, 0, 1)).all()
    assert (shown.high == np.clip(raw.high, 0, 1)).all()


# -- hidden presence -------------------------------------------------------------------------------


def test_hidden_presence_gives_shares_of_all_devices_and_the_absent_beside_them() -> None:
    collection = question(HIDDEN, "4")
    shown = shares(collection, received(collection, [2000, 1000, 500, 6500]))

    assert len(shown.frequency) == 3
    assert shown.absent is not None
    assert shown.absent.frequency[0] == pytest.approx(0.65, abs=0.02)
    assert shown.frequency.sum() + shown.absent.frequency[0] == pytest.approx(1)
    assert shown.estimand.startswith("of all devices")


def test_or_shares_of_those_who_answered() -> None:
    collection = question(HIDDEN, "4")
    shown = shares(collection, received(collection, [2000, 1000, 500, 6500]), among="answered")

    assert shown.frequency == pytest.approx([20 / 35, 10 / 35, 5 / 35], abs=0.05)
    assert shown.frequency.sum() == pytest.approx(1)
    assert shown.estimand.startswith("of those who answered")


def test_when_all_may_have_been_absent_every_share_is_possible() -> None:
    """Nobody answered; 40 reports say so, but not for certain."""
    collection = question(HIDDEN, "1")
    shown = shares(collection, received(collection, [0, 0, 0, 40]), among="answered")

    assert (shown.low <= 0).all()
    assert (shown.high >= 1).all()
    assert np.isfinite([shown.frequency, shown.low, shown.high]).all()


def test_where_presence_is_public_all_devices_answered() -> None:
    with pytest.raises(ValueError, match="presence is public"):
        shares(of_values(3), received(of_values(3), falling(3, 9)), among="answered")


# -- sums ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("k", "epsilon"), [(9, "3"), (20, "1"), (300, "1")])
def test_a_sum_is_the_sum_of_the_shares(k: int, epsilon: str) -> None:
    collection = of_values(k, epsilon)
    counters = received(collection, falling(k, 2000))
    single = shares(collection, counters)
    groups = [range(3), [0, k - 1], [2]]
    shown = estimate_sums(collection, counters, groups)
    assert isinstance(shown, ShareEstimates)

    assert shown.frequency == pytest.approx([single.frequency[list(g)].sum() for g in groups])
    assert (shown.low <= shown.frequency).all()


@pytest.mark.parametrize("target", ["population", "cohort"])
def test_a_group_of_one_is_that_value(target: str) -> None:
    """Of a subset design to the last digit, since the law is the same."""
    collection = of_values(20)
    counters = received(collection, falling(20, 2000))
    single = shares(collection, counters, target=target)
    shown = estimate_sums(collection, counters, [[4]], target=target)  # type: ignore[arg-type] # both words
    assert isinstance(shown, ShareEstimates)

    assert (shown.low[0], shown.high[0]) == pytest.approx((single.low[4], single.high[4]))


def test_all_values_together_are_certain() -> None:
    collection = of_values(20)
    counters = received(collection, falling(20, 500))
    shown = estimate_sums(collection, counters, [range(20)], target="cohort")
    assert isinstance(shown, ShareEstimates)

    assert (shown.low[0], shown.high[0]) == pytest.approx((1, 1))


def test_margins_of_a_crossed_question_add_up_what_belongs_together() -> None:
    collection = question(CROSSED, "4")
    domain = collection.domain
    assert isinstance(domain, Cross)
    people = np.arange(1, 13) * 500
    counters = received(collection, people)
    for part, true in (
        (None, [people[:6].sum(), people[6:].sum()]),
        ("plan", [people[::2].sum(), people[1::2].sum()]),
    ):
        groups = margin(domain, part)
        shown = estimate_sums(collection, counters, list(groups.values()))
        assert isinstance(shown, ShareEstimates)

        assert shown.frequency == pytest.approx(np.array(true) / people.sum(), abs=0.03)
    assert list(margin(domain)) == ["light", "dark"]
    assert list(margin(domain, "arm")) == ["A", "B", "C"]


def test_a_margin_may_be_given_another() -> None:
    """The plans of the dark ones."""
    collection = question(CROSSED, "4")
    domain = collection.domain
    assert isinstance(domain, Cross)
    people = np.arange(1, 13) * 500
    shown = estimate_sums(
        collection,
        received(collection, people),
        list(margin(domain, "plan").values()),
        within=margin(domain)["dark"],
    )
    assert isinstance(shown, ShareEstimates)

    assert shown.frequency == pytest.approx([27 / 57, 30 / 57], abs=0.03)
    assert shown.frequency.sum() == pytest.approx(1)
    assert shown.estimand.startswith("of those in the group")


def test_a_margin_has_a_name() -> None:
    domain = Cross(Boolean(), (("arm", Choice(("A", "B"))),))

    assert list(margin(domain)) == [False, True]
    with pytest.raises(ValueError, match="arm"):
        margin(domain, "plan")
