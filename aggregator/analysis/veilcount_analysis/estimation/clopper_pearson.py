"""What counts prove: exact confidence bounds on a probability, and on epsilon.

Clopper-Pearson bounds hold for every probability and every number of trials, however small [CP34];
no normal approximation is made. All functions take single counts or whole arrays.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..scipy_modules import special

Floats = NDArray[np.float64]


def lower(hits: ArrayLike, trials: int, alpha: float | Floats) -> Floats:
    """Return a lower bound of the probability, wrong with probability at most alpha.

    Counts may be fractions, such as expected ones.
    """
    n = np.asarray(hits)
    bound = special.betaincinv(np.where(n > 0, n, 1), trials - n + 1, alpha)
    return np.where(n > 0, bound, 0.0)  # of 0 hits the bound is 0


def upper(hits: ArrayLike, trials: int, alpha: float | Floats) -> Floats:
    """Return what the probability is at most, wrong with probability at most alpha."""
    n = np.asarray(hits)
    bound = special.betainccinv(n + 1, np.where(n < trials, trials - n, 1), alpha)
    return np.where(n < trials, bound, 1.0)  # of all hits the bound is 1


def epsilon(more: ArrayLike, less: ArrayLike, trials: int, alpha: float) -> Floats:
    """Return what epsilon is at least, when an event happened so often from either input.

    epsilon-LDP means Pr[E | one] <= e^epsilon Pr[E | two] for every event E and both orders. Each
    of the two probabilities gets half of alpha, so both bounds hold at once except with alpha.
    """
    likely, unlikely = lower(more, trials, alpha / 2), upper(less, trials, alpha / 2)
    with np.errstate(divide="ignore"):  # an event that never happened proves nothing: -inf
        return np.asarray(np.log(likely / unlikely))


def reach(trials: int, alpha: float) -> float:
    """Return the most that so many trials can ever show: all of one input, none of the other."""
    return float(epsilon(trials, 0, trials, alpha))
