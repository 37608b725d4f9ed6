"""Endpoints of collections: list, show, push definitions, close."""

from __future__ import annotations

from collections.abc import Mapping

from veilcount_analysis.series.series import Series
from veilcount_analysis.text.privacy_guarantees import counts_are_public, epsilons, promise
from veilcount_shared.schedule import period_start

from ... import queries
from ...queries import CollectionList
from ...records.api_keys import Role
from ...records.definitions import DefinitionSource, load_sources
from ...records.definitions import close_collection as close_series
from ...records.service_counters import VerdictCounts, counts_by_series
from ...records.shuffled_batches.batch_states import batch_states
from ...service import Aggregator
from ...store.tally_size import worst_case
from .endpoint import Api, endpoint
from .problems import refusal
from .schemas import (
    CloseResult,
    CollectionDetail,
    Definitions,
    LoadedDefinitions,
    PeriodBatchInfo,
    PeriodCount,
    PushedSeries,
    PushResult,
    SegmentValues,
    SeriesCounts,
    SeriesDetail,
)

TOML_TYPE = "application/toml"


def definitions_from_toml(data: bytes) -> Definitions:
    """Return a definitions file that is sent as it is, without value lists."""
    try:
        return Definitions(data.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise refusal("bad-request", "the body is not UTF-8", "body") from None


@endpoint("GET", "/v1/collections", Role.ANALYST, returns=CollectionList)
def list_collections(api: Api) -> CollectionList:
    """All collections, each by its newest definition."""
    return queries.list_collections(api.aggregator.snapshot())


@endpoint(
    "POST",
    "/v1/collections",
    Role.ADMIN,
    takes=Definitions,
    other_bodies={TOML_TYPE: definitions_from_toml},
    returns=PushResult,
    statuses=(200, 201),
    problems=("bad-definition", "counter-memory"),
    computes=True,
)
def push_definitions(api: Api, body: Definitions) -> tuple[PushResult, int]:
    """Add the series of a definitions file; every worker accepts their reports from now on.

    Value lists that the file names are sent along; nothing is read from the server's disk.
    """
    aggregator = api.aggregator
    new = aggregator.push(DefinitionSource(body.text, body.files), api.key.id)
    shards = aggregator.store.shard_count()
    pushed = [
        PushedSeries(one_series.name, one_series.fingerprint, worst_case(one_series, shards))
        for one_series in new
    ]
    return PushResult(pushed), 201 if new else 200


@endpoint("GET", "/v1/definitions", Role.ANALYST, returns=LoadedDefinitions, every_app=True)
def list_definitions(api: Api) -> LoadedDefinitions:
    """All definitions files as they were loaded, with the value lists that they name."""
    sources = load_sources(api.aggregator.store)
    series = api.aggregator.known().catalog.series
    return LoadedDefinitions(
        [Definitions(source.text, dict(source.files)) for source in sources],
        sorted(fingerprint for fingerprint, one_series in series.items() if one_series.closed),
    )


@endpoint("GET", "/v1/collections/{name}", Role.ANALYST, returns=CollectionDetail)
def show_collection(api: Api, name: str) -> CollectionDetail:
    """One collection's series: what each guarantees, and its reports so far."""
    aggregator, series = api.aggregator, series_of(api, name)
    counts = counts_by_series(aggregator.store.service_counts())
    return CollectionDetail(
        name, [_detail(aggregator, one_series, counts) for one_series in series]
    )


@endpoint("POST", "/v1/collections/{name}/close", Role.ADMIN, returns=CloseResult)
def close_collection(api: Api, name: str) -> CloseResult:
    """Accept no more reports for a collection, under any of its definitions."""
    aggregator = api.aggregator
    aggregator.catalog_cache.refresh()
    series_of(api, name)
    closed = close_series(
        aggregator.store,
        name,
        aggregator.clock(),
        api.key.id,
        aggregator.catalog_cache.catalog.read,
    )
    aggregator.catalog_cache.refresh()
    return CloseResult([series.fingerprint for series in closed])


def series_of(api: Api, name: str) -> tuple[Series, ...]:
    """Return a collection's series, the newest first, or refuse an unknown name."""
    series = api.aggregator.known().catalog.by_name.get(name)
    if series is None:
        raise refusal("not-found", "no collection has this name: GET /v1/collections lists them")
    return series


def _detail(
    aggregator: Aggregator, series: Series, counts: Mapping[str, VerdictCounts]
) -> SeriesDetail:
    collection = series.collection
    assert collection.linkage is not None  # noqa: S101 - filled in at birth
    return SeriesDetail(
        fingerprint=series.fingerprint,
        question=collection.question,
        closed=series.closed,
        model=collection.model,
        adjacency=collection.adjacency,
        unit=collection.unit,
        per_day=collection.per_day,
        answers=collection.answering,
        periods=collection.periods,
        start=collection.start,
        until=collection.until,
        late=collection.late,
        linkage=collection.linkage,
        held=collection.held,
        presence=collection.presence,
        segments=[SegmentValues(name, list(values)) for name, values in collection.segments],
        epsilon=epsilons(collection),
        promise=promise(collection),
        figures=_figures(aggregator, series, counts.get(series.fingerprint, VerdictCounts())),
        batches=_batches(aggregator, series),
    )


def _batches(aggregator: Aggregator, series: Series) -> list[PeriodBatchInfo]:
    store = aggregator.store
    return [
        PeriodBatchInfo(
            batch.period,
            period_start(series.collection, batch.period).date(),
            batch.state,
            batch.text,
        )
        for batch in batch_states(store, store, series, aggregator.clock())
    ]


def _figures(aggregator: Aggregator, series: Series, counts: VerdictCounts) -> SeriesCounts | None:
    if not counts_are_public(series.collection):
        return None
    sizes = aggregator.store.report_counts(series)
    reports = sum(sizes.values())
    tallies = [
        PeriodCount(
            cell.period, period_start(series.collection, cell.period).date(), cell.segment, number
        )
        for cell, number in sorted(sizes.items())
    ]
    return SeriesCounts(reports, tallies, counts.with_counted(reports), dict(counts.losses))
