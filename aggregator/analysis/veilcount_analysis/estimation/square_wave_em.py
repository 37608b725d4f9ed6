"""The distribution of a number from the square wave: the likeliest histogram by EM [LWLS20].

EM starts even and stops early, so that what the noise alone would suggest is not followed: details
on which the counters have next to no information stay even. The band of the curve covers the noise
that got through, by the delta method, and not what the early stop has evened out: it is labelled
so. The mean has an unbiased estimate of its own, with an interval that holds; it may differ from
the histogram's.

Among the covers of a shuffler each report is a person's with the same probability. A cover is a
uniform level, so all reports together are as from a wave that is evened out by that much. Their
band allows for a number of covers that varies, which it does not: it is a little too wide.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from math import ceil, sqrt
from statistics import NormalDist

import numpy as np

from veilcount_shared.domain import Number
from veilcount_shared.epsilon import exp_lower
from veilcount_shared.mechanisms import DistributionMechanism
from veilcount_shared.mechanisms.square_wave import BUCKETS

from ..series.packed_rows import Counters
from .cdf import BucketHistogram, Cdf, Floats, empty_histogram, histogram
from .cover_reports import NO_COVERS, CoverReports
from .estimator import IntervalTarget
from .weighted_estimator import DecodedNumbers, WeightedMean

NOISE_ONLY = "noise only: not the details that too few reports leave even"
GAIN = Fraction(1, 1000)  # EM stops where a step gains less log-likelihood than e^epsilon / 1000
LARGEST_GAIN = 0.05  # and less than this
MOST_STEPS = 20_000  # under a second


def estimate_distribution(
    mechanism: DistributionMechanism,
    domain: Number,
    counters: Counters,
    level: float = 0.95,
    *,
    target: IntervalTarget = IntervalTarget.COHORT,
    covers: CoverReports = NO_COVERS,
) -> BucketHistogram:
    """Return the histogram of what was answered, its curve with a band, and the mean."""
    reports = int(counters.sum())
    if reports <= covers.count:
        return empty_histogram(domain, level, target)
    wave = get_wave(mechanism)
    frequency, curve_noise = _fit(
        wave, 1 - covers.count / reports, tuple(counters.tolist()), target
    )
    below = np.cumsum(frequency)[:-1]
    noise = curve_noise / sqrt(reports)
    half = NormalDist().inv_cdf((1 + level) / 2) * noise
    curve = Cdf.between(domain, below, below - half, below + half, NOISE_ONLY)
    evidence = WeightedMean.from_counters(domain, counters, wave.numbers, covers)
    return histogram(level, target, frequency=frequency, curve=curve, evidence=evidence)


@dataclass(frozen=True, eq=False)
class SquareWaveTables:
    """The square wave's exact distribution, as the nearest floats."""

    width: int
    levels: int
    inside: float  # the probability of a level of the start's window
    outside: float  # and of any other
    decoded: Floats  # unbiased estimates of the number in [0, 1] from each level; one row
    squares: Floats  # and of its square; one row
    gain: float

    def diluted(self, part: float) -> SquareWaveTables:
        """Return the wave of reports of which this part is from a start, the rest uniform."""
        if part == 1:
            return self
        inside, outside = (
            part * chance + (1 - part) / self.levels for chance in (self.inside, self.outside)
        )
        return replace(self, inside=inside, outside=outside)

    @cached_property
    def rows(self) -> Floats:
        """The probability of each level, for each bucket."""
        level, start = np.arange(self.levels), np.arange(BUCKETS)[:, np.newaxis]
        owned = (start <= level) & (level < start + self.width)
        rows: Floats = np.where(owned, self.inside, self.outside)
        return rows

    @cached_property
    def numbers(self) -> DecodedNumbers:
        """What the levels decode to."""
        middles = (np.arange(BUCKETS) + 0.5) / BUCKETS
        return DecodedNumbers.from_rows(self.decoded, self.squares, self.rows, middles)

    @cached_property
    def least_steps(self) -> int:
        """The fewest steps of EM: by then, the mode with most information has been fitted."""
        even = np.full(BUCKETS, 1 / BUCKETS)
        most = float(_modes(self.rows, even)[0][-2])
        return ceil(1 / max(most, np.finfo(np.float64).tiny))

    def likeliest(self, counters: Counters) -> tuple[Floats, int]:
        """Return the histogram at which EM stops, and after how many steps.

        Each step is taken: an accelerated one, or a start at the histogram of a neighbouring range,
        would arrive with other details fitted than the band allows for.
        """
        share = counters / counters.sum()
        frequency, before, steps = np.full(BUCKETS, 1 / BUCKETS), -np.inf, 0
        windows, logarithms = _WindowSums(self), np.empty(self.levels)
        while steps < MOST_STEPS:
            expected = windows.expected(frequency)
            likelihood = float(counters @ np.log(expected, out=logarithms))
            if steps >= self.least_steps and likelihood - before < self.gain:
                break
            frequency *= windows.expectation(np.divide(share, expected, out=expected))
            before, steps = likelihood, steps + 1
        return frequency, steps

    def noise(self, frequency: Floats, steps: int, target: IntervalTarget) -> Floats:
        """Return sqrt(n) times the curve's standard error at the 255 edges inside.

        Near its end EM is linear: in the histogram divided by its root, a step takes the share s of
        each mode's rest, where s are the eigenvalues of `_modes`. So after T steps a mode has come
        1 - (1-s)^T of its way, and the noise in the data has come as far. The data's covariance in
        these modes is s (a population's sample) or s - s^2 (the cohort: the noise alone), over n.
        The first mode, s = 1, is the sum of all shares, which has no noise.

        An epsilon so small that no step was enough has no such band.
        """
        if steps < self.least_steps:
            return np.full(BUCKETS - 1, np.inf)
        noise_row, modes = _modes(self.rows, frequency)
        noise_row, modes = np.clip(noise_row[:-1], np.finfo(np.float64).tiny, 1), modes[:, :-1]
        fitted = -np.expm1(steps * np.log1p(-np.minimum(noise_row, 1 - 1e-12)))
        variance = fitted**2 / noise_row * (1 - noise_row if target == IntervalTarget.COHORT else 1)
        curves = np.cumsum(np.sqrt(frequency)[:, np.newaxis] * modes, axis=0)[:-1]
        error: Floats = np.sqrt(curves**2 @ variance)
        return error


