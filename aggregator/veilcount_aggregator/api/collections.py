"""The doors to definitions: which there are, what came of them; push and close."""

from __future__ import annotations

from collections.abc import Mapping

from flask import Blueprint, Response, g, request

from veilcount_shared.schedule import opens

from ..auth.api_keys import Role
from ..catalog.definitions import DefinitionSource, add_definitions, close_collection
from ..series.series import Series
from ..service import Aggregator
from ..store.memory_limit import worst_case
from ..text.privacy_guarantees import counts_are_public, epsilons, promise
from .auth import Authenticator
from .computation_gate import ComputationGate
from .json_io import answer, asked
from .problems import refusal
from .schemas import (
    Closed,
    CollectionLine,
    CollectionLines,
    CollectionView,
    Definitions,
    Pushed,
    PushedSeries,
    Segment,
    SeriesFigures,
    SeriesView,
    Tally,
)
from .verdict_counts import VerdictCounts, counts_by_series

TOML_TYPE = "application/toml"


def doors(aggregator: Aggregator, authority: Authenticator, gate: ComputationGate) -> Blueprint:
    """Return the doors."""
    blueprint = Blueprint("collections", __name__)
    store = aggregator.store

    @blueprint.get("/v1/collections")
    @authority.opens_to(Role.ANALYST)
    def list_all() -> Response:
        """All collections, each by its newest definition."""
        named = aggregator.known().catalog.by_name
        lines = [_line(aggregator, series) for series in named.values()]
        return answer(CollectionLines(lines))

    @blueprint.get("/v1/collections/<name>")
    @authority.opens_to(Role.ANALYST)
    def show_one(name: str) -> Response:
        """One collection's series, side by side."""
        series = aggregator.known().catalog.by_name.get(name)
        if series is None:
            raise unknown()
        aggregator.flush()
        counts = counts_by_series(store.service_counts())
        return answer(CollectionView(name, [_view(aggregator, each, counts) for each in series]))

    @blueprint.post("/v1/collections")
    @authority.opens_to(Role.ADMIN)
    @gate.bounded
    def push() -> Response:
        """Take a definitions file: from now on its series are counted."""
        new = add_definitions(
            store, _source(), aggregator.clock(), g.key.id, aggregator.watch.catalog.read
        )
        aggregator.watch.refresh()
        pushed = [PushedSeries(each.name, each.fingerprint, worst_case(each)) for each in new]
        return answer(Pushed(pushed), 201 if new else 200)

    @blueprint.post("/v1/collections/<name>/close")
    @authority.opens_to(Role.ADMIN)
    def close_one(name: str) -> Response:
        """Take no more reports for a collection, under any of its definitions."""
        aggregator.watch.refresh()
        if name not in aggregator.known().catalog.by_name:
            raise unknown()
        closed = close_collection(
            store, name, aggregator.clock(), g.key.id, aggregator.watch.catalog.read
        )
        aggregator.watch.refresh()
        return answer(Closed([series.fingerprint for series in closed]))

    return blueprint


def unknown() -> Exception:
    """Return the refusal of a name that no definition has."""
    return refusal("not-found", "no collection has this name: GET /v1/collections lists them")


def _source() -> DefinitionSource:
    if request.mimetype == TOML_TYPE:
        try:
            return DefinitionSource(request.get_data().decode("utf-8-sig"))
        except UnicodeDecodeError:
            raise refusal("bad-request", "the body is not UTF-8", "body") from None
    given = asked(Definitions)
    return DefinitionSource(given.text, given.files)


def _line(aggregator: Aggregator, series: tuple[Series, ...]) -> CollectionLine:
    newest = series[0].collection
    public = all(counts_are_public(each.collection) for each in series)
    return CollectionLine(
        name=newest.name,
        fingerprint=newest.fingerprint,
        app=newest.app,
        question=newest.question,
        model=newest.model,
        unit=newest.unit,
        start=newest.start,
        until=newest.until,
        closed=series[0].closed,
        epsilon=epsilons(newest),
        series=len(series),
        reports=sum(aggregator.store.report_counts(series[0]).values()) if public else None,
    )


def _view(
    aggregator: Aggregator, series: Series, counts: Mapping[str, VerdictCounts]
) -> SeriesView:
    collection = series.collection
    assert collection.linkage is not None  # noqa: S101 - filled in at birth
    return SeriesView(
        fingerprint=series.fingerprint,
        question=collection.question,
        closed=series.closed,
        model=collection.model,
        adjacency=collection.adjacency,
        unit=collection.unit,
        per_period=collection.per_period,
        answers=collection.answering,
        periods=collection.periods,
        start=collection.start,
        until=collection.until,
        late=collection.late,
        linkage=collection.linkage,
        held=collection.held,
        presence=collection.presence,
        segments=[Segment(name, list(values)) for name, values in collection.segments],
        epsilon=epsilons(collection),
        promise=promise(collection),
        figures=_figures(aggregator, series, counts.get(series.fingerprint, VerdictCounts())),
    )


def _figures(aggregator: Aggregator, series: Series, counts: VerdictCounts) -> SeriesFigures | None:
    if not counts_are_public(series.collection):
        return None
    sizes = aggregator.store.report_counts(series)
    reports = sum(sizes.values())
    tallies = [
        Tally(cell.period, opens(series.collection, cell.period).date(), cell.segment, number)
        for cell, number in sorted(sizes.items())
    ]
    return SeriesFigures(reports, tallies, counts.with_counted(reports), dict(counts.losses))
