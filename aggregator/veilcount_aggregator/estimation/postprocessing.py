"""Views of an estimate: raw, consistent, or a list of the values above the noise.

Raw shares are unbiased and may be negative; sums, comparisons and intervals use them. A consistent
view moves them toward what is likely and possible: none negative, together 1. It errs less in all,
but is biased: it takes from small shares what noise might have given them. Base-Cut leaves out of a
list what noise alone might show [WLGL20].
"""

from __future__ import annotations

from enum import StrEnum

import numpy as np

from .confidence_intervals import Counts, Floats, quantile
from .response_distribution import ResponseDistribution

CUT = 0.1  # two-sided: noise lifts one of all values of share 0 above the cut in 1 of 20 lists

PLAIN = 6  # standard errors from which a share is no noise
GRID = 4  # steps of the prior a standard error
BINS = 16  # of the shares
ROUNDS = 60


class View(StrEnum):
    """How points are shown."""

    RAW = "raw"
    CONSISTENT = "consistent"


def composition(shares: Floats, error: float) -> Floats:
    """Return the composition nearest to the shares once their noise is taken out."""
    return norm_sub(denoised(shares, error))


def norm_sub(shares: Floats) -> Floats:
    """Return the nearest composition: the same taken off all, negative ones cut, together 1."""
    falling = np.sort(shares)[::-1]
    excess = (np.cumsum(falling) - 1) / np.arange(1, len(shares) + 1)
    kept = int(np.flatnonzero(falling > excess)[-1])
    nearest: Floats = np.maximum(shares - excess[kept], 0.0)
    return nearest


def denoised(shares: Floats, error: float) -> Floats:
    """Return each share's expectation, given how the shares of all values are spread [JZ09].

    How the true ones are spread is estimated from the noisy ones themselves (empirical Bayes, by
    EM), so where many values have next to nothing, a small share is taken for noise, and where few
    do it is not. Shares of many standard errors stay as they are.
    """
    scaled = shares / error
    noisy = scaled < PLAIN
    places, binned = np.unique(np.rint(scaled[noisy] * BINS), return_inverse=True)
    true = np.arange(0, PLAIN + 2, 1 / GRID)
    likelihood = np.exp(-((places[:, None] / BINS - true) ** 2) / 2)
    counts, prior = np.bincount(binned).astype(np.float64), np.ones(len(true))
    for _ in range(ROUNDS if len(places) else 0):
        posterior = _posterior(likelihood, prior)
        prior = counts @ posterior
    found = shares.copy()
    found[noisy] = error * (_posterior(likelihood, prior) @ true)[binned]
    return found


def _posterior(likelihood: Floats, prior: Floats) -> Floats:
    weighted = likelihood * prior
    whole = weighted.sum(axis=1, keepdims=True)
    # far below 0 the likelihood of every true share underflows: 0 is the nearest
    weighted[:, 0] += whole[:, 0] == 0
    return np.divide(weighted, np.where(whole == 0, 1.0, whole))


def base_cut(shares: Floats, response: ResponseDistribution, n: int) -> Counts:
    """Return the places of the shares above what noise alone would show, the largest first."""
    cut = quantile(CUT / len(shares)) * float(np.sqrt(response.floor / n)) / response.gap
    above = np.flatnonzero(shares > cut)
    return above[np.argsort(-shares[above], kind="stable")]