class _WindowSums:
    """Expectations under the square wave, in arrays that every step of EM writes anew.

    In a window all probabilities are alike, so sums over windows are differences of running sums.
    A step is a dozen such short operations: to allocate for each would take as long again.
    """

    def __init__(self, wave: SquareWaveTables) -> None:
        self._width, self._outside = wave.width, wave.outside
        self._difference = wave.inside - wave.outside
        self._share = np.zeros(wave.width + BUCKETS + wave.width - 1)  # below each start
        self._ratio = np.zeros(wave.levels + 1)
        self._expected, self._expectation = np.empty(wave.levels), np.empty(BUCKETS)

    def expected(self, frequency: Floats) -> Floats:
        """Return the probability of each level, for numbers spread like this."""
        inside = self._share[self._width : self._width + BUCKETS]
        np.cumsum(frequency, out=inside)
        self._share[self._width + BUCKETS :] = inside[-1]
        np.subtract(self._share[self._width :], self._share[: -self._width], out=self._expected)
        self._expected *= self._difference
        self._expected += self._outside
        return self._expected

    def expectation(self, ratio: Floats) -> Floats:
        """Return the expectation of a function of the level, for each bucket."""
        np.cumsum(ratio, out=self._ratio[1:])
        np.subtract(self._ratio[self._width :], self._ratio[: -self._width], out=self._expectation)
        self._expectation *= self._difference
        self._expectation += self._outside * self._ratio[-1]
        return self._expectation


@lru_cache(maxsize=512)
def _fit(
    wave: SquareWaveTables, part: float, counters: tuple[int, ...], target: IntervalTarget
) -> tuple[Floats, Floats]:
    """Return the histogram, and its curve's noise; most that is viewed again has no new reports."""
    received = wave.diluted(part)
    frequency, steps = received.likeliest(np.array(counters))
    noise = received.noise(frequency, steps, target)
    frequency.flags.writeable = noise.flags.writeable = False
    return frequency, noise


@lru_cache(maxsize=64)
def get_wave(mechanism: DistributionMechanism) -> SquareWaveTables:
    """Return the tables of a mechanism's wave, as the nearest floats."""
    window = mechanism.window
    width, levels = window.width, window.levels
    outside = (1 - window.P) / (levels - width)
    # The mean level of start s is first + slope s: the inverse line decodes a level without bias.
    slope = window.P - outside * width
    first = slope * (width - 1) / 2 + outside * levels * (levels - 1) / 2
    starts = [(level - first) / slope for level in range(levels)]
    decoded = [(start + Fraction(1, 2)) / BUCKETS for start in starts]
    # The mean square of the level is slope s^2 + slope (width - 1) s + rest.
    rest = slope * (width - 1) * (2 * width - 1) / 6 + outside * sum(n * n for n in range(levels))
    squared = [(n * n - rest) / slope - (width - 1) * start for n, start in enumerate(starts)]
    squares = [
        (square + start + Fraction(1, 4)) / BUCKETS**2
        for square, start in zip(squared, starts, strict=True)
    ]
    return SquareWaveTables(
        width=width,
        levels=levels,
        inside=float(window.P / width),
        outside=float(outside),
        decoded=np.array([decoded], np.float64),
        squares=np.array([squares], np.float64),
        gain=min(float(GAIN * exp_lower(mechanism.epsilon)), LARGEST_GAIN),
    )


def _modes(rows: Floats, frequency: Floats) -> tuple[Floats, Floats]:
    """Return the information on each mode of a histogram, from 0 to 1 ascending, and the modes.

    The modes are the eigenvectors of the Fisher information, for the histogram divided by its root.
    """
    root = np.sqrt(frequency)[:, np.newaxis]
    half = root * rows / np.sqrt(frequency @ rows)
    information, modes = np.linalg.eigh(half @ half.T)
    return information, modes
