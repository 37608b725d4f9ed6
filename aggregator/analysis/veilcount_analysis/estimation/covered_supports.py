"""Shares of values among persons, where a shuffler's covers are counted with their reports.

A cover is a uniform message and supports any value with the same probability. So what m of them
add is binomial, and independent of the persons: its mean is subtracted, its variance is added, and
where counts are small the exact distribution of the whole count is inverted.

Of a part of the reports that persons and covers draw, it is not known how many are of persons:
there each report is a person's with the same probability, and supports a value accordingly.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from ..scipy_modules import special
from .cohort_tails import CohortSetting
from .confidence_intervals import Alpha, Bools, Ends, Floats, bernstein
from .estimator import IntervalTarget, enough, honest_range
from .proportions import SupportCounts
from .response_distribution import ResponseDistribution

REACH = 12  # standard deviations of a count, on either side of its mean
STEPS = 60  # of a bisection between 0 and 1


@dataclass(frozen=True, slots=True, eq=False)
class CoveredSupports(SupportCounts):
    """How often reports of n persons and of covers support each value. A report counts 0 or 1."""

    covers: int
    cover_support: float  # what a cover counts on average: the probability that it supports a value
    cover_spread: float | None = None  # the variance of what it counts; None: it counts 0 or 1

    @property
    def points(self) -> Floats:
        """The shares among persons, with what covers add on average taken off."""
        return self.response.share((self.counts - self.covers * self.cover_support) / self.n)

    @property
    def noise(self) -> ResponseDistribution:
        """The distribution of a person's support, with their part of the covers' variance."""
        spread = self.cover_spread
        if spread is None:
            spread = self.cover_support * (1 - self.cover_support)
        floor = self.response.floor + self.covers * spread / self.n
        return replace(self.response, floor=floor)

    def few(self, alpha: Alpha, target: IntervalTarget) -> Bools:
        """Return where the whole count varies too little for the normal."""
        variance = self.noise.variance(self.points, sampled=target.sampled)
        return self.n * self.response.gap**2 * variance < enough(alpha)

    def of_few(self, alpha: Alpha, target: IntervalTarget) -> Ends:
        """Return the shares under which neither tail of the whole count is below alpha / 2.

        A report that counts more than 0 or 1 has no simple distribution: then by its variance.
        """
        if not self.response.binary:
            return bernstein(self.points, self.n, self.noise, alpha, sampled=target.sampled)
        low, high = self._sampled_ends(alpha) if target.sampled else self._cohort_ends(alpha)
        return np.minimum(low, self.points), np.maximum(high, self.points)

    def _cohort_ends(self, alpha: Alpha) -> Ends:
        """Of the shares of n persons those in between are as the nearest one further in."""
        setting = CohortSetting(
            self.n, self.response.P, self.response.Q, self.covers, self.cover_support
        )
        fewest, most = setting.holders(self.counts, self.points, alpha)
        return np.clip((fewest - 1 / 2) / self.n, 0, 1), np.clip((most + 1 / 2) / self.n, 0, 1)

    def _sampled_ends(self, alpha: Alpha) -> Ends:
        least = np.broadcast_to(np.asarray(alpha) / 2, self.counts.shape)
        rows = zip(self.counts.tolist(), least.tolist(), strict=True)
        low, high = np.array([self._ends(count, tail) for count, tail in rows]).T
        return low, high

    def _ends(self, count: int, least: float) -> tuple[float, float]:
        def is_inside(share: float, *, upper: bool) -> bool:
            return self._sampled_tail(count, share, upper=upper) > least

        low = _last(lambda share: is_inside(1 - share, upper=True), 1.0)
        high = _last(lambda share: is_inside(share, upper=False), 1.0)
        return 1 - low, high

    def _sampled_tail(self, count: int, share: float, *, upper: bool) -> float:
        chance = self.response.Q + self.response.gap * share
        trials = (self.n, chance), (self.covers, self.cover_support)
        return _tail(count, trials, upper=upper)


@dataclass(frozen=True, slots=True, eq=False)
class DilutedSupports(SupportCounts):
    """How often the reports of a part support each value; `n` counts its covers as well."""

    of_person: ResponseDistribution

    @property
    def part(self) -> float:
        """Which part of the reports are of persons."""
        return self.response.gap / self.of_person.gap

    def poisoned(self, fakes: float) -> Ends:
        """Return the range of the honest shares: a fake is one of the persons' reports."""
        least, most = self.of_person.share(np.array([0.0, 1.0]))
        return honest_range(self.points, least, most, fakes)


def persons_part(n: float, covers: int) -> float:
    """Return which part of the reports are of persons, of whom there is at least one."""
    persons = max(n, 1)
    return persons / (persons + covers)


def among_covers(one_part: SupportCounts, persons: float, cover_support: float) -> SupportCounts:
    """Return the estimator of a part of the reports, of which this part are of persons."""
    if persons == 1:
        return one_part
    n, counts, response = one_part.n, one_part.counts, one_part.response
    received = response.diluted(persons, cover_support)
    return DilutedSupports(n, counts, received, one_part.families, response)


def _last(is_inside: Callable[[float], bool], end: float) -> float:
    """Return the last point from 0 on that is inside, up to an end; inside is an interval."""
    if is_inside(end):
        return end
    good, bad = 0.0, end
    for _ in range(STEPS):
        middle = (good + bad) / 2
        good, bad = (middle, bad) if is_inside(middle) else (good, middle)
    return bad  # rounded outwards


@lru_cache(maxsize=1 << 14)  # a search for p asks for the same at any alpha
def _tail(count: int, trials: tuple[tuple[int, float], ...], *, upper: bool) -> float:
    """Return Pr[sum of binomials >= count], or Pr[<= count]."""
    first, chances = 0, np.ones(1)
    for number, chance in trials:
        begin, own = _binomial(number, chance)
        first, chances = first + begin, np.convolve(chances, own)
    place = min(max(count - first, 0), len(chances))
    if upper:
        return float(chances[place:].sum())
    return float(chances[: max(count - first + 1, 0)].sum())


@lru_cache(maxsize=1024)  # a bisection asks again for the covers'
def _binomial(trials: int, chance: float) -> tuple[int, Floats]:
    """Return the first count that has any probability, and the probabilities from it on."""
    mean = trials * chance
    width = REACH * np.sqrt(mean * (1 - chance)) + REACH * 4
    first, last = max(0, int(mean - width)), min(trials, int(mean + width) + 1)
    hits = np.arange(first, last + 1)
    log = special.xlogy(hits, chance) + special.xlog1py(trials - hits, -chance)
    log = log - special.betaln(1 + trials - hits, 1 + hits) - np.log1p(trials)
    return first, np.exp(log)
