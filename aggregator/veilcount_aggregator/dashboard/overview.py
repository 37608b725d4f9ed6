"""The first page: which questions are asked, what their answers are good for, how the intake is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from flask import Response, request

from veilcount_shared.collection import Model

from ..queries import Snapshot
from ..series.series import Series
from ..store import Cell
from ..text.privacy_guarantees import PrivacyFigures, counts_are_public, epsilons
from .collection.definition_history import counted
from .collection.sample_adequacy import PLAIN, Judged, verdict
from .collection_status import Standing, State, Trend, standing, trend
from .intake_summary import intake
from .layout import Frame

MANY = 8  # collections, from which on they can be searched
WITHHELD = "withheld: an exact number would tell whether one person took part"
RELEASED = "Answered by releases, each paid for from a budget"


@dataclass(frozen=True, slots=True)
class Line:
    """One collection, in words and figures."""

    name: str
    question: str
    model: str
    unit: str
    standing: Standing
    n: str
    counted: str
    epsilon: PrivacyFigures
    tone: str
    verdict: str
    trend: Trend | None
    more: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Group:
    """The collections of one state."""

    state: State
    lines: tuple[Line, ...]


def pages(frame: Frame) -> None:
    """Add the page."""

    @frame.page("/")
    def overview() -> Response:
        """All collections."""
        snapshot = frame.aggregator.snapshot()
        sizes = told_sizes(snapshot)
        named, find = snapshot.catalog.by_name, request.args.get("find", "").strip()
        lines = [line(series, sizes, snapshot.today) for series in named.values()]
        noted, series = snapshot.store.service_counts(), snapshot.catalog.series
        return frame.told(
            "overview.html",
            groups=list(groups([each for each in lines if matches(each, find)])),
            intake=intake(snapshot.store, series, sizes, noted, snapshot.today),
            total=len(lines),
            find=find,
            searchable=len(lines) > MANY,
        )


def told_sizes(snapshot: Snapshot) -> dict[str, Mapping[Cell, int]]:
    """Return the sizes of all tallies whose exact counts may be told, by fingerprint."""
    return {
        fingerprint: snapshot.store.report_counts(each)
        for fingerprint, each in snapshot.catalog.series.items()
        if counts_are_public(each.collection)
    }


def line(series: Sequence[Series], sizes: Mapping[str, Mapping[Cell, int]], today: date) -> Line:
    """Return what is said of a collection, by its newest definition."""
    newest = series[0]
    collection, told = newest.collection, sizes.get(newest.fingerprint)
    n = None if told is None else sum(told.values())
    tone, text = _usable(newest, n)
    return Line(
        name=collection.name,
        question=collection.question,
        model=_model(newest),
        unit=collection.unit,
        standing=standing(newest, today),
        n=WITHHELD if n is None else f"{n:,}",
        counted=counted(collection),
        epsilon=epsilons(collection),
        tone=tone,
        verdict=text,
        trend=None if told is None else trend(newest, told, today),
        more=tuple(_more(series, sizes)),
    )


def _usable(series: Series, n: int | None) -> tuple[str, str]:
    collection = series.collection
    if n is None or collection.model is Model.CENTRAL:
        return PLAIN, RELEASED
    once = collection.answering * collection.per_period == 1
    said = verdict(collection, n, Judged(sampled=once))
    return said.tone, said.text


def _model(series: Series) -> str:
    collection = series.collection
    if collection.twin is None:
        return collection.model
    return f"{collection.model}, twin of {collection.twin}"


def _more(series: Sequence[Series], sizes: Mapping[str, Mapping[Cell, int]]) -> Iterator[str]:
    if len(series) > 1:
        older = sum(bool(sizes.get(each.fingerprint)) for each in series[1:])
        yield f"{len(series)} definitions, the newest is shown; {older} older with answers"


def matches(line: Line, find: str) -> bool:
    """Whether a collection is looked for: by its name or its question."""
    return find.casefold() in f"{line.name}\n{line.question}".casefold()


def groups(lines: Sequence[Line]) -> Iterator[Group]:
    """Yield the collections by their state, in the order of states."""
    for state in State:
        found = tuple(each for each in lines if each.standing.state is state)
        if found:
            yield Group(state, found)
