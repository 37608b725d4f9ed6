"""Whether a person may be on both sides of a comparison, and the correlation that follows."""

from __future__ import annotations

from ..estimation import IntervalTarget, MeanEstimate, ShareEstimates
from ..estimation.confidence_intervals import Floats
from ..estimation.covariance import (
    correlation_of_figures,
    correlation_of_shares,
)
from ..estimation.proportions import SupportCounts
from ..mechanisms import handler_of
from .comparison_sides import SideData

DISJOINT = "No person is on both sides: they are compared as independent samples."
POSSIBLE = (
    "The same persons may be on both sides: intervals and p allow for the worst correlation that"
    " their answers could have."
)
FIXED = (
    "The difference is between these answers, whoever gave them: only the randomization is"
    " uncertain, and it is independent on the two sides."
)


def possible(a: SideData, b: SideData) -> bool:
    """Return whether one person may have answered on both sides.

    Not within one series if a person gives one answer at most to all the periods of both: segments
    of one period, or a campaign that asks each person once.
    """
    if a.series.fingerprint != b.series.fingerprint:
        return True
    collection = a.series.collection
    periods = len(set(a.covered.periods) | set(b.covered.periods))
    return min(periods, collection.answering) * collection.per_period > 1


def correlation(
    a: SideData,
    b: SideData,
    first: ShareEstimates | MeanEstimate,
    second: ShareEstimates | MeanEstimate,
) -> Floats | None:
    """Return the worst correlation of the two sides' errors; None: they are independent."""
    one, two = first.evidence, second.evidence
    if not (
        possible(a, b) and IntervalTarget.COHORT not in {first.terms.target, second.terms.target}
    ):
        return None
    if isinstance(one, SupportCounts) and isinstance(two, SupportCounts):
        return correlation_of_shares(one, two)
    return correlation_of_figures(one, two, (_persons(a, first), _persons(b, second)))


def _persons(read: SideData, found: ShareEstimates | MeanEstimate) -> Floats:
    collection = read.series.collection
    handler = handler_of(collection.mechanism)
    return handler.persons_variance(collection.domain, found.evidence)


def assumption(a: SideData, b: SideData, target: IntervalTarget) -> str:
    """Return in words what is assumed of the persons on both sides."""
    if target is IntervalTarget.COHORT:
        return FIXED
    return POSSIBLE if possible(a, b) else DISJOINT
