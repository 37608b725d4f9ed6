"""How the intake is, for the overview: what came for these days, what was refused, the store.

A report is counted by the period it is for; when it came is not kept. Where a trusted curator's
collection must not tell its counts, its reports and its refusals are in none of these sums, and
what could tell them by subtraction is left out too.
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
from .collection_status import counts_of

Sizes = Mapping[str, Mapping[Cell, int]]  # by fingerprint

WEEK = timedelta(days=7)
DAY = timedelta(days=1)
WHY = {
    Verdict.DUPLICATE: "came twice",
    Verdict.OVER_BUDGET: "over the budget",
    Verdict.STALE: "too late",
    Verdict.CLOSED: "to closed collections",
    Verdict.MALFORMED: "no message of the design",
    Verdict.FULL: "beyond a limit",
    Verdict.UNKNOWN_COLLECTION: "of unknown definitions",
    Verdict.EARLY: "too early",
}


@dataclass(frozen=True, slots=True)
class Fact:
    """One figure of the intake, and what stands beside it."""

    title: str
    figure: str
    says: str


@dataclass(frozen=True, slots=True)
class Standstill:
    """Why something is not taken or given now, and what to do."""

    text: str


@dataclass(frozen=True, slots=True)
class Intake:
    """The intake's figures, and what stops it."""

    facts: tuple[Fact, ...]
    troubles: tuple[Standstill, ...]


def intake(
    store: Store,
    series: Mapping[str, Series],
    sizes: Sizes,
    noted: Mapping[ServiceCounter, int],
    today: date,
) -> Intake:
    """Return how the intake is on a UTC day; `sizes` are those that may be told."""
    health = store.health()
    facts = (*_came(series, sizes, today), _refused(series, sizes, noted), _store(health))
    return Intake(facts, tuple(_troubles(store, series, health)))


# -- what came -------------------------------------------------------------------------------------


def _came(series: Mapping[str, Series], sizes: Sizes, today: date) -> Iterator[Fact]:
    daily = _by_day(series, sizes, {Unit.EVENT, Unit.DAY}, today)
    if daily is not None:
        yesterday = daily[today - DAY]
        yield Fact("Reports for today", f"{daily[today]:,}", f"{yesterday:,} for yesterday")
        week = sum(daily[today - n * DAY] for n in range(1, 8))
        before = sum(daily[today - n * DAY] for n in range(8, 15))
        yield Fact("For the 7 days before", f"{week:,}", f"{before:,} for the 7 days before those")
    for unit in (Unit.WEEK, Unit.MONTH):
        counts = _by_day(series, sizes, {unit}, today)
        if counts is not None:
            yield _of_period(unit, counts, today)


def _by_day(
    series: Mapping[str, Series], sizes: Sizes, units: set[Unit], today: date
) -> Counter[date] | None:
    """Return the reports of each period by its first day; None: nothing is asked so, lately."""
    found: Counter[date] = Counter()
    asked = False
    for fingerprint, told in sizes.items():
        collection = series[fingerprint].collection
        if collection.unit not in units:
            continue
        asked |= collection.start <= today < collection.until + 2 * WEEK
        for period, number in counts_of(told).items():
            found[periods.first_day(collection.unit, collection.start, period)] += number
    return found if asked else None


def _of_period(unit: Unit, counts: Mapping[date, int], today: date) -> Fact:
    this = _begins(unit, today)
    last = _begins(unit, this - DAY)
    return Fact(
        f"Reports for this {unit}", f"{counts[this]:,}", f"so far; {counts[last]:,} for the last"
    )


def _begins(unit: Unit, day: date) -> date:
    return periods.first_day(unit, day, 0)


# -- what was refused ------------------------------------------------------------------------------


def _refused(
    series: Mapping[str, Series], sizes: Sizes, noted: Mapping[ServiceCounter, int]
) -> Fact:
    """Return what was not counted, by the reason: since the store was made."""
    verdicts: Counter[str] = Counter()
    whole = 0
    public = all(counts_are_public(each.collection) for each in series.values())
    for note, number in noted.items():
        secret = note.fingerprint in series and note.fingerprint not in sizes
        if note.what == VERDICT and not secret:
            verdicts[note.word] += number
        elif note.what == REFUSED and public:
            whole += number
    counted = sum(sum(told.values()) for told in sizes.values())
    again = verdicts.pop(Verdict.DUPLICATE, 0)
    reasons = [f"{number:,} {WHY[Verdict(word)]}" for word, number in verdicts.most_common()]
    reasons += [f"{whole:,} batches whole"] if whole else []
    reasons += [f"{again:,} came again, and count once"] if again else []
    beside = "; ".join([f"beside {counted:,} counted", *reasons])
    return Fact("Refused reports", f"{sum(verdicts.values()):,}", beside)


# -- the store -------------------------------------------------------------------------------------

_DURABLE = {
    DurabilityState.YES: ("DurabilityState", "what is acknowledged outlives a power cut"),
    DurabilityState.NO: ("Not durable", "a power cut may lose what was acknowledged"),
    DurabilityState.UNKNOWN: (
        "Unknown",
        "whether a power cut loses anything cannot be seen from here",
    ),
}


def _store(health: StoreHealth) -> Fact:
    figure, says = _DURABLE[health.durable]
    return Fact("Store", figure, f"{health.engine}: {health.why or says}")


def _troubles(
    store: Store, series: Mapping[str, Series], health: StoreHealth
) -> Iterator[Standstill]:
    if health.read_only:
        yield Standstill(
            "The store is read-only: no report is taken. `veilcount store allow-writes` lifts it."
        )
    if health.trouble:
        yield Standstill(f"The store cannot be written: {health.trouble}.")
    if health.blocked:
        yield Standstill(
            f"No report is taken until the store is durable again: {health.why}."
            " `veilcount store check` has the command."
        )
    central = any(each.collection.model is Model.CENTRAL for each in series.values())
    if central and release_lock_reason(store):
        yield Standstill(
            "Releases are locked: the store may have forgotten what was spent."
            " `veilcount store unlock --journal FILE` enters it again."
        )
