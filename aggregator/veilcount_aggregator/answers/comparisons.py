"""A comparison's answer: two sides of a collection, value by value, in figures and in words."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from veilcount_shared import Collection
from veilcount_shared.design import Plane, Subset
from veilcount_shared.domain import Number

from ..errors import QueryError
from ..estimating import Average, Comparison, Frequencies, Terms, estimate
from ..estimating import compare as compared
from ..estimating.curve import Histogram
from ..estimating.decoding import answers
from ..estimating.estimates import target_of
from ..estimating.evidence import Target
from ..estimating.intervals import Counts
from ..estimating.results import OF
from ..promises import epsilons
from ..reader.columns import spelled
from . import parameters as of
from .compared import CompareAnswer, ComparisonRow, SideFigure, SideView
from .estimates import ANSWERS, REPORTS, chosen_series
from .holdings import Holdings
from .numbers import evidence_of
from .parameters import Parameters
from .question import SIZE, Among, Question, segments
from .shares import hidden
from .sides import Read, Side, refuse_overlap
from .values import Value, places_of, size_of, value_at

PARAMETERS = ("a", "b", "from", "to", "level", "segment", "series", "top", "values", "among")
MOST_NAMED = 10
SAME_PEOPLE = (
    "People who answered on both sides agree with themselves more than chance would have them: the"
    " intervals are then wider than they need be."
)


@dataclass(frozen=True, slots=True)
class CompareQuestion:
    """Two sides, and what they have in common."""

    a: Side
    b: Side
    common: Question

    @classmethod
    def read(cls, given: Parameters) -> CompareQuestion:
        """Return the question that parameters ask."""
        of.refuse_unknown(given, PARAMETERS)
        common = Question(
            first=of.day(given, "from"),
            last=of.day(given, "to"),
            level=of.level_of(given),
            segments=segments(of.words(given, "segment")),
            series=of.words(given, "series"),
            top=of.whole(given, "top"),
            values=of.words(given, "values"),
            among=of.member(given, "among", Among, Among.ALL),
        )
        a, b = (Side.read(name, of.words(given, name)) for name in ("a", "b"))
        return cls(a, b, common)


def compare(holdings: Holdings, name: str, asked: CompareQuestion) -> CompareAnswer:
    """Return how one side differs from the other."""
    a, b = (_read(holdings, name, side, asked.common) for side in (asked.a, asked.b))
    refuse_overlap(a, b)
    if not (a.counters.any() and b.counters.any()):
        return _unanswered(name, asked.common.level, a, b)
    shown = _shown(a, b, asked.common)
    first, second = _estimated(a, shown.first), _estimated(b, shown.second)
    found = compared(first, _alike(second, first))
    labels = (a.side.label, b.side.label)
    rows = [
        _row(found, place, value, (first, second), labels)
        for place, value in enumerate(shown.values)
    ]
    return CompareAnswer(
        collection=name,
        level=found.level,
        of=found.of,
        family=found.family,
        a=_side(a, first.n),
        b=_side(b, second.n),
        rows=rows,
        sentence=_summary(rows, found.family, percent=found.percent),
        note=_note(a, b, found.of),
    )


def _read(holdings: Holdings, name: str, side: Side, common: Question) -> Read:
    asked = side.within(common)
    return Read.of(holdings, side, asked, chosen_series(holdings, name, asked)[0])


# -- what is compared ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """The same values on both sides; None: one mean."""

    values: Sequence[Value | None]
    first: Counts | None = None
    second: Counts | None = None


def _shown(a: Read, b: Read, asked: Question) -> Pairs:
    one, two = a.series.collection, b.series.collection
    if isinstance(one.domain, Number) or isinstance(two.domain, Number):
        if isinstance(one.domain, Number) != isinstance(two.domain, Number):
            raise QueryError("b", list(b.side.words), "one side is of a number, the other is not")
        return Pairs([None])
    places = _places(a, b, asked)
    values = [value_at(one, place) for place in places.tolist()]
    if one.domain == two.domain:
        return Pairs(values, places, places)
    known = {_key(value_at(two, place)): place for place in range(size_of(two))}
    both = [place for place, value in enumerate(values) if _key(value) in known]
    if not both:
        raise QueryError("b", list(b.side.words), "no value is possible on both sides")
    common = [values[place] for place in both]
    return Pairs(common, places[both], np.array([known[_key(each)] for each in common], np.int64))


def _key(value: Value) -> str:
    """Return what two definitions have in common of a value; the order of parts is none of it."""
    return json.dumps(value, sort_keys=True)


def _places(a: Read, b: Read, asked: Question) -> Counts:
    """Return the values that are asked for, or the most frequent ones of the first side and both.

    They are picked by how frequent they are, not by how they differ; Holm's family is all values.
    """
    collection = a.series.collection
    size = size_of(collection)
    if asked.values:
        return places_of(collection, asked.values).places
    if asked.top is None and size <= SIZE:
        return np.arange(size)
    together = a.counters
    if a.series.fingerprint == b.series.fingerprint:
        together = a.counters + b.counters
    found = estimate(collection, together)
    assert isinstance(found, Frequencies)  # noqa: S101 - there are answers
    return np.argsort(-found.frequency, kind="stable")[: asked.top or SIZE]


def _estimated(read: Read, places: Counts | None) -> Frequencies | Average:
    collection, asked = read.series.collection, read.asked
    found = estimate(
        collection,
        read.counters,
        asked.level,
        contributions=read.contributions,
        among=asked.among.value,
        values=None if places is None else places.tolist(),
    )
    if isinstance(found, Histogram):
        return _average(collection, read, found)
    assert isinstance(found, Frequencies | Average)  # noqa: S101 - there are answers
    return found


def _average(collection: Collection, read: Read, found: Histogram) -> Average:
    """Return the mean of a histogram as one that can be compared."""
    evidence, mean = evidence_of(collection, read.counters, found), found.mean
    assert evidence is not None  # noqa: S101 - there are answers
    assert mean is not None  # noqa: S101 - likewise
    return Average(
        n=found.n,
        mean=mean,
        low=found.low,
        high=found.high,
        terms=Terms(read.asked.level, target_of(collection, "auto", read.contributions)),
        of=found.of,
        evidence=evidence,
    )


def _alike(second: Frequencies | Average, first: Frequencies | Average) -> Frequencies | Average:
    """Return the second under the first's places: pair by pair, the values are the same."""
    if isinstance(second, Frequencies) and isinstance(first, Frequencies):
        return replace(second, places=first.places)
    return second


