"""The overview: all collections by state, and the intake in figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from flask import request

from veilcount_shared import Collection
from veilcount_shared.collection import Model

from ..queries import Snapshot
from ..series.series import Series
from ..store import Cell
from ..text.privacy_guarantees import PrivacyFigures, counts_are_public, epsilons
from .collection.definition_history import counted
from .collection.sample_adequacy import PLAIN, Terms, sample_adequacy
from .collection_status import CollectionStatus, State, Trend, collection_status, trend
from .intake_summary import intake_summary
from .pages import Content, Context, page

SEARCHABLE = 8  # collections: with more, the page has a search
WITHHELD = "withheld: an exact number would reveal whether one person took part"
RELEASED = "Estimates come from releases, each charged to a budget"


@dataclass(frozen=True, slots=True)
class OverviewRow:
    """One collection, by its newest definition."""

    collection: Collection
    model: str
    status: CollectionStatus
    n: str
    counted: str
    epsilon: PrivacyFigures
    tone: str
    adequacy: str
    trend: Trend | None
    more: str


@page("/", tab="Overview", order=1)
def overview(context: Context) -> Content:
    """List all collections."""
    snapshot, find = context.aggregator.snapshot(), request.args.get("find", "").strip()
    sizes, catalog = public_sizes(snapshot), snapshot.catalog
    rows = [overview_row(series, sizes, snapshot.today) for series in catalog.by_name.values()]
    found = [each for each in rows if matches(each, find)]
    return {
        "groups": {state: [r for r in found if r.status.state is state] for state in State},
        "found": found,
        "intake": intake_summary(
            snapshot.store,
            catalog.series,
            sizes,
            snapshot.store.service_counts(),
            snapshot.today,
        ),
        "total": len(rows),
        "find": find,
        "searchable": len(rows) > SEARCHABLE,
    }


def public_sizes(snapshot: Snapshot) -> dict[str, Mapping[Cell, int]]:
    """Return the counts of reports that are public, by fingerprint."""
    return {
        fingerprint: snapshot.store.report_counts(each)
        for fingerprint, each in snapshot.catalog.series.items()
        if counts_are_public(each.collection)
    }


def overview_row(
    series: Sequence[Series], sizes: Mapping[str, Mapping[Cell, int]], today: date
) -> OverviewRow:
    """Return the row of a collection."""
    newest = series[0]
    collection, counts = newest.collection, sizes.get(newest.fingerprint)
    n = None if counts is None else sum(counts.values())
    tone, adequacy = _adequacy(collection, n)
    pair = f", paired with {collection.twin}" if collection.twin else ""
    older = sum(bool(sizes.get(each.fingerprint)) for each in series[1:])
    return OverviewRow(
        collection=collection,
        model=f"{collection.model}{pair}",
        status=collection_status(newest, today),
        n="" if n is None else f"{n:,}",
        counted=WITHHELD if n is None else counted(collection),
        epsilon=epsilons(collection),
        tone=tone,
        adequacy=adequacy,
        trend=None if counts is None else trend(newest, counts, today),
        more=f"{len(series)} definitions, the newest is shown; {older} older with reports"
        if len(series) > 1
        else "",
    )


def _adequacy(collection: Collection, n: int | None) -> tuple[str, str]:
    if n is None or collection.model is Model.CENTRAL:
        return PLAIN, RELEASED
    once = collection.answering * collection.per_period == 1
    found = sample_adequacy(collection, n, Terms(sampled=once))
    return found.tone, found.text


def matches(row: OverviewRow, find: str) -> bool:
    """Whether the name or the question of a collection contains a text."""
    collection = row.collection
    return find.casefold() in f"{collection.name}\n{collection.question}".casefold()
