"""Estimates: figures, their intervals, and what these cover."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .confidence_intervals import Counts, Ends, Floats
from .confidence_sequences import LookCount, anytime
from .estimator import Estimator, IntervalTarget
from .postprocessing import View, composition

ESTIMANDS = {
    IntervalTarget.POPULATION: "of the population that could have been asked",
    IntervalTarget.COHORT: "of these n answers",
}


@dataclass(frozen=True, slots=True)
class IntervalTerms:
    """The terms of an interval: its level, target, alone or simultaneous, one look or every."""

    level: float
    target: IntervalTarget
    simultaneous: bool = False
    looks: LookCount = LookCount.ONE

    def __post_init__(self) -> None:
        """Refuse a level that is no probability."""
        if not 0 < self.level < 1:
            raise ValueError(f"level = {self.level}: give a number between 0 and 1")

    def interval(self, evidence: Estimator) -> Ends:
        """Return the intervals, each wrong with 1 - level, or any of them [Bonferroni]."""
        figures = evidence.families if self.simultaneous else 1
        return self.at_looks(evidence).interval((1 - self.level) / figures, self.target)

    def at_looks(self, evidence: Estimator) -> Estimator:
        """Return the evidence with intervals for these looks."""
        return evidence if self.looks is LookCount.ONE else anytime(evidence)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ShareEstimates:
    """Shares, each with its interval, in domain order; or of the requested groups or values."""

    n: int
    frequency: Floats
    low: Floats
    high: Floats
    view: View
    terms: IntervalTerms
    estimand: str
    evidence: Estimator
    places: Counts
    absent: ShareEstimates | None = None

    @property
    def level(self) -> float:
        """The probability with which an interval covers."""
        return self.terms.level


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class MeanEstimate:
    """The mean of a number with its interval, in the units of its range."""

    n: int
    mean: float
    low: float
    high: float
    terms: IntervalTerms
    estimand: str
    evidence: Estimator

    @property
    def level(self) -> float:
        """The probability with which the interval covers."""
        return self.terms.level


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class NoReports:
    """No answer yet: nothing is estimated, and every value that is possible still is."""

    low: Floats
    high: Floats
    level: float
    n: int = 0
    frequency: None = None
    mean: None = None
    estimand: str = "no answers yet"


def estimate_frequencies(
    evidence: Estimator,
    terms: IntervalTerms,
    places: Counts,
    *,
    estimand: str = "",
    view: View = View.RAW,
    absent: ShareEstimates | None = None,
) -> ShareEstimates:
    """Return the shares of the evidence on these terms.

    The consistent view shows the nearest composition with the raw intervals cut to [0, 1]; its
    points may leave them, since their bias is in no interval.
    """
    points, (low, high) = evidence.points, terms.interval(evidence)
    if view is View.CONSISTENT:
        noise = float(np.median(evidence.error(IntervalTarget.COHORT)))
        points, low, high = composition(points, noise), np.clip(low, 0, 1), np.clip(high, 0, 1)
    return ShareEstimates(
        n=evidence.n,
        frequency=points,
        low=low,
        high=high,
        view=view,
        terms=terms,
        estimand=estimand or ESTIMANDS[terms.target],
        evidence=evidence,
        places=places,
        absent=absent,
    )


def estimate_average(evidence: Estimator, terms: IntervalTerms) -> MeanEstimate:
    """Return the mean of the evidence on these terms."""
    low, high = terms.interval(evidence)
    return MeanEstimate(
        n=evidence.n,
        mean=float(evidence.points[0]),
        low=float(low[0]),
        high=float(high[0]),
        terms=terms,
        estimand=ESTIMANDS[terms.target],
        evidence=evidence,
    )


def select_rows(
    shown: ShareEstimates, chosen: slice, evidence: Estimator, absent: ShareEstimates | None = None
) -> ShareEstimates:
    """Return some rows of an estimate, with their own evidence."""
    return replace(
        shown,
        frequency=shown.frequency[chosen],
        low=shown.low[chosen],
        high=shown.high[chosen],
        places=shown.places[chosen],
        evidence=evidence,
        absent=absent,
    )
