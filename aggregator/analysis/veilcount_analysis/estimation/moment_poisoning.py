"""Poisoning of what follows from moments: how far fake reports could have moved a figure.

A device draws which moment it reports; a fake report is of the moment that its sender chooses, with
the level that moves the figure most. As far as a figure is linear in the moments, it is moved most
by fakes that all choose the same moment and level, so its band covers the honest figures under each
such attack. Attacks that split their fakes were searched (tests/statistical/test_moment_poisoning):
none leaves the band.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import inf

import numpy as np

from .confidence_intervals import Ends, Floats
from .estimator import honest_range
from .moments import Function, MomentMeans, Numbers, regression

ALL_FAKE = 0.99  # of the reports of a moment


@dataclass(frozen=True, slots=True, eq=False)
class MomentFigures:
    """Figures that are functions of the moments; NaN where they are not defined.

    `low` and `high` are the ends of what is possible at all.
    """

    found: MomentMeans
    function: Function
    low: float = -inf
    high: float = inf

    def poisoned(self, fakes: float) -> Ends:
        """Return the range of the honest figures; all that is possible if one is not defined."""
        honest = np.stack(
            [self.function(moments.numbers()) for moments in _honest(self.found, fakes)]
        )
        low, high = honest.min(axis=0), honest.max(axis=0)
        return (
            np.where(np.isnan(low), self.low, np.maximum(low, self.low)),
            np.where(np.isnan(high), self.high, np.minimum(high, self.high)),
        )


def _honest(found: MomentMeans, fakes: float) -> Iterator[MomentMeans]:
    """Yield the honest moments, if all reports are honest, or if all fakes are of one level."""
    yield found
    if not fakes:
        return
    part = np.minimum(fakes * found.n / found.reports, ALL_FAKE)
    least, most = found.reach
    ends = honest_range(found.points, least, most, part)
    lowest = np.minimum(found.points, np.where(found.is_square, 0.0, -1.0))  # noise may be beyond
    for end in np.clip(ends, lowest, np.maximum(found.points, 1.0)):
        for place, point in enumerate(end):
            points = found.points.copy()
            points[place] = point
            yield replace(found, points=points)


def deviations(numbers: Numbers) -> Floats:
    """Return the standard deviation of each number; 0 where the variance is below."""
    sqrt_variances: Floats = np.sqrt(np.maximum(numbers.variances, 0.0))
    return sqrt_variances


def slopes(target: int) -> Function:
    """Return the function for the coefficients of one number on all others, and the intercept.

    NaN unless all directions of the others vary: no coefficient is bounded then.
    """
    regressed = regression(target)

    def defined(numbers: Numbers) -> Floats:
        others = np.arange(len(numbers.means)) != target
        varies = np.linalg.eigvalsh(numbers.covariances[others][:, others])[0] > 0
        fit = regressed(numbers)
        return fit if varies else np.full_like(fit, np.nan)

    return defined
