"""Candidates among open strings: which are found, by real reports, and how well intervals cover.

Fewer buckets than in a definition, so that strings share them often. Seeds are fixed; alpha is that
of each bound.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from scipy.stats import binom, poisson

from veilcount_analysis.estimation import open_strings
from veilcount_analysis.estimation.confidence_intervals import Counts, Floats
from veilcount_analysis.estimation.estimator import IntervalTarget
from veilcount_analysis.estimation.open_strings import HalfSupports, find, possible
from veilcount_analysis.estimation.response_distribution import ResponseDistribution
from veilcount_analysis.mechanisms.candidate_search import Candidates, found_places, open_handler
from veilcount_analysis.simulation import Population, simulate
from veilcount_shared.collection import Collection
from veilcount_shared.domain import OpenStrings
from veilcount_shared.periods import Unit

ALPHA = 1e-6
N = 20_000
TESTED = 1e-4  # the chance of a candidate


def collection(bits: int, epsilon: int = 4) -> Collection:
    return Collection(
        app="acme",
        name="word",
        question="Which word?",
        domain=OpenStrings("acme/word", bits),
        unit=Unit.USER,
        start=date(2026, 11, 1),
        until=date(2027, 11, 1),
        epsilon=Fraction(epsilon),
    )


WORD = collection(12)


def named(texts: list[str], of: Collection = WORD) -> Candidates:
    assert isinstance(of.domain, OpenStrings)
    return Candidates.from_texts(of.domain, texts)


def reported(
    held: dict[str, int], generator: np.random.Generator, of: Collection = WORD, n: int = N
) -> Counts:
    """The counters of n devices: these strings, and for the rest one string each."""
    rare = rare_places(of, n)[: n - sum(held.values())]
    places = np.concatenate([named([*held], of).places, rare])
    devices = np.array([*held.values(), *np.ones(len(rare), np.int64)])
    return simulate(of, Population(places, devices), generator)


@cache
def rare_places(of: Collection, n: int) -> Counts:
    return named([f"rare {number}" for number in range(n)], of).places


def colliding(text: str, half: int, number: int) -> list[str]:
    """Strings that nobody has, in the bucket of a string in one half."""
    shift = 12 * (1 - half)
    bucket = int(named([text]).places[0]) >> shift & 4095
    many = [f"{text} {half} {place}" for place in range(number * 6000 + 20_000)]
    buckets = named(many).places >> shift & 4095
    return [many[place] for place in np.flatnonzero(buckets == bucket)[:number]]


def by_both_alone(scores: Floats, buckets: Counts, alpha: float, _candidates: int) -> Counts:
    """A mistake: both halves together decide."""
    held = np.stack([row[places] for row, places in zip(scores, buckets, strict=True)])
    return np.flatnonzero(held.sum(axis=0) / np.sqrt(2) > open_strings._score(alpha))


def test_a_string_in_the_bucket_of_a_frequent_one_is_not_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whoever chose the candidates so: 60 in each half, which the sum of both halves would find."""
    candidates = named(["walk", *colliding("walk", 0, 60), *colliding("walk", 1, 60)])
    counters = reported({"walk": 4000}, np.random.default_rng(1))

    assert found_places(WORD, counters, candidates, TESTED).tolist() == [0]
    monkeypatch.setattr("veilcount_analysis.mechanisms.candidate_search.find", by_both_alone)
    assert len(found_places(WORD, counters, candidates, TESTED)) > 100


