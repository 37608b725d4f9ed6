"""Coverage of intervals: exact where a distribution is known, and a test of simulated counts.

A check over many settings states one alpha for all of them and divides it: a setting fails only if
its true coverage is below the least with confidence 1 - alpha / settings.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.fft import next_fast_len
from scipy.stats import binom

from veilcount_analysis.estimation import IntervalTarget
from veilcount_analysis.estimation.clopper_pearson import upper
from veilcount_analysis.estimation.proportions import SupportCounts
from veilcount_analysis.estimation.response_distribution import ResponseDistribution
from veilcount_shared.mechanisms import MeanMechanism

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LEVEL = 0.95
LEAST = 0.935
ALPHA = 1e-3  # that a run of one test fails, though every interval covers LEAST
SEEN = 1e-12  # probabilities below are left out of sums
SEED_VARIABLE = "VEILCOUNT_COVERAGE_SEED"


def seed() -> int:
    """The seed of the settings: fixed by default, another from the environment."""
    found = int(os.environ.get(SEED_VARIABLE, "20261201"))
    print(f"{SEED_VARIABLE}={found}")
    return found


# -- the decision ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Coverage:
    """How often an interval held, of so many rounds; of no rounds: its exact coverage."""

    held: float
    rounds: int = 0

    def could_be(self, least: float, alpha: float) -> bool:
        """Whether the true coverage may be as high; rejected wrongly with probability alpha."""
        if not self.rounds:
            return self.held >= least
        return float(upper(round(self.held), self.rounds, alpha)) >= least

    @property
    def share(self) -> float:
        return self.held / max(self.rounds, 1)


@dataclass(frozen=True)
class Setting:
    """One interval in one corner, and how its coverage is found."""

    name: str
    measure: Callable[[], Coverage]


def rejected(settings: Sequence[Setting], least: float = LEAST) -> Iterator[str]:
    """The settings whose coverage is below the least, with their observed coverage."""
    for setting in settings:
        coverage = setting.measure()
        if not coverage.could_be(least, ALPHA / len(settings)):
            yield f"{setting.name}: {coverage.share:.4f} of {coverage.rounds or 'all outcomes'}"


# -- exactly, from the distribution of a support ---------------------------------------------------


@dataclass(frozen=True)
class Support:
    """All values that a support takes, and how likely each is."""

    counts: Ints
    chances: Floats

    @classmethod
    def binomial(cls, trials: int, p: float) -> Support:
        """A binomial's, as far as it has any probability."""
        first, last = np.asarray(binom.ppf([SEEN, 1 - SEEN], trials, p)).astype(int)
        counts = np.arange(max(first, 0), last + 1)
        return cls(counts, binom.pmf(counts, trials, p))

    def __add__(self, other: Support) -> Support:
        first = self.counts[0] + other.counts[0]
        chances = np.convolve(self.chances, other.chances)
        return Support(first + np.arange(len(chances)), chances)


def support(
    response: ResponseDistribution, n: int, share: float, target: IntervalTarget
) -> tuple[Support, float]:
    """The support of a value, and the true share of its estimand."""
    if target is IntervalTarget.POPULATION:
        return Support.binomial(n, response.Q + share * response.gap), share
    holders = round(share * n)
    return Support.binomial(holders, response.P) + Support.binomial(
        n - holders, response.Q
    ), holders / n


def coverage(
    response: ResponseDistribution,
    n: int,
    share: float,
    target: IntervalTarget,
    truly: ResponseDistribution | None = None,
    *,
    width: float = 1.0,
) -> float:
    """The probability that the interval of a value, or a part of it, holds its true share."""
    likely, true = support(truly or response, n, share, target)
    low, high = SupportCounts(n, likely.counts, response, 1).interval(1 - LEVEL, target)
    low, high = (low + high - width * (high - low)) / 2, (low + high + width * (high - low)) / 2
    return float(likely.chances @ ((low <= true + 1e-12) & (true - 1e-12 <= high)))


def level_probabilities(mechanism: MeanMechanism, numbers: Floats) -> Floats:
    """The probability of each level for each number, its start drawn as the device draws it."""
    rows = np.array([[float(chance) for chance in row] for row in mechanism.transition_matrix])
    means = np.array([float(mean) for mean in mechanism.means])
    place = np.interp(numbers, (means - means[0]) / (means[-1] - means[0]), np.arange(len(means)))
    below = np.minimum(place.astype(int), len(means) - 2)
    up = (place - below)[:, None]
    return np.asarray((1 - up) * rows[below] + up * rows[below + 1])


def mean_errors(mechanism: MeanMechanism, numbers: Floats, counts: Ints) -> tuple[Floats, Floats]:
    """Every error that the decoded mean of a cohort can have, in [0, 1], and how likely it is.

    The values of the levels are integers, so their sum is a lattice and its distribution a product
    of polynomials.
    """
    values = np.array(mechanism.values) - min(mechanism.values)
    unit = int(np.gcd.reduce(values))
    values //= unit
    n, top = int(counts.sum()), int(values.max()) * int(counts.sum())
    size = next_fast_len(top + 1, real=True)
    transform = np.ones(size // 2 + 1, complex)
    for response, count in zip(level_probabilities(mechanism, numbers), counts, strict=True):
        polynomial = np.zeros(size)
        np.add.at(polynomial, values, response)
        transform = transform * np.fft.rfft(polynomial) ** count
    chances = np.fft.irfft(transform, size)[: top + 1]
    possible = np.flatnonzero(chances > 1e-15)
    low, high = float(mechanism.means[0]), float(mechanism.means[-1])
    means = (min(mechanism.values) + possible * unit / n - low) / (high - low)
    return means - float(numbers @ counts) / n, chances[possible]
