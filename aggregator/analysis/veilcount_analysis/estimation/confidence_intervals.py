"""Intervals for shares, each with its own claim about what it covers.

`score` inverts the normal test at every share with the variance that this share would have: for
one value of a sample it is Wilson's interval, mapped; for a cohort, whose own share is estimated,
only the noise varies. `sampled_tails` and `cohort_tails.py` invert the exact distribution instead,
where counts are too small for the normal: they err with at most alpha whatever the share is [CP34].
"""

from __future__ import annotations

from typing import overload

import numpy as np
from numpy.typing import NDArray

from ..scipy_modules import special
from .clopper_pearson import lower, upper
from .response_distribution import ResponseDistribution

Bools = NDArray[np.bool_]
Counts = NDArray[np.int64]
Floats = NDArray[np.float64]
Ends = tuple[Floats, Floats]
Alpha = float | Floats  # an error probability: of all figures, or one for each


@overload
def quantile(alpha: float) -> float: ...
@overload
def quantile(alpha: Alpha) -> Alpha: ...
def quantile(alpha: Alpha) -> Alpha:
    """Return how many standard errors leave out alpha, half of it on each side."""
    z: Floats = -special.ndtri(np.asarray(alpha) / 2)
    return z if z.ndim else float(z)


def single(alpha: Alpha) -> float:
    """Return the error probability of the only figure."""
    return float(np.max(alpha))


def distinct(counts: Counts, alpha: Alpha) -> tuple[Counts, Alpha, Counts]:
    """Return the estimates that intervals rest on, and the place of each figure's among them.

    Counts repeat, small ones above all; with an error probability for each figure they need not.
    """
    if np.ndim(alpha):
        shape = np.broadcast_shapes(counts.shape, np.shape(alpha))
        many = np.broadcast_to(counts, shape)
        return many, np.broadcast_to(alpha, shape), np.arange(len(many), dtype=np.int64)
    unique, places = np.unique(counts, return_inverse=True)
    return unique, alpha, places.astype(np.int64)


def chosen(alpha: Alpha, rows: Bools) -> Alpha:
    """Return the error probabilities of some figures."""
    return alpha[rows] if isinstance(alpha, np.ndarray) else alpha


def separate(alpha: Alpha, groups: int) -> list[Alpha]:
    """Return the error probability of each group of one figure; a single one may be of many."""
    if isinstance(alpha, np.ndarray) and groups > 1:
        return list(alpha[:, np.newaxis])
    return [alpha] * groups


def score(
    share: Floats, n: int, response: ResponseDistribution, z: Alpha, *, sampled: bool
) -> Ends:
    """Return the shares f with (share - f)^2 <= z^2 Var(f) / n.

    The variance is linear in f for a cohort and gets gap^2 f (1 - f) more for a sample, so both
    ends are the roots of one quadratic.
    """
    return _roots(share, n, response, z * z, 0.0, sampled=sampled)


def bernstein(
    share: Floats, n: int, response: ResponseDistribution, alpha: Alpha, *, sampled: bool
) -> Ends:
    """Return the interval that holds at any n, from the variance and the reach of one report.

    Bernstein's inequality: a sum of n errors exceeds t with probability at most
    2 exp(-t^2 / 2 (n Var + reach t / 3)).
    """
    squared = 2 * np.log(2 / np.asarray(alpha))
    slack = squared * (response.most - response.least) * response.gap / 3
    return _roots(share, n, response, squared, slack, sampled=sampled)


def _roots(
    share: Floats,
    n: int,
    response: ResponseDistribution,
    squared: Alpha,
    slack: Alpha,
    *,
    sampled: bool,
) -> Ends:
    gap = response.gap**2
    a = gap * (n + squared * sampled)
    b = 2 * share * gap * n + squared * (response.slope + gap * sampled)
    c = share**2 * gap * n - squared * response.floor
    low_b, low_c, high_b, high_c = b - slack, c - slack * share, b + slack, c + slack * share
    low = low_b - np.sqrt(np.maximum(low_b**2 - 4 * a * low_c, 0))
    high = high_b + np.sqrt(np.maximum(high_b**2 - 4 * a * high_c, 0))
    return low / (2 * a), high / (2 * a)


def sampled_tails(supports: Counts, n: int, response: ResponseDistribution, alpha: Alpha) -> Ends:
    """Return the shares of the population under which neither tail is below alpha / 2."""
    low, high = (bound(supports, n, alpha / 2) for bound in (lower, upper))
    return response.share(low), response.share(high)


def agresti_coull(
    mean: Floats, variance: Floats, n: int, reach: tuple[Floats, Floats], z: Alpha
) -> Ends:
    """Return intervals for means of n reports, from the variance and the reach of one."""
    least, most = reach
    middle, half = (least + most) / 2, (most - least) / 2
    total = n + z * z
    centre = (n * mean + z * z * middle) / total
    square = n * (variance + (mean - centre) ** 2) + z * z * (half**2 + (middle - centre) ** 2)
    spread = z * np.sqrt(square) / total
    return centre - spread, centre + spread


def anderson(levels: Floats, counters: Counts, alpha: float) -> Ends:
    """Return Anderson's interval for the mean of any distribution on ascending levels [And69].

    On either side the distribution function leaves the sample's by more than the margin with
    probability at most alpha / 2 [Mas90]; the mean is extreme where it does so everywhere.
    """
    n = counters.sum()
    margin = np.sqrt(np.log(2 / alpha) / (2 * n))
    below, gaps = np.cumsum(counters)[:-1] / n, np.diff(levels)
    low, high = np.minimum(below + margin, 1) @ gaps, np.maximum(below - margin, 0) @ gaps
    return np.array([levels[-1] - low]), np.array([levels[-1] - high])


def at_least(hits: Floats | Counts, trials: Counts, p: float) -> Floats:
    """Return Pr[Bin(trials, p) >= hits]."""
    inside = np.clip(np.asarray(hits, np.float64), 1, np.maximum(trials, 1))
    chance = special.betainc(inside, np.maximum(trials - inside + 1, 1), np.float64(p))
    return np.where(hits <= 0, 1.0, np.where(hits > trials, 0.0, chance))
