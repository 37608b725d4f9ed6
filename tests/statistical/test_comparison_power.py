"""What a comparison promises of itself: its detectable difference is found in 4 of 5, its errors
of the first kind are as rare as stated, and its interval and p-value never disagree.

Simulated, seeded, with supports drawn from their exact distribution. False alarms: 2,000 pairs at a
power of .80 leave [.74, .86] with probability below 1e-9 in each setting; 200,000 pairs at .0103
reject .0115 of them with 8e-8; 1,000 tests at .05 leave [.02, .08] with 1e-5.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import special

from veilcount_analysis.estimation import IntervalTarget, LookCount
from veilcount_analysis.estimation.confidence_intervals import Alpha, Ends, Floats
from veilcount_analysis.estimation.covered_supports import CoveredSupports
from veilcount_analysis.estimation.difference import detectable
from veilcount_analysis.estimation.estimate_pair import EstimatePair
from veilcount_analysis.estimation.estimator import Estimator
from veilcount_analysis.estimation.joint_difference import p_of_any, pooled
from veilcount_analysis.estimation.mean import DecodedMean
from veilcount_analysis.estimation.proportions import SupportCounts
from veilcount_analysis.mechanisms.handler import ShareHandler, share_handler
from veilcount_analysis.simulation import simulate
from veilcount_shared.domain import Number
from veilcount_shared.mechanisms import MeanMechanism

from ..analysis.estimation.collection_fixtures import of_number, of_values

Ints = NDArray[np.int64]
LEVEL_ALPHA = 0.05
PAIRS, NULL_PAIRS = 2_000, 200_000


@dataclass(frozen=True)
class Setting:
    """A value's share among k, at so many reports of each side."""

    k: int
    epsilon: str
    n: tuple[int, int]
    share: float

    @property
    def handler(self) -> ShareHandler[Any]:
        return share_handler(of_values(self.k, self.epsilon))

    def supports(self, side: int, counts: Ints) -> SupportCounts:
        return SupportCounts(self.n[side], counts, self.handler.response, self.k)

    def drawn(self, side: int, share: float, pairs: int, rng: np.random.Generator) -> SupportCounts:
        response = self.handler.response
        chance = response.Q + response.gap * share
        return self.supports(side, rng.binomial(self.n[side], chance, pairs))

    def pair(self, one: Estimator, two: Estimator) -> EstimatePair:
        return EstimatePair(one, two, IntervalTarget.POPULATION, None, LookCount.ONE)

    def detectable(self) -> float:
        response = self.handler.response
        expected = (n * (response.Q + response.gap * self.share) for n in self.n)
        sides = (self.supports(side, np.array([round(n)])) for side, n in enumerate(expected))
        return float(detectable(self.pair(*sides), LEVEL_ALPHA / self.k)[0])

    def found(self, sign: int, size: float | None = None) -> float:
        """How often a difference, of the detectable size, is significant among all k values."""
        rng, size = np.random.default_rng(4), sign * (size or self.detectable())
        first = self.share + size * self.n[1] / sum(self.n)
        first = min(max(first, size, 0.0), 1.0 + min(size, 0.0))
        sides = (first, first - size)
        pair = self.pair(*(self.drawn(i, share, PAIRS, rng) for i, share in enumerate(sides)))
        return float((pair.p_value(LEVEL_ALPHA / self.k) <= LEVEL_ALPHA / self.k).mean())


SETTINGS = (
    Setting(5, "1", (500, 500), 0.2),
    Setting(5, "1", (2_000, 2_000), 0.2),
    Setting(8, "2", (1_500, 1_500), 0.125),
    Setting(20, "1", (5_000, 5_000), 0.05),
    Setting(5, "1", (20_000, 20_000), 0.2),
)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_the_detectable_difference_is_found_in_four_of_five(setting: Setting, sign: int) -> None:
    assert 0.74 <= setting.found(sign) <= 0.86


