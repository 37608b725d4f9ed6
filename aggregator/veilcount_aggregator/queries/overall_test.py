"""Whether anything differs between two sides: one test of all values, above the rows."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
from msgspec import Meta, Struct

from veilcount_analysis.estimation.confidence_intervals import Floats
from veilcount_analysis.estimation.estimator import IntervalTarget
from veilcount_analysis.estimation.joint_difference import p_of_any, pooled
from veilcount_analysis.estimation.proportions import SupportCounts
from veilcount_analysis.kinds.comparison import LISTED_VALUES
from veilcount_analysis.kinds.estimate_query import EstimateQuery
from veilcount_analysis.kinds.values import side_shares
from veilcount_analysis.mechanisms.handler import ShareHandler

from ..json_results import Count
from .comparison_sides import SideData

FEWEST = 3  # values: of two, the only row is this test


class OverallTest(Struct):
    """Whether anything differs, all values tested at once; the rows say what."""

    p: Annotated[float, Meta(description="of differences as large where nothing differs")]
    values: Count
    differs: bool
    sentence: str


def overall_test(
    a: SideData, b: SideData, target: IntervalTarget, level: float
) -> OverallTest | None:
    """Test all values of two independent sides; None where their covariance is not known.

    Known it is of listed values, the same on both sides and all of them, up to some hundreds.
    """
    sides = _all_values(a, b)
    if sides is None:
        return None
    shares = pooled(*(evidence for _, evidence in sides))
    matrices = [handler.share_covariance(one, shares, target) for handler, one in sides]
    if matrices[0] is None or matrices[1] is None:
        return None
    covariance: Floats = matrices[0] + matrices[1]
    p = p_of_any(sides[0][1], sides[1][1], covariance)
    return _result(p, len(shares), differs=p <= 1 - level)


Values = tuple[ShareHandler[Any], SupportCounts]


def _all_values(a: SideData, b: SideData) -> tuple[Values, Values] | None:
    """Return both sides' estimators of all values, in one order."""
    comparison = a.comparison("a")
    if comparison.subject != LISTED_VALUES:
        return None
    common = comparison.common_values(b.series.collection, ())
    if common is None or not np.array_equal(common.first, common.second):
        return None
    one, two = (_values_of(side, len(common.first)) for side in (a, b))
    return (one, two) if one and two else None


def _values_of(side: SideData, values: int) -> Values | None:
    handler = side.kind.handler
    if not isinstance(handler, ShareHandler) or not FEWEST <= values == handler.mechanism.k:
        return None
    collection, query = side.series.collection, EstimateQuery()
    shares = side_shares(collection, side.tally, query, side.contributions, None)
    evidence = shares.evidence
    return (handler, evidence) if isinstance(evidence, SupportCounts) else None


def _result(p: float, values: int, *, differs: bool) -> OverallTest:
    finding = "Something differs" if differs else "Nothing is seen to differ"
    sentence = f"{finding} (p = {p:.2g}, one test of all {values:,} values at once)."
    return OverallTest(p, values, differs, sentence)
