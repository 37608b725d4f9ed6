"""The overview: all collections by state, and the intake in figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from flask import request

from veilcount_analysis.kinds.sample_adequacy import PLAIN
from veilcount_analysis.series.series import Series
from veilcount_analysis.text.privacy_guarantees import counts_are_public, epsilons
from veilcount_shared import Collection, periods
from veilcount_shared.periods import Unit
from veilcount_shared.verdict import Verdict

from ...queries import Snapshot
from ...queries.headline import latest_headline
from ...queries.releases import latest_release
from ...records.service_counters import REFUSED
from ...store import VERDICT, Cell, DurabilityState, ServiceCounter, Store, StoreHealth
from ...store.restore_lock import release_lock_reason
from .collection_status import State, collection_status, reports_by_period, trend
from .pages import Content, Context, page
from .releases.view import release_text

SEARCHABLE = 8  # collections: with more, the page has a search
WITHHELD = "withheld: an exact number would reveal whether one person took part"
RELEASED = "Estimates come from releases, each charged to a budget"


@page("/", tab="Overview", order=1)
def overview(context: Context) -> Content:
    """List all collections."""
    snapshot, find = context.aggregator.snapshot(), request.args.get("find", "").strip()
    sizes, catalog = public_sizes(snapshot), snapshot.catalog
    rows = [overview_row(snapshot, series, sizes) for series in catalog.by_name.values()]
    rows_shown = [row for row in rows if _matches(row["collection"], find)]
    return {
        "groups": {state: [r for r in rows_shown if r["status"].state is state] for state in State},
        "found": rows_shown,
        "intake": intake_summary(
            snapshot.store, catalog.series, sizes, _counters(context, snapshot), snapshot.today
        ),
        "total": len(rows),
        "find": find,
        "searchable": len(rows) > SEARCHABLE,
    }


def _counters(context: Context, snapshot: Snapshot) -> Mapping[ServiceCounter, int]:
    """Return the service counters; to a restricted key, those of its own series alone."""
    counts, series = snapshot.store.service_counts(), snapshot.catalog.series
    if not context.visit.apps:
        return counts
    return {counter: count for counter, count in counts.items() if counter.fingerprint in series}


def public_sizes(snapshot: Snapshot) -> dict[str, Mapping[Cell, int]]:
    """Return the counts of reports that are public, by fingerprint."""
    return {
        fingerprint: snapshot.store.report_counts(one_series)
        for fingerprint, one_series in snapshot.catalog.series.items()
        if counts_are_public(one_series.collection)
    }


def _shared_with(collection: Collection) -> str:
    """Name the collections that share its people."""
    if collection.group is not None:
        return f", one of {len(collection.group.questions)} of {collection.group.name}"
    return f", paired with {collection.twin}" if collection.twin else ""


def overview_row(
    snapshot: Snapshot, series: Sequence[Series], sizes: Mapping[str, Mapping[Cell, int]]
) -> Content:
    """Return the row of a collection, by its newest definition."""
    newest = series[0]
    collection, counts = newest.collection, sizes.get(newest.fingerprint)
    n = None if counts is None else sum(counts.values())
    tone, headline, adequacy = _finding(snapshot, newest, n)
    today = snapshot.today
    older = sum(bool(sizes.get(one_series.fingerprint)) for one_series in series[1:])
    return {
        "collection": collection,
        "model": f"{collection.model}{_shared_with(collection)}",
        "status": collection_status(newest, today),
        "n": "" if n is None else f"{n:,}",
        "withheld": WITHHELD,
        "epsilon": epsilons(collection),
        "tone": tone,
        "headline": headline,
        "adequacy": adequacy,
        "trend": None if counts is None else trend(newest, counts, today),
        "more": f"{len(series)} definitions, the newest is shown; {older} older with reports"
        if len(series) > 1
        else "",
    }


def _finding(snapshot: Snapshot, series: Series, n: int | None) -> tuple[str, str, str]:
    """Return the tone, the finding and the verdict on the sample size."""
    if n is None or series.collection.trust.releases:
        latest = latest_release(snapshot.store, series)
        return PLAIN, release_text(latest) if latest else "", RELEASED
    state, headline = latest_headline(snapshot, series, n)
    return state.tone, headline, state.text


def _matches(collection: Collection, find: str) -> bool:
    return find.casefold() in f"{collection.name}\n{collection.question}".casefold()


Sizes = Mapping[str, Mapping[Cell, int]]  # by fingerprint

WEEK = timedelta(days=7)
DAY = timedelta(days=1)
REASONS = {
    Verdict.DUPLICATE: "duplicate",
    Verdict.OVER_BUDGET: "over budget",
    Verdict.STALE: "too late",
    Verdict.CLOSED: "for closed collections",
    Verdict.MALFORMED: "malformed",
    Verdict.FULL: "over a limit",
    Verdict.UNKNOWN_COLLECTION: "of unknown definitions",
    Verdict.EARLY: "too early",
}


@dataclass(frozen=True, slots=True)
class TitledFigure:
    """A titled figure with a note."""

    title: str
    figure: str
    note: str


def intake_summary(
    store: Store,
    series: Mapping[str, Series],
    sizes: Sizes,
    noted: Mapping[ServiceCounter, int],
    today: date,
) -> Content:
    """Return figures of the intake on a UTC day, and alerts; `sizes` are the public counts.

    Reports are counted by the period they are for; the time of arrival is not stored. Collections
    whose exact counts are secret are in none of these sums, and nothing reveals them by
    subtraction.
    """
    health = store.health()
    figures = (*_recent(series, sizes, today), _rejected(series, sizes, noted), _store(health))
    return {"figures": figures, "alerts": list(_alerts(store, series, health))}


# -- recent reports -------------------------------------------------------------------------------


def _recent(series: Mapping[str, Series], sizes: Sizes, today: date) -> Iterator[TitledFigure]:
    daily = _by_day(series, sizes, {Unit.EVENT, Unit.DAY}, today)
    if daily is not None:
        yesterday = daily[today - DAY]
        yield TitledFigure("Reports for today", f"{daily[today]:,}", f"{yesterday:,} for yesterday")
        week = sum(daily[today - n * DAY] for n in range(1, 8))
        before = sum(daily[today - n * DAY] for n in range(8, 15))
        yield TitledFigure(
            "The 7 days before", f"{week:,}", f"{before:,} for the 7 days before those"
        )
    for unit in (Unit.WEEK, Unit.MONTH):
        counts = _by_day(series, sizes, {unit}, today)
        if counts is not None:
            yield _of_period(unit, counts, today)


def _by_day(
    series: Mapping[str, Series], sizes: Sizes, units: set[Unit], today: date
) -> Counter[date] | None:
    """Return reports by first day of their period; None: no recent collection has these units."""
    by_day: Counter[date] = Counter()
    recent = False
    for fingerprint, by_cell in sizes.items():
        collection = series[fingerprint].collection
        if collection.unit not in units:
            continue
        recent |= collection.start <= today < collection.until + 2 * WEEK
        for period, number in reports_by_period(by_cell).items():
            by_day[periods.first_day(collection.unit, collection.start, period)] += number
    return by_day if recent else None


def _of_period(unit: Unit, counts: Mapping[date, int], today: date) -> TitledFigure:
    this = _begins(unit, today)
    last = _begins(unit, this - DAY)
    return TitledFigure(
        f"Reports for this {unit}", f"{counts[this]:,}", f"so far; {counts[last]:,} for the last"
    )


def _begins(unit: Unit, day: date) -> date:
    return periods.first_day(unit, day, 0)


# -- rejected reports ------------------------------------------------------------------------------


def _rejected(
    series: Mapping[str, Series], sizes: Sizes, noted: Mapping[ServiceCounter, int]
) -> TitledFigure:
    """Return what was rejected, by reason, since the store was created."""
    verdicts: Counter[str] = Counter()
    whole = 0
    public = all(counts_are_public(value.collection) for value in series.values())
    for note, number in noted.items():
        secret = note.fingerprint in series and note.fingerprint not in sizes
        if note.what == VERDICT and not secret:
            verdicts[note.word] += number
        elif note.what == REFUSED and public:
            whole += number
    counted = sum(sum(by_cell.values()) for by_cell in sizes.values())
    again = verdicts.pop(Verdict.DUPLICATE, 0)
    reasons = [f"{number:,} {REASONS[Verdict(word)]}" for word, number in verdicts.most_common()]
    reasons += [f"{whole:,} whole batches"] if whole else []
    reasons += [f"{again:,} duplicate{'s' * (again != 1)}, counted once"] if again else []
    details = "; ".join([f"{counted:,} counted", *reasons])
    return TitledFigure("Rejected reports", f"{sum(verdicts.values()):,}", details)


# -- the store -------------------------------------------------------------------------------------

_DURABLE = {
    DurabilityState.YES: ("Durable", "acknowledged reports survive a power failure"),
    DurabilityState.NO: ("Not durable", "a power failure may lose acknowledged reports"),
    DurabilityState.MANAGED: ("Managed", "the operator vouches that acknowledged reports survive"),
    DurabilityState.UNKNOWN: (
        "Unknown",
        "whether a power failure loses reports is not known to the server",
    ),
}


def _store(health: StoreHealth) -> TitledFigure:
    figure, note = _DURABLE[health.durable]
    return TitledFigure("Store", figure, f"{health.engine}: {health.why or note}")


def _alerts(store: Store, series: Mapping[str, Series], health: StoreHealth) -> Iterator[str]:
    if health.read_only:
        yield ("The store is read-only: no report is accepted. `veilcount store unfence` lifts it.")
    if health.trouble:
        yield (f"The store cannot be written to: {health.trouble}.")
    if health.blocked:
        yield (
            f"No report is accepted until the store is durable again: {health.why}."
            " `veilcount store check` shows the command."
        )
    central = any(value.collection.trust.releases for value in series.values())
    if central and release_lock_reason(store):
        yield (
            "Releases are locked: the store may lack recorded spend."
            " `veilcount store unlock --journal FILE` restores it."
        )
