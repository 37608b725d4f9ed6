"""The list of all collections, each by its newest definition."""

from __future__ import annotations

from datetime import date
from typing import Annotated

from msgspec import Meta, Struct

from veilcount_analysis.series.series import Series
from veilcount_analysis.text.privacy_guarantees import PrivacyFigures, counts_are_public, epsilons
from veilcount_shared.collection import Model
from veilcount_shared.periods import Unit

from ..json_results import Count
from .snapshot import Snapshot


class SeriesRef(Struct):
    """A series: a collection's name and the fingerprint of one of its definitions."""

    name: str
    fingerprint: str


class CollectionSummary(SeriesRef, rename={"start": "from"}):
    """A collection by its newest definition."""

    app: str
    question: str
    model: Model
    unit: Unit
    start: date
    until: date
    closed: bool
    epsilon: PrivacyFigures
    series: Annotated[Count, Meta(description="how many definitions it has had")]
    reports: Annotated[Count | None, Meta(description="null where no exact count may leave")]


class CollectionList(Struct):
    """All collections."""

    collections: list[CollectionSummary]


def list_collections(snapshot: Snapshot) -> CollectionList:
    """All collections, each by its newest definition."""
    named = snapshot.catalog.by_name
    return CollectionList([_summary(snapshot, series) for series in named.values()])


def _summary(snapshot: Snapshot, series: tuple[Series, ...]) -> CollectionSummary:
    newest = series[0].collection
    public = all(counts_are_public(one_series.collection) for one_series in series)
    return CollectionSummary(
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
        reports=sum(snapshot.store.report_counts(series[0]).values()) if public else None,
    )
