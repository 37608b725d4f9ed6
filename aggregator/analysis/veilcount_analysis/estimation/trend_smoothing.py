"""A trend smoothed over time: least squares in which each step of the share has a price.

The share is a random walk, as in `estimation.smoothing`, and its steps are as large as the
likelihood does not reject. All intervals are weighted alike, as in `trend_weights`, so that fakes
cannot move their weights. Bands hold over all periods together: right at a sudden change they may
miss more often than not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from .confidence_intervals import Bools, Floats
from .smoothing import STEPS, UNREJECTED

STILL = 1e-6  # in variances of an interval: a step of a share that does not move


@dataclass(frozen=True, slots=True, eq=False)
class SmoothWeights:
    """The weights of all intervals in the share after each period, a row each, and its errors."""

    weights: Floats
    errors: Floats

    @classmethod
    def fit(cls, periods: int, changes: Floats, variance: float, reported: Bools) -> Self:
        """Fit the net changes of intervals with reports, each of about this variance.

        One of them holds the first period: without any, no share has an estimate.
        """
        members = _members(periods)[reported]
        normal, moved = members.T @ members, members.T @ changes[reported]
        step = _largest_step(normal, moved / np.sqrt(variance))
        prices = np.full(periods, 1 / step)
        prices[0] = 0  # of the first share any is as likely
        covariance = np.linalg.inv(normal + np.diag(prices))
        sums = covariance.cumsum(axis=0)
        weights = np.zeros((periods, len(reported)))
        weights[:, reported] = sums @ members.T
        return cls(weights, np.sqrt(variance * np.diag(sums.cumsum(axis=1))))


def _members(periods: int) -> Floats:
    """Return which periods each interval has, the shortest first."""
    rows = [
        np.repeat(np.eye(periods >> level), 1 << level, axis=1)
        for level in range(periods.bit_length())
    ]
    return np.vstack([np.pad(row, ((0, 0), (0, periods - row.shape[1]))) for row in rows])


def _largest_step(normal: Floats, moved: Floats) -> float:
    """Return the largest variance of a step that is not rejected; the first share is unknown."""
    first = normal[0, 0]
    others = normal[1:, 1:] - np.outer(normal[0, 1:], normal[0, 1:]) / first
    eigenvalues, vectors = np.linalg.eigh(others)
    along = vectors.T @ (moved[1:] - normal[0, 1:] * moved[0] / first)
    steps = np.maximum(STEPS, STILL)
    prices = np.maximum(eigenvalues, 0.0) + 1 / steps[:, np.newaxis]
    spread = np.log(prices * steps[:, np.newaxis])
    likelihood = (along**2 / prices - spread).sum(axis=1) / 2
    return float(steps[likelihood >= likelihood.max() - UNREJECTED].max())
