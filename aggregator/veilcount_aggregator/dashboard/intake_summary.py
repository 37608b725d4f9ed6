"""The intake in figures, for the overview: recent reports, rejected reports, the store.

Reports are counted by the period they are for; the time of arrival is not stored. Collections whose
exact counts are secret are in none of these sums, and nothing reveals them by subtraction.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, timedelta

from veilcount_shared import periods
from veilcount_shared.collection import Model
from veilcount_shared.periods import Unit
from veilcount_shared.verdict import Verdict

from ..api.request_metrics import REFUSED
from ..series.series import Series
from ..store import VERDICT, Cell, DurabilityState, ServiceCounter, Store, StoreHealth
from ..store.restore_lock import release_lock_reason
from ..text.privacy_guarantees import counts_are_public
from .collection_status import reports_by_period

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


@dataclass(frozen=True, slots=True)
class IntakeSummary:
    """The intake's figures, and alerts about what stops it."""

    figures: tuple[TitledFigure, ...]
    alerts: tuple[str, ...]


def intake_summary(
    store: Store,
    series: Mapping[str, Series],
    sizes: Sizes,
    noted: Mapping[ServiceCounter, int],
    today: date,
) -> IntakeSummary:
    """Summarize the intake on a UTC day; `sizes` are the public counts."""
    health = store.health()
    figures = (*_recent(series, sizes, today), _rejected(series, sizes, noted), _store(health))
    return IntakeSummary(figures, tuple(_alerts(store, series, health)))


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
    found: Counter[date] = Counter()
    recent = False
    for fingerprint, by_cell in sizes.items():
        collection = series[fingerprint].collection
        if collection.unit not in units:
            continue
        recent |= collection.start <= today < collection.until + 2 * WEEK
        for period, number in reports_by_period(by_cell).items():
            found[periods.first_day(collection.unit, collection.start, period)] += number
    return found if recent else None


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
    public = all(counts_are_public(each.collection) for each in series.values())
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
    reasons += [f"{again:,} duplicates, counted once"] if again else []
    details = "; ".join([f"{counted:,} counted", *reasons])
    return TitledFigure("Rejected reports", f"{sum(verdicts.values()):,}", details)


# -- the store -------------------------------------------------------------------------------------

_DURABLE = {
    DurabilityState.YES: ("Durable", "acknowledged reports survive a power failure"),
    DurabilityState.NO: ("Not durable", "a power failure may lose acknowledged reports"),
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
    central = any(each.collection.model is Model.CENTRAL for each in series.values())
    if central and release_lock_reason(store):
        yield (
            "Releases are locked: the store may lack recorded spend."
            " `veilcount store unlock --journal FILE` restores it."
        )
