"""The query of a comparison and its result: two sides of a collection, value by value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from datetime import date
from math import inf, isfinite
from typing import Annotated

from msgspec import Meta, Struct

from veilcount_analysis.estimation import (
    DifferenceEstimate,
    LookCount,
    MeanEstimate,
    ShareEstimates,
)
from veilcount_analysis.estimation import compare as compared
from veilcount_analysis.estimation.confidence_intervals import Floats
from veilcount_analysis.estimation.estimator import IntervalTarget
from veilcount_analysis.kinds.comparison import OPEN_STRINGS
from veilcount_analysis.kinds.estimate_query import EstimateQuery, SelectionQuery
from veilcount_analysis.kinds.labels import Value
from veilcount_analysis.query_params import parameter
from veilcount_analysis.text.difference_words import would_have_been_seen
from veilcount_analysis.text.privacy_guarantees import PrivacyFigures, epsilons
from veilcount_analysis.text.result_columns import spelled
from veilcount_shared.periods import Unit

from ..json_results import Count
from .comparison_sides import (
    Side,
    SideData,
    pairs,
    persons_assumption,
    refuse_overlap,
    worst_correlation,
)
from .estimate import requested_series
from .estimate_results import COUNTS
from .estimate_schema import Looks, ResultValue, Validity
from .overall_test import OverallTest, overall_test
from .reweighted_comparison import ReweightedComparison, reweighted_comparison
from .snapshot import Tallies

NO_REPORTS = "no reports yet"
NO_STRINGS = "no string is found yet: give values, the strings to compare"


class SideView(Struct, rename={"first": "from", "last": "to"}):
    """One side: whole periods of one series, the first and the last UTC day included."""

    label: str
    fingerprint: str
    unit: Unit
    epsilon: PrivacyFigures
    first: date
    last: date
    open_period: bool
    segments: dict[str, str]
    n: Count
    counts: str
    contributions: Count


class SideFigure(Struct):
    """One side's estimate and its interval."""

    figure: float
    low: float
    high: float


class ComparisonRow(Struct):
    """Difference a - b; `differs` goes by `holm`, the p-value adjusted for all values."""

    value: Annotated[ResultValue | None, Meta(description="null: a mean")]
    a: SideFigure
    b: SideFigure
    difference: float
    low: float
    high: float
    p: float
    holm: float
    detectable: Annotated[
        float | None, Meta(description="smallest difference detected with power 0.8; null: none")
    ]
    differs: bool
    sentence: str


class CompareResult(Struct):
    """Two sides compared value by value; only a sentence where a side has no reports."""

    collection: str
    level: float
    looks: Looks
    validity: Validity
    estimand: str
    measured_in: Annotated[
        str | None, Meta(description="unit of both sides' number; null: shares, or not stated")
    ]
    family: Count
    a: SideView
    b: SideView
    overall: Annotated[
        OverallTest | None,
        Meta(description="null: the sides may share persons, or values are many"),
    ]
    rows: list[ComparisonRow]
    sentence: str
    note: Annotated[str, Meta(description="assumptions; may be empty")]
    reweighted: Annotated[
        ReweightedComparison | None, Meta(description="the same of `margins`; null without them")
    ] = None


MOST_NAMED = 10
PICKED = "The values are the most frequent of both sides together."


@dataclass(frozen=True, kw_only=True)
class CompareQuery(SelectionQuery):
    """Two sides, and the selection that they have in common."""

    a: Annotated[
        Side,
        parameter(
            "One side: a segment NAME:VALUE, a range DAY..DAY, series:FINGERPRINT.",
            parse=Side.parse,
            repeated=True,
        ),
    ]
    b: Annotated[Side, parameter("The other side.", parse=Side.parse, repeated=True)]

    @property
    def common(self) -> EstimateQuery:
        """What is estimated on each side."""
        return EstimateQuery(
            **{field.name: getattr(self, field.name) for field in fields(SelectionQuery)}
        )


def compare(snapshot: Tallies, name: str, query: CompareQuery) -> CompareResult:
    """Differences between two disjoint sets of reports: segments, ranges of days or series.

    Each with its interval, the p-value adjusted for the family of all values, and the difference
    that would have been detected.
    """
    common = query.common
    a, b = (_read(snapshot, name, side, common) for side in (query.a, query.b))
    refuse_overlap(a, b)
    if not (a.reports and b.reports):
        return _without_rows(name, common, a, b, NO_REPORTS)
    if a.comparison("a").subject == OPEN_STRINGS and not common.values:
        matches = snapshot.searches(a.series).known()
        common = replace(common, values=matches.texts, top=None)
        if not common.values:
            return _without_rows(name, common, a, b, NO_STRINGS)
    return compare_sides(name, a, b, common)


def compare_sides(name: str, a: SideData, b: SideData, common: EstimateQuery) -> CompareResult:
    """Return how two sides that both have reports differ."""
    shown = pairs(a, b, common)
    first, second = a.estimate("a", shown.first), b.estimate("b", shown.second)
    second = _alike(second, first)
    worst = worst_correlation(a, b, first, second)
    compared_sides = compared(first, second, correlation=worst)
    unit = _unit(a, b)
    words = (a.side.label, b.side.label, unit)
    rows = [
        _row(compared_sides, place, value, (first, second), words)
        for place, value in enumerate(shown.values)
    ]
    return CompareResult(
        collection=name,
        level=compared_sides.level,
        looks=compared_sides.looks,
        validity=compared_sides.looks.valid,
        estimand=compared_sides.estimand,
        measured_in=unit,
        family=compared_sides.family,
        a=_side(a, first.n),
        b=_side(b, second.n),
        overall=_overall(a, b, compared_sides, worst),
        rows=rows,
        sentence=_summary(rows, compared_sides.family, percent=compared_sides.percent, unit=unit),
        note=_note(a, b, compared_sides.target, picked=shown.picked),
        reweighted=reweighted_comparison(a, b, shown, common.level),
    )