@pytest.mark.parametrize("setting", SETTINGS[:4], ids=str)
def test_the_union_of_two_intervals_would_not_find_it(
    setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What lies within both intervals, each with half the error: .35 to .55 instead of .80."""

    def union(pair: EstimatePair, alpha: Alpha) -> Ends:
        ends = (side.interval(alpha / 2, pair.target) for side in (pair.one, pair.two))
        (low_one, high_one), (low_two, high_two) = ends
        return low_one - high_two, high_one - low_two

    size = setting.detectable()
    monkeypatch.setattr(EstimatePair, "interval", union)
    monkeypatch.setattr(Setting, "detectable", lambda _: size)

    assert setting.found(1) < 0.74


@pytest.mark.parametrize(
    "setting", [*SETTINGS, Setting(5, "1", (300, 3_000), 0.02), Setting(5, "4", (200, 200), 0.05)],
    ids=str,
)  # fmt: skip
def test_a_difference_is_seen_where_there_is_none_as_rarely_as_stated(setting: Setting) -> None:
    """At .01, where small counts begin to have exact ends; planted: ends at 1.5 times that."""
    rng = np.random.default_rng(9)
    pair = setting.pair(*(setting.drawn(i, setting.share, NULL_PAIRS, rng) for i in (0, 1)))
    rejected = float((pair.gap(0.01) > 0).mean())
    planted = float((pair.gap(0.015) > 0).mean())

    assert rejected <= 0.0115
    assert planted > 0.0115 or rejected < 0.008  # of few counts a discrete test errs less


def test_no_share_may_be_as_different_as_it_would_have_to_be() -> None:
    assert Setting(5, "1", (20, 20), 0.2).detectable() == np.inf


# -- the interval and p ----------------------------------------------------------------------------


def random_pairs(pairs: int) -> list[EstimatePair]:
    """Pairs of few and many counts, for populations and cohorts, with and without covers."""
    rng = np.random.default_rng(12)
    return [random_pair(place, rng) for place in range(pairs)]


def random_pair(place: int, rng: np.random.Generator) -> EstimatePair:
    target = (IntervalTarget.POPULATION, IntervalTarget.COHORT)[place % 4 == 3]
    most = 2_000 if target.sampled else 200
    response = share_handler(of_values(5, str(rng.integers(1, 5)))).response
    sides: list[Estimator] = []
    for _ in "ab":
        n, covers = int(rng.integers(20, most)), int(rng.integers(1, 50)) * (place % 8 == 1)
        chance = response.Q + response.gap * rng.beta(1, 4)
        counts = rng.binomial(n, chance, 1) + rng.binomial(covers, 0.2, 1)
        supports = SupportCounts(n, counts, response, 5)
        among = CoveredSupports(n, counts, response, 5, covers, 0.2)
        sides.append(among if covers else supports)
    correlation = np.array([0.4]) if place % 5 == 2 else None
    return EstimatePair(sides[0], sides[1], target, correlation, LookCount.ONE)


def disagreeing(pairs: list[EstimatePair], p_of: Callable[[EstimatePair], Floats]) -> int:
    """How many intervals do not exclude 0 just above p, or do not include it just below."""
    wrong = 0
    for pair in pairs:
        p = p_of(pair)
        if p[0] > 1e-14 and p[0] < 1:
            above, below = (float(pair.gap(p * (1 + sign * 1e-4))[0]) for sign in (1, -1))
            wrong += not (above > 0 >= below)
    return wrong


def test_an_interval_excludes_0_exactly_where_p_is_smaller() -> None:
    """200 random pairs; planted: p of the step before, of steps of .4 errors."""
    pairs = random_pairs(200)

    def stepped(pair: EstimatePair) -> Floats:
        z = np.arange(0, 8, 0.4)
        errors = np.array([2 * float(special.ndtr(-step)) for step in z])
        passed = [float(pair.gap(error)[0]) > 0 for error in errors[1:]]
        return errors[[sum(passed)]]

    assert disagreeing(pairs, lambda pair: pair.p_value(LEVEL_ALPHA)) == 0
    assert disagreeing(pairs[:40], stepped) > 10


def test_means_agree_with_their_p_too() -> None:
    collection, rng = of_number(0, 1, "2"), np.random.default_rng(3)
    mechanism, domain = collection.mechanism, collection.domain
    assert isinstance(mechanism, MeanMechanism)
    assert isinstance(domain, Number)
    pairs = []
    for place in range(60):
        shares = rng.dirichlet(np.ones(mechanism.inputs), 2)
        people = (rng.multinomial(rng.integers(20, 900), share) for share in shares)
        one, two = (
            DecodedMean.from_counters(mechanism, domain, simulate(collection, side, rng))
            for side in people
        )
        target = tuple(IntervalTarget)[place % 2]
        pairs.append(EstimatePair(one, two, target, None, LookCount.ONE))

    assert disagreeing(pairs, lambda pair: pair.p_value(LEVEL_ALPHA)) == 0


# -- one test of all values ------------------------------------------------------------------------


def rejected(
    k: int, epsilon: str, n: int, pairs: int, *, covers: int = 0, naive: bool = False,
    shares: tuple[Floats, Floats] | None = None,
) -> float:  # fmt: skip
    """How often two samples, of one population unless there are two, are seen to differ at .05."""
    rng, handler = np.random.default_rng(k), share_handler(of_values(k, epsilon))
    one, two = shares or (rng.dirichlet(np.ones(k)),) * 2
    seen = 0
    for _ in range(pairs):
        first, second = (sample(handler, n, share, covers, rng) for share in (one, two))
        together = pooled(first, second)
        matrices = [
            handler.share_covariance(side, together, IntervalTarget.POPULATION)
            for side in (first, second)
        ]
        assert matrices[0] is not None
        assert matrices[1] is not None
        covariance = matrices[0] + matrices[1]
        if naive:
            covariance = (np.diag(together) - np.outer(together, together) + 1e-9) * 2 / n
        seen += p_of_any(first, second, covariance) <= LEVEL_ALPHA
    return seen / pairs


def sample(
    handler: ShareHandler[Any], n: int, shares: Floats, covers: int, rng: np.random.Generator
) -> SupportCounts:
    k, w = handler.mechanism.k, handler.mechanism.w
    counters = handler.draw_counters(rng.multinomial(n, shares), rng)
    for _ in range(covers):
        counters[rng.permutation(k)[:w]] += 1
    return handler.support_counts(counters, np.arange(k), covers)


@pytest.mark.parametrize(
    ("k", "epsilon", "n", "covers"),
    [(5, "1", 500, 0), (5, "4", 60, 0), (19, "2", 1_000, 0), (12, "1", 500, 60)],
)
def test_one_test_of_all_values_errs_as_rarely_as_stated(
    k: int, epsilon: str, n: int, covers: int
) -> None:
    assert 0.02 <= rejected(k, epsilon, n, 1_000, covers=covers) <= 0.08


def test_a_chi_squared_test_of_debiased_counts_errs_mostly() -> None:
    assert rejected(5, "1", 500, 200, naive=True) > 0.5


def test_one_test_of_all_values_sees_many_small_differences() -> None:
    """Each of 20 shares is a little off: no single value is likely to be seen."""
    even = np.full(20, 0.05)
    off = even * (1 + 0.8 * np.where(np.arange(20) % 2, 1, -1))

    assert rejected(20, "2", 3_000, 100, shares=(even, off)) > 0.9
