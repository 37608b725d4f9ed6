"""The poisoning band covers what fake reports can do; the poisoning test detects what it can."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom

from veilcount_analysis.estimation import poisoning_band
from veilcount_analysis.estimation.poisoning import ALARM, frequent_messages, nonzero_supports
from veilcount_analysis.estimation.projective_supports import points_held
from veilcount_analysis.mechanisms import poisoning_test
from veilcount_analysis.simulation import simulate
from veilcount_shared.mechanisms import MeanMechanism, ProjectiveGeometry, SubsetSelection

from .collection_fixtures import (
    falling,
    mean,
    of_number,
    of_values,
    question,
    received,
    shares,
    sums,
)

FAKES = Fraction(1, 100)


@pytest.mark.parametrize(("k", "epsilon"), [(2, "1"), (10, "4"), (16, "1"), (300, "1")])
def test_one_percent_of_fakes_cannot_leave_the_band(k: int, epsilon: str) -> None:
    """All fakes for one value, and all against it: the band holds the honest estimate."""
    collection, rng = of_values(k, epsilon), np.random.default_rng(1)
    mechanism = collection.mechanism
    assert isinstance(mechanism, SubsetSelection | ProjectiveGeometry)
    honest = simulate(collection, falling(k, 99_000), rng)
    truth = shares(collection, honest)
    for message in (0, mechanism.counters - 1):
        counters = honest.copy()
        if isinstance(mechanism, SubsetSelection):
            counters[(message + np.arange(mechanism.w)) % k] += 1000
        else:
            counters[message] += 1000
        shown = shares(collection, counters)
        bounds = poisoning_band(shown.evidence, FAKES)

        assert (bounds.low <= truth.frequency + 1e-9).all()
        assert (truth.frequency <= bounds.high + 1e-9).all()
        ends = np.minimum(truth.frequency - bounds.low, bounds.high - truth.frequency)
        assert ends.min() == pytest.approx(0, abs=1e-9), "and no narrower band would"


def test_the_band_of_a_share_is_the_formula() -> None:
    """1 % of fakes at epsilon 1: E / (E - 1) = 1.582 for a yes, 0.582 against it."""
    shown = shares(of_values(2), np.array([40_000, 60_000]))
    bounds = poisoning_band(shown.evidence)

    assert bounds.low[1] == pytest.approx((shown.frequency[1] - 0.01 * 1.58198) / 0.99, abs=1e-6)
    assert bounds.high[1] == pytest.approx((shown.frequency[1] + 0.01 * 0.58198) / 0.99, abs=1e-6)
    assert bounds.sentence(1).startswith("1 % of fake reports could have moved this from")
    with pytest.raises(ValueError, match="below 1"):
        poisoning_band(shown.evidence, Fraction(1))


def test_means_and_groups_and_parts_have_a_band_too() -> None:
    number = of_number(0, 10)
    average = mean(number, np.full(number.mechanism.counters, 100))
    assert isinstance(number.mechanism, MeanMechanism)
    most = 10 * float(max(number.mechanism.decoded))

    assert poisoning_band(average.evidence).low[0] == pytest.approx(
        (average.mean - most / 100) / 0.99
    )
    for k in (16, 300):
        collection = of_values(k)
        counters = received(collection, falling(k, 5000), 1)
        for within in (None, range(10)):
            groups = sums(collection, counters, [range(2), range(5)], within=within)
            bounds = poisoning_band(groups.evidence)

            assert (bounds.low < groups.frequency).all()
            assert (groups.frequency < bounds.high).all()


@pytest.mark.parametrize(("k", "epsilon"), [(2, "1"), (10, "4"), (300, "1"), (2000, "2")])
@pytest.mark.parametrize("population", ["spread", "all the same"])
def test_an_honest_population_passes_the_test(k: int, epsilon: str, population: str) -> None:
    collection = of_values(k, epsilon)
    same = np.eye(k, dtype=np.int64)[k // 2] * 20_000
    for seed in range(10):
        people = falling(k, 20_000) if population == "spread" else same
        result = poisoning_test(collection, received(collection, people, seed))

        assert result.tested
        assert not result.failed


def test_one_message_sent_again_and_again_is_seen_where_messages_are_kept() -> None:
    """Of a plane one message in ten thousand comes from any honest device; here one in 100.

    Subsets of several are kept as counts of their members.
    """
    plane, subsets = of_values(2000, "2"), of_values(16)
    counters = received(plane, falling(2000, 20_000))
    counters[77] += 200
    result = poisoning_test(plane, counters)
    untested = poisoning_test(subsets, received(subsets, falling(16, 100)))

    assert result.failed
    assert 77 in result.messages
    assert "1 messages came more often" in str(result)
    assert not untested.tested
    assert "keep no messages" in str(untested)


def test_a_share_of_more_than_everyone_is_seen() -> None:
    """Nobody says yes more often than always."""
    assert poisoning_test(of_values(2), np.array([200, 9800])).failed
    assert not poisoning_test(of_values(2), np.array([2750, 7250])).failed
    hidden = question('boolean = true\npresence = "hidden"', "2")
    assert not poisoning_test(hidden, received(hidden, [10, 20, 300])).failed


def test_supporters_of_what_nobody_can_choose_are_seen() -> None:
    """The messages are random among the hyperplanes of a point that is no input."""
    collection = of_values(300, "2")
    mechanism = collection.mechanism
    assert isinstance(mechanism, ProjectiveGeometry)
    counters = received(collection, falling(300, 20_000), 2)
    nobody = mechanism.k + 5
    counters[points_held(mechanism, np.array([nobody])) > 0] += 1000 // mechanism.support_size + 1

    result = poisoning_test(collection, counters)

    assert nobody in result.values


@pytest.mark.parametrize(("n", "Q"), [(1, 0.5), (40, 0.02), (3000, 0.02), (3000, 0.5)])
def test_counts_fail_by_their_exact_tails(n: int, Q: float) -> None:
    """One threshold on either side decides as the tails of each count do."""
    counts, size = np.arange(n + 1), n + 1
    most, least = binom.sf(counts - 1, n, Q), binom.cdf(counts, n, Q)
    failed = np.flatnonzero(2 * np.minimum(most, least) * size < ALARM)
    often = np.flatnonzero(binom.sf(counts - 1, counts.sum(), Q) * size < ALARM)

    assert nonzero_supports(counts, n, Q).tolist() == failed.tolist()
    assert frequent_messages(counts, size, Q).tolist() == often.tolist()


def test_a_patient_attacker_is_not_seen_and_the_text_says_so() -> None:
    """Fakes that randomize one answer honestly are that answer's supporters."""
    collection, rng = of_values(300, "2"), np.random.default_rng(3)
    fakes = np.eye(300, dtype=np.int64)[7] * 2000
    counters = simulate(collection, falling(300, 20_000) + fakes, rng)

    result = poisoning_test(collection, counters)

    assert not result.failed
    assert "patient fakes" in str(result)
    assert "only who may report at all can be limited" in str(result)
