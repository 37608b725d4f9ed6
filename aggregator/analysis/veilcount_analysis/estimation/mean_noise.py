"""What the reports of a mean decode to, and the noise in the mean of few reports: how far the
decoded mean of a cohort is from its true mean.

The normal approximation is poor while n is small (few possible outcomes) and while errors are rare
(large epsilon). There the half-width is read from the exact distribution of the sum of the decoded
levels, by inversion of its characteristic function. That distribution depends on the cohort's
numbers, which are unknown, so the tail is the largest over three kinds of cohort: all numbers are
equal, whatever they are; all are at the two ends of the range; all but one are. The probability is
affine in the distribution of every single report [Hoe56], so it is largest where few different
numbers occur; cohorts of other kinds are searched by tests/statistical/test_coverage_corners.py.

A shuffler's covers are uniform levels, independent of all numbers: the characteristic function of
their sum is a factor of each.

Error probabilities below `FAR` are bounded with Chernoff's inequality instead, for every cohort.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from veilcount_shared.mechanisms import MeanMechanism

from ..scipy_modules import special
from .confidence_intervals import Floats
from .estimator import ENOUGH, enough


@lru_cache(maxsize=256)
def decoded_levels(mechanism: MeanMechanism) -> Floats:
    """Return the number that each level decodes to: 0 is the low end of the range, 1 the high."""
    return np.array([float(level) for level in mechanism.decoded])


@lru_cache(maxsize=256)
def transition_matrix(mechanism: MeanMechanism) -> Floats:
    """Return the probability of each level, a row for each start."""
    return np.array([[float(chance) for chance in row] for row in mechanism.transition_matrix])


@lru_cache(maxsize=256)
def least_noise(mechanism: MeanMechanism) -> float:
    """Return the least variance of one decoded report.

    Between two starts the variance is concave in the number, so the least is at a start.
    """
    decoded, rows = decoded_levels(mechanism), transition_matrix(mechanism)
    return float((rows @ decoded**2 - (rows @ decoded) ** 2).min())


Complexes = NDArray[np.complex128]

FAR = 1e-6
RARELY = 1 / 8  # largest errors in n reports
RARE_ERRORS = 2  # the normal serves if n variances are this many times the largest squared error
GRID = 1 << 12  # points of the distribution of the sum
SMOOTHED = 2  # grid points: the standard deviation of a normal that is added
MARGIN = 6  # grid points: thrice that, added to every half-width
FEW = 24  # reports up to which outcomes are so few that the numbers are tried at a fine spacing


def is_few(mechanism: MeanMechanism, n: int, alpha: float) -> bool:
    """Return whether the normal is a poor approximation for the mean of n reports."""
    errors = RARE_ERRORS / _error_share(mechanism) / ENOUGH
    return bool(n < enough(alpha) * max(1.0, errors))


def is_rarely_wrong(mechanism: MeanMechanism, n: int) -> bool:
    """Return whether few of n reports, if any, are far from the numbers of their devices."""
    return n * _error_share(mechanism) < RARELY


def half_width(mechanism: MeanMechanism, n: int, alpha: float, covers: int = 0) -> float:
    """Return a bound on the error of the mean, exceeded with probability alpha, in [0, 1].

    Of n persons, whose reports come with so many covers.
    """
    bound = chernoff(mechanism, n, alpha, covers)
    if alpha < FAR:
        return bound
    errors, tail = _tail(mechanism, n, covers)
    return min(float(errors[np.argmax(tail <= alpha)]), bound)


@lru_cache(maxsize=4096)
def chernoff(mechanism: MeanMechanism, n: int, alpha: float, covers: int = 0) -> float:
    """Return Chernoff's bound on the error, valid for n reports of any numbers.

    P(|sum of errors| >= n x) <= 2 exp(n (K(t) - t x)) for every t > 0, where K(t) is the largest
    log moment of one report's error, of either sign, and of its part of the covers'.
    """
    levels, part = _cover_levels(mechanism), covers / n
    numbers = _numbers(mechanism, 4)
    errors = decoded_levels(mechanism) - numbers[:, np.newaxis]
    needed = np.log(2 / alpha) / n
    scale = np.sqrt(2 * needed / (float(mechanism.variance) / 4 + part * float(levels.var())))
    t = scale * np.geomspace(1 / 50, 50, 100)
    chances = _chances(mechanism, 4)
    tilts = (sign * t[:, np.newaxis, np.newaxis] * errors for sign in (1, -1))
    moments = [special.logsumexp(tilt, b=chances, axis=2).max(axis=1) for tilt in tilts]
    of_covers = part * special.logsumexp(np.outer(t, levels), b=1 / len(levels), axis=1)
    furthest = float(np.abs(errors).max() + part * levels.max())
    return min(furthest, float(((np.maximum(*moments) + of_covers + needed) / t).min()))


@lru_cache(maxsize=1024)
def _tail(mechanism: MeanMechanism, n: int, covers: int) -> tuple[Floats, Floats]:
    """Return ascending errors of the mean, and the largest probability of a larger one.

    Of a sum with few outcomes the Fourier series would oscillate; a narrow normal is added to it
    and `MARGIN` makes up for what that may hide.
    """
    reach = n * chernoff(mechanism, n, FAR / 1000, covers) * (1 + 4 * MARGIN / GRID)
    step = 2 * reach / GRID
    frequencies = np.linspace(0, np.pi / step, GRID // 2 + 1)
    smoothing = np.exp(-((frequencies * step * SMOOTHED) ** 2) / 2)
    of_covers = np.cos(np.outer(_cover_levels(mechanism), frequencies)).mean(axis=0) ** covers
    transforms = _transforms(mechanism, n, frequencies) * smoothing * of_covers
    chances = np.fft.irfft(transforms, GRID, axis=1)
    half = GRID // 2
    either_sign = chances[:, :half].copy()
    either_sign[:, 1:] += chances[:, :half:-1]
    tail = (1 - np.cumsum(either_sign, axis=1)).max(axis=0)
    return (np.arange(half) + MARGIN) * step / n, tail


def _transforms(mechanism: MeanMechanism, n: int, frequencies: Floats) -> Complexes:
    """Return the characteristic function of the sum of errors, one row for each cohort.

    The levels are antisymmetric: of a number and its mirror image one is enough, and at the two
    ends of the range the functions are conjugates.
    """
    parts = 20 if n <= FEW else 4
    numbers = _numbers(mechanism, parts)
    numbers = numbers[: (len(numbers) + 1) // 2]
    waves = np.exp(1j * np.outer(decoded_levels(mechanism), frequencies))
    shifts = np.exp(-1j * np.outer(numbers, frequencies))
    transforms = _chances(mechanism, parts)[: len(numbers)] @ waves * shifts
    low, high = transforms[0], transforms[0].conj()
    split = {round(n * part / 16) for part in range(1, 9)}
    ends = [low**k * high ** (n - k) for k in split]
    rest = low ** ((n - 1) // 2) * high ** (n // 2)
    one_inside = rest * transforms if 1 < n <= FEW else transforms[:0]
    return np.concatenate([transforms**n, ends, one_inside])


@lru_cache(maxsize=64)
def _cover_levels(mechanism: MeanMechanism) -> Floats:
    """Return the decoded levels, counted from the middle, where their mean is."""
    return decoded_levels(mechanism) - 0.5


@lru_cache(maxsize=64)
def _numbers(mechanism: MeanMechanism, parts: int) -> Floats:
    """Return numbers of [0, 1]: the starts' own, and some between every two of them."""
    means = np.array([float(mean) for mean in mechanism.means])
    starts = (means - means[0]) / (means[-1] - means[0])
    places = np.arange(parts * (len(starts) - 1) + 1) / parts
    return np.asarray(np.interp(places, range(len(starts)), starts))


@lru_cache(maxsize=64)
def _chances(mechanism: MeanMechanism, parts: int) -> Floats:
    """Return the probability of each level, for each number: a mixture of its two starts'."""
    rows = transition_matrix(mechanism)
    places = np.arange(parts * (len(rows) - 1) + 1) / parts
    return np.array([np.interp(places, range(len(rows)), column) for column in rows.T]).T


def _error_share(mechanism: MeanMechanism) -> float:
    """Return the worst variance of one report in squares of its largest error."""
    decoded = decoded_levels(mechanism)
    return float(mechanism.variance) / 4 / float(max(decoded.max(), 1 - decoded.min())) ** 2