# -- what is said ----------------------------------------------------------------------------------


def _side(read: Read, n: int) -> SideView:
    collection = read.series.collection
    return SideView(
        label=read.side.label,
        fingerprint=read.series.fingerprint,
        unit=collection.unit,
        epsilon=epsilons(collection),
        first=read.span.first,
        last=read.span.last,
        filling=read.span.filling,
        segments=dict(read.asked.segments),
        n=n,
        counts=REPORTS if hidden(collection) else ANSWERS,
        contributions=read.contributions,
    )


def _row(
    found: Comparison,
    place: int,
    value: Value | None,
    sides: tuple[Frequencies | Average, Frequencies | Average],
    labels: tuple[str, str],
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
        detectable=float(found.detectable[place]),
        differs=bool(found.differs[place]),
        sentence=found.sentence(place, _called(value), *labels),
    )


def _figure(side: Frequencies | Average, place: int) -> SideFigure:
    if isinstance(side, Average):
        return SideFigure(side.mean, side.low, side.high)
    columns = (side.frequency, side.low, side.high)
    return SideFigure(*(float(column[place]) for column in columns))


def _called(value: Value | None) -> str:
    if isinstance(value, dict):
        return ", ".join(spelled(each) for each in value.values())
    return "the mean" if value is None else spelled(value)


def _summary(rows: Sequence[ComparisonRow], family: int, *, percent: bool) -> str:
    """Return all rows in one sentence; never that nothing was found without what could have."""
    differing = [_called(row.value) for row in rows if row.differs]
    among = f"{len(rows)} of {family} values" if len(rows) < family else f"{len(rows)} values"
    if differing:
        told = ", ".join(differing[:MOST_NAMED]) + (", ..." if len(differing) > MOST_NAMED else "")
        return f"Of {among} compared, {len(differing)} differ, taken all together: {told}."
    least = min(row.detectable for row in rows)
    size = f"{100 * least:.3g} points" if percent else f"{least:.4g}"
    return (
        f"Of {among} compared, none is seen to differ, taken all together; a difference of {size}"
        " would have been found in 4 of 5 such comparisons."
    )


def _unanswered(name: str, level: float, a: Read, b: Read) -> CompareAnswer:
    counts = [_received(each) for each in (a, b)]
    return CompareAnswer(
        collection=name,
        level=level,
        of="no answers yet",
        family=0,
        a=_side(a, counts[0]),
        b=_side(b, counts[1]),
        rows=[],
        sentence=f"Nothing to compare: {counts[0]:,} answers of {a.side.label}, {counts[1]:,} of"
        f" {b.side.label}.",
        note="",
    )


def _received(read: Read) -> int:
    design, total = read.series.collection.design, int(read.counters.sum())
    return answers(design, read.counters) if isinstance(design, Subset | Plane) else total


def _note(a: Read, b: Read, target: str) -> str:
    """Say what the same people on both sides would mean."""
    apart = a.series.fingerprint != b.series.fingerprint or a.span.periods != b.span.periods
    return SAME_PEOPLE if apart and target == OF[Target.POPULATION] else ""