def _read(snapshot: Tallies, name: str, side: Side, common: EstimateQuery) -> SideData:
    query = side.within(common)
    return SideData.load(side, query, requested_series(snapshot, name, query)[0])


def _alike(
    second: ShareEstimates | MeanEstimate, first: ShareEstimates | MeanEstimate
) -> ShareEstimates | MeanEstimate:
    """Return the second under the first's places: pair by pair, the values are the same."""
    if isinstance(second, ShareEstimates) and isinstance(first, ShareEstimates):
        return replace(second, places=first.places)
    return second


# -- the result ------------------------------------------------------------------------------------


def _side(read: SideData, n: int) -> SideView:
    collection = read.series.collection
    return SideView(
        label=read.side.label,
        fingerprint=read.series.fingerprint,
        unit=collection.unit,
        epsilon=epsilons(collection),
        first=read.covered.first,
        last=read.covered.last,
        open_period=read.covered.open_period,
        segments=dict(read.query.segments),
        n=n,
        counts=COUNTS[collection.has_absent],
        contributions=read.contributions,
    )


def _row(
    found: DifferenceEstimate,
    place: int,
    value: Value | None,
    sides: tuple[ShareEstimates | MeanEstimate, ShareEstimates | MeanEstimate],
    words: tuple[str, str, str | None],
) -> ComparisonRow:
    return ComparisonRow(
        value=value,
        a=_figure(sides[0], place),
        b=_figure(sides[1], place),
        difference=float(found.difference[place]),
        low=float(found.low[place]),
        high=float(found.high[place]),
        p=float(found.p[place]),
        holm=float(found.holm[place]),
        detectable=_finite(float(found.detectable[place])),
        differs=bool(found.differs[place]),
        sentence=found.sentence(place, _called(value), *words),
    )


def _figure(side: ShareEstimates | MeanEstimate, place: int) -> SideFigure:
    if isinstance(side, MeanEstimate):
        return SideFigure(side.mean, side.low, side.high)
    columns = (side.frequency, side.low, side.high)
    return SideFigure(*(float(column[place]) for column in columns))


def _called(value: Value | None) -> str:
    if isinstance(value, dict):
        return ", ".join(spelled(part) for part in value.values())
    return "the mean" if value is None else spelled(value)


def _unit(a: SideData, b: SideData) -> str | None:
    """Return the unit of both sides; None where they state two, or none."""
    units = {side.series.collection.measured_in for side in (a, b)}
    return units.pop() if len(units) == 1 else None


def _summary(rows: Sequence[ComparisonRow], family: int, *, percent: bool, unit: str | None) -> str:
    """Return all rows in one sentence; never that nothing was found without what could have."""
    differing = [_called(row.value) for row in rows if row.differs]
    among = f"{len(rows)} of {family} values" if len(rows) < family else f"{len(rows)} values"
    if differing:
        named = ", ".join(differing[:MOST_NAMED]) + (", ..." if len(differing) > MOST_NAMED else "")
        return f"Of {among} compared, {len(differing)} differ, taken all together: {named}."
    power = would_have_been_seen(detectable_of_any(rows), of_shares=percent, unit=unit)
    return f"Of {among} compared, none is seen to differ, taken all together; {power}."


def detectable_of_any(rows: Sequence[ComparisonRow]) -> float:
    """Return the smallest difference that each row would have shown; infinite: of one, none."""
    return max(inf if row.detectable is None else row.detectable for row in rows)


def _finite(detectable: float) -> float | None:
    return detectable if isfinite(detectable) else None


def _overall(
    a: SideData, b: SideData, found: DifferenceEstimate, worst: Floats | None
) -> OverallTest | None:
    """Test all values at once, where the sides are independent and looked at once."""
    if worst is not None or found.looks is not LookCount.ONE:
        return None
    return overall_test(a, b, found.target, found.level)


def _without_rows(
    name: str, common: EstimateQuery, a: SideData, b: SideData, why: str
) -> CompareResult:
    counts = [side.reports for side in (a, b)]
    return CompareResult(
        collection=name,
        level=common.level,
        looks=common.looks,
        validity=common.looks.valid,
        estimand=why,
        measured_in=_unit(a, b),
        family=0,
        a=_side(a, counts[0]),
        b=_side(b, counts[1]),
        overall=None,
        rows=[],
        sentence=f"Nothing to compare: {counts[0]:,} reports of {a.side.label}, {counts[1]:,} of"
        f" {b.side.label}.",
        note="",
    )


def _note(a: SideData, b: SideData, target: IntervalTarget, *, picked: bool) -> str:
    """Say what is assumed of the persons, and how a list was picked."""
    assumed = persons_assumption(a, b, target)
    return f"{assumed} {PICKED}" if picked else assumed
