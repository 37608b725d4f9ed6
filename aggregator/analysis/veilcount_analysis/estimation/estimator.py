"""Estimators: points, and an interval for any error probability.

An `IntervalTarget` is what an interval covers. The population: the answers are a sample, and the
interval covers the share among all who could have been asked; this needs each person to answer at
most once. The cohort: the share among exactly these n answers; only the noise is uncertain.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Protocol

import numpy as np

from .confidence_intervals import Alpha, Bools, Counts, Ends, Floats

ENOUGH = 50  # counts from which the normal serves
ENOUGH_JOINT = 1_000  # and for the far tails that many figures at once need
RARE = 0.01  # an error probability whose tails are far


class IntervalTarget(StrEnum):
    """What an interval covers."""

    POPULATION = "population"
    COHORT = "cohort"

    @property
    def sampled(self) -> bool:
        """Whether the sampling of persons counts as chance."""
        return self is IntervalTarget.POPULATION


class Estimator(Protocol):
    """Figures that know their own uncertainty."""

    @property
    def n(self) -> int:
        """How many answers these are."""

    @property
    def points(self) -> Floats:
        """The unbiased estimates."""

    @property
    def families(self) -> int:
        """How many of the figures are free: for one alone 1, as for two that mirror each other."""

    def error(self, target: IntervalTarget) -> Floats:
        """Return the standard errors."""

    def interval(self, alpha: Alpha, target: IntervalTarget) -> Ends:
        """Return an interval for each figure, each wrong with (its own) probability alpha."""

    def few(self, alpha: Alpha, target: IntervalTarget, /) -> Bools:
        """Whether each figure's counts are too small for the normal at this error probability."""

    def poisoned(self, fakes: float) -> Ends:
        """Return the range of the honest figures, if this share of the reports is fake."""


def enough(alpha: Alpha) -> Counts:
    """Return how large a count must be for the normal at this error probability."""
    return np.where(np.asarray(alpha) >= RARE, ENOUGH, ENOUGH_JOINT)


def honest_range(points: Floats, least: Floats, most: Floats, fakes: float | Floats) -> Ends:
    """Return the range of the honest figures, if fakes of the reports count the most or least."""
    return (points - fakes * most) / (1 - fakes), (points - fakes * least) / (1 - fakes)
