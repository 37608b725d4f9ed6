"""Estimates: figures, their intervals, what these cover, and views of them.

Raw shares are unbiased and may be negative; sums, comparisons and intervals use them. A consistent
view moves them toward what is likely and possible: none negative, together 1. It errs less in all,
but is biased: it takes from small shares what noise might have given them. Base-Cut leaves out of a
list what noise alone might show [WLGL20].
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from .confidence_intervals import Counts, Ends, Floats, quantile
from .confidence_sequences import LookCount, anytime
from .estimator import Estimator, IntervalTarget
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
    SMOOTH = "smooth"  # over time ranges: each of them is raw before


def composition(shares: Floats, error: float) -> Floats:
    """Return the composition nearest to the shares once their noise is taken out."""
    return norm_sub(denoised(shares, error))


def norm_sub(shares: Floats) -> Floats:
    """Return the nearest composition: the same taken off all, negative ones cut, together 1."""
    falling = np.sort(shares)[::-1]
    excess = (np.cumsum(falling) - 1) / np.arange(1, len(shares) + 1)
    last_kept = int(np.flatnonzero(falling > excess)[-1])
    nearest: Floats = np.maximum(shares - excess[last_kept], 0.0)
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
    clipped = shares.copy()
    clipped[noisy] = error * (_posterior(likelihood, prior) @ true)[binned]
    return clipped


def _posterior(likelihood: Floats, prior: Floats) -> Floats:
    weighted = likelihood * prior
    whole = weighted.sum(axis=1, keepdims=True)
    # far below 0 the likelihood of every true share underflows: 0 is the nearest
    weighted[:, 0] += whole[:, 0] == 0
    return np.divide(weighted, np.where(whole == 0, 1.0, whole))


def base_cut(shares: Floats, response: ResponseDistribution, n: int) -> Counts:
    """Return the places of the shares above what noise alone would show, the largest first."""
    above = np.flatnonzero(shares > noise_line(response, n, len(shares)))
    return above[np.argsort(-shares[above], kind="stable")]


def noise_line(response: ResponseDistribution, n: int, values: int) -> float:
    """Return the share above which noise alone lifts none of so many values, in 19 of 20 lists."""
    return quantile(CUT / values) * float(np.sqrt(response.floor / n)) / response.gap


ESTIMANDS = {
    IntervalTarget.POPULATION: "of everybody who could have been asked",
    IntervalTarget.COHORT: "of the answers in these n reports",
}


@dataclass(frozen=True, slots=True)
class IntervalTerms:
    """The terms of an interval: its level, target, alone or simultaneous, one look or every."""

    level: float
    target: IntervalTarget
    simultaneous: bool = False
    looks: LookCount = LookCount.ONE

    def __post_init__(self) -> None:
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
    estimand: str = "no reports yet"


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