def test_few_strings_are_found_by_chance_where_frequent_ones_are_unknown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Forty strings that nobody looks for, and 10,000 candidates that nobody has: ten rounds.

    About 195 candidates share a bucket with one of them. A fixed bound on the weaker half, of 2
    standard errors, finds more of these than the count allows.
    """
    held = {f"unknown {number}": 220 for number in range(40)}
    candidates = named([f"never {number}" for number in range(10_000)])

    def rounds() -> int:
        return sum(
            len(found_places(WORD, reported(held, np.random.default_rng(seed)), candidates, 1e-5))
            for seed in range(10)
        )

    allowed = poisson.isf(ALPHA, 10 * (10_000 * 1e-5 + open_strings.COLLISIONS))
    assert rounds() <= allowed
    monkeypatch.setattr(open_strings, "_collision_level", lambda *_: 0.5)
    assert rounds() > allowed


def test_frequent_strings_are_found_among_many_candidates() -> None:
    """Sixty strings some 8 standard errors above noise, of 5,000 candidates; the largest first."""
    response = open_handler(WORD).response
    share = 8 * float(np.sqrt(response.floor / N)) / response.gap
    held = {f"word {number}": int(share * N) for number in range(60)} | {"walk": 3000}
    candidates = named([*held, *(f"never {number}" for number in range(5000))])

    found = found_places(WORD, reported(held, np.random.default_rng(2)), candidates, TESTED)

    assert found[0] == 60
    assert np.count_nonzero(found <= 60) >= binom.isf(1 - 1e-3, 61, 0.93)


@pytest.mark.parametrize("alpha", [TESTED, 0.025])
def test_a_string_is_found_half_of_the_time_at_the_stated_share(alpha: float) -> None:
    """Also in a short list, where each half must stand above noise: that decides there."""
    share = open_strings.least_share(open_handler(WORD).response, N, alpha)
    held = {f"word {number}": round(share * N) for number in range(20)}
    counts = [
        len(found_places(WORD, reported(held, np.random.default_rng(seed)), named([*held]), alpha))
        for seed in range(10)
    ]

    assert binom.ppf(ALPHA, 200, 0.5) <= sum(counts) <= binom.isf(ALPHA, 200, 0.5)


# -- intervals -------------------------------------------------------------------------------------

FEW = collection(6, 2)


ROUNDS, PERSONS = 200, 5_000


def some_evidence(share: float) -> list[HalfSupports]:
    """Of one string with a share; all others have one device each."""
    held, walk = {"walk": round(share * PERSONS)}, named(["walk"], FEW).places
    generators = (np.random.default_rng(seed) for seed in range(ROUNDS))
    counters = (reported(held, generator, FEW, PERSONS) for generator in generators)
    evidence = [open_handler(FEW).evidence(counter, walk) for counter in counters]
    return [each for each in evidence if isinstance(each, HalfSupports)]


def covered(evidence: list[HalfSupports], response: ResponseDistribution, share: float) -> int:
    """How many intervals cover the share."""
    ends = [
        replace(each, response=response).interval(0.1, IntervalTarget.COHORT) for each in evidence
    ]
    return sum(bool(low[0] <= share <= high[0]) for low, high in ends)


@pytest.mark.parametrize("share", [0.2, 0.02])
def test_an_interval_covers_the_share_of_its_string(share: float) -> None:
    """Also that strings share buckets is in its probability Q: without that, it misses."""
    handler, evidence = open_handler(FEW), some_evidence(share)
    least = binom.ppf(ALPHA, ROUNDS, 0.9)
    own = ResponseDistribution.from_mechanism(handler.mechanism.geometry)

    assert covered(evidence, handler.response, share) >= least
    assert covered(evidence, own, share) < least


def test_of_a_bucket_that_is_shared_in_one_half_the_other_half_counts() -> None:
    other, *_ = colliding("walk", 0, 1)
    counters = reported({"walk": 6000}, np.random.default_rng(3))

    evidence = open_handler(WORD).evidence(counters, named([other, "walk"]).places)
    low, high = evidence.interval(0.05, IntervalTarget.COHORT)

    assert isinstance(evidence, HalfSupports)
    assert evidence.shared.tolist() == [True, False]
    assert low[0] < 0 < high[0] < 0.05
    assert low[1] < 0.3 < high[1]
    assert evidence.whole.points[0] > 0.1


def test_nothing_is_found_in_noise_scores_and_no_candidate_is_no_error() -> None:
    scores = np.random.default_rng(5).normal(size=(2, 4096))

    none, all_pairs = np.zeros((2, 0), np.int64), np.tile(np.arange(4096), (2, 1))
    found = find(scores, all_pairs, TESTED, 4096)

    assert not len(find(scores, none, TESTED, 0))
    assert set(found) <= set(possible(scores, all_pairs, TESTED))
    assert len(found) <= poisson.isf(ALPHA, 0.5)
