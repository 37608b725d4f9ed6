"""What a deployment publishes of a collection: figures that anybody may have, and their counters.

Of a local collection it is what devices randomized before they sent it, summed: more figures of it
reveal no more of an answer than its epsilon. What no noise protects is who took part. So a period
leaves when it can no longer change, with at least `LEAST` reports, and by segments only if each of
them has as many, or none: two publications never differ by a few people. All figures are computed
from the published counters, so a stranger computes the same. Of a curator's collection the releases
leave, which were charged. Of a shuffled one nothing does: its shuffler knows its cover reports, and
would subtract them from a published tally [docs/threat-model.md, "Published figures"].
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

import numpy as np
from msgspec.structs import replace

from veilcount_analysis.counts import CountersSource, OpenCounters, join_open_counters
from veilcount_analysis.errors import CountsError
from veilcount_analysis.kinds.estimate_query import MOST_ROWS, EstimateQuery
from veilcount_analysis.kinds.headline import Headline
from veilcount_analysis.mechanisms import handler_of
from veilcount_analysis.series.series import Series
from veilcount_shared import Collection
from veilcount_shared.collection import Model
from veilcount_shared.domain import OpenStrings
from veilcount_shared.periods import GRACE
from veilcount_shared.schedule import period_end
from veilcount_shared.shuffling.times import UNFINISHED_FOR, grace_end

from ..records.definitions import Catalog
from ..store import Cell
from .estimate import estimate_counts
from .estimate_schema import EstimateResult
from .headline import headline
from .published_counters import published_snapshot
from .releases import ReleaseView, series_releases
from .snapshot import CollectionNotFound, Snapshot, Tallies

LEAST = 100  # reports of a period, and of a segment in it
MOST_COUNTERS = 2_000_000  # of a collection, over its periods: some 15 MB of files
SHUFFLED = (
    "its shuffler knows its cover reports, and would subtract them from a published tally: publish"
    " local or central collections"
)
OPEN_STRINGS = (
    "its values are open: each search among them is counted, and nobody counts a stranger's"
)

Sign = Callable[[bytes], bytes]


def publishing_problem(collection: Collection) -> str:
    """Return why a collection is not published; empty: it may be."""
    if collection.trust.releases:
        return ""
    if collection.model is Model.SHUFFLED:
        return SHUFFLED
    if isinstance(collection.domain, OpenStrings):
        return OPEN_STRINGS
    if collection.inputs > MOST_ROWS:
        return f"it has {collection.inputs:,} values, at most {MOST_ROWS:,} in one result"
    counters = collection.mechanism.counters * collection.cells * collection.periods
    if counters > MOST_COUNTERS:
        return f"its counters are {counters:,} over all periods, at most {MOST_COUNTERS:,}"
    return ""


def unpublished(snapshot: Snapshot, names: Iterable[str]) -> Iterator[str]:
    """Yield why nothing is published of a name; an unknown one may be pushed later."""
    for name in names:
        try:
            problems = [publishing_problem(one.collection) for one in snapshot.named(name)]
        except CollectionNotFound as error:
            yield str(error)
            continue
        if all(problems):
            yield f"{name}: {problems[0]}"


@dataclass(frozen=True, slots=True)
class PublishedFigures:
    """What is published of a collection: counters and their estimate, or releases.

    `snapshot` has the counters alone: what is estimated of it, a stranger can estimate too.
    """

    series: Series
    counters: tuple[OpenCounters, ...] = ()
    estimate: EstimateResult | None = None
    snapshot: Tallies | None = None
    headline: Headline | None = None
    releases: tuple[ReleaseView, ...] = ()


def published_figures(snapshot: Snapshot, name: str, sign: Sign | None = None) -> PublishedFigures:
    """Return the published figures of a collection: of its newest definition that has any.

    Raise CountsError for a collection of which nothing may be.
    """
    definitions = snapshot.named(name)
    allowed = [one for one in definitions if not publishing_problem(one.collection)]
    if not allowed:
        problem = publishing_problem(definitions[0].collection)
        raise CountsError("publish", name, problem)
    publications = (_figures(snapshot, series, sign) for series in allowed)
    newest = PublishedFigures(allowed[0])
    return next((one for one in publications if one.counters or one.releases), newest)


def _figures(snapshot: Snapshot, series: Series, sign: Sign | None) -> PublishedFigures:
    if series.collection.trust.releases:
        released = series_releases(snapshot.store, series).releases
        return PublishedFigures(series, releases=tuple(released))
    counters = tuple(open_counters(snapshot, series, sign))
    if not counters:
        return PublishedFigures(series)
    source = join_open_counters(counters)
    estimate = published_estimate(source)
    published = published_snapshot(source)
    finding = _headline(published, source.series, estimate)
    return PublishedFigures(source.series, counters, estimate, published, finding)


def published_estimate(source: CountersSource) -> EstimateResult:
    """Return the figures of published counters: none where so few reports are noise."""
    result = estimate_counts(source, EstimateQuery(size=MOST_ROWS))
    (series,) = result.series
    ranges = [one if one.usable else replace(one, figures=()) for one in series.ranges]
    return replace(result, series=[replace(series, ranges=ranges)])


def _headline(snapshot: Tallies, series: Series, estimate: EstimateResult) -> Headline | None:
    """Return the finding, by the published counters alone."""
    (estimated,) = estimate.series
    newest = estimated.ranges[-1]
    if not newest.figures:
        return None
    query, leads = EstimateQuery(series=(series.fingerprint,)), newest.leader is not None
    return headline(snapshot, series, query, newest.figures, estimated.facts, leads=leads)


# -- open counters ---------------------------------------------------------------------------------


def open_counters(
    snapshot: Snapshot, series: Series, sign: Sign | None = None
) -> Iterator[OpenCounters]:
    """Yield the counters of each period that can no longer change and has reports enough."""
    related = related_collections(snapshot.catalog, series.collection)
    for period in range(series.collection.periods):
        if final_day(series.collection, period) > snapshot.today:
            return
        by_cell = [
            snapshot.store.counters(series, [Cell(period, cell)])
            for cell in range(series.collection.cells)
        ]
        report_count = handler_of(series.collection.mechanism).report_count
        reports = list(map(report_count, by_cell))
        if sum(reports) < LEAST:
            continue
        by_segment = all(number == 0 or number >= LEAST for number in reports)
        counters = tuple(by_cell) if by_segment else (np.sum(by_cell, axis=0),)
        file = OpenCounters(series.collection, period, counters, by_segment, related)
        yield file if sign is None else file.with_signature(sign(file.signed_message()))


def final_day(collection: Collection, period: int) -> date:
    """Return the first UTC day on which no report of a period can be counted any more."""
    if collection.batch is not None:
        return (grace_end(collection, period) + UNFINISHED_FOR).date()
    return period_end(collection, period).date() + timedelta(days=collection.late) + GRACE


def related_collections(catalog: Catalog, collection: Collection) -> tuple[Collection, ...]:
    """Return the collections that a definition is declared with: its group's, and its twin."""
    group = collection.group
    names = [name for name in (group.questions if group else ()) if name != collection.name]
    names += [collection.twin] if collection.twin and collection.twin not in names else []
    candidates = [[one.collection for one in catalog.by_name[name]] for name in names]
    return tuple(_declared_with(collection, definitions) for definitions in candidates)


def _declared_with(collection: Collection, definitions: Sequence[Collection]) -> Collection:
    """Return the newest definition of a name that has the same group, or is the twin."""
    same = (
        one for one in definitions if one.group == collection.group or one.twin == collection.name
    )
    return next(same, definitions[0])
