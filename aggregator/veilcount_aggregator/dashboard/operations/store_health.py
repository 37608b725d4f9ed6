"""How the store is, and what a check-up finds: what is wrong, and what to do.

Some findings name places of the machine (a file, an address): those are for admins.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...auth.audit_log import AuditEntry, load_audit_log
from ...doctor.finding import Finding, Severity, examine, worst
from ...doctor.store_checks import OF, STORED
from ...doctor.store_snapshot import StoreSnapshot
from ...retention.clock_guard import ClockReading, ClockState
from ...service import Aggregator
from ...store import DurabilityState, Store, StoreHealth
from ...store.restore_lock import release_lock_reason

FOR_ALL = frozenset({"durable", "definitions", "room", "retention", "verdicts"})
ELSEWHERE = frozenset({"remarks"})  # on definitions: shown where they are pushed
NOT_WELL = {Severity.WARN: "worth a look", Severity.WRONG: "wrong"}
TONES = {Severity.OK: "good", Severity.WARN: "weak", Severity.WRONG: "bad"}
DURABLE = {
    DurabilityState.YES: "outlives a power cut",
    DurabilityState.NO: "lost in a power cut",
    DurabilityState.UNKNOWN: "not known",
}


@dataclass(frozen=True, slots=True)
class Found:
    """One finding."""

    check: str
    tone: str
    state: str
    what: str
    fix: str


@dataclass(frozen=True, slots=True)
class Fact:
    """One fact of the store."""

    title: str
    figure: str
    says: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """The sentence on top."""

    tone: str
    says: str
    more: str


def findings(aggregator: Aggregator, store: Store, *, everything: bool) -> list[Finding]:
    """Return what a check-up finds; what names places of the machine only if everything may be
    told. The store may be a view of the shards that answer.
    """
    stored = StoreSnapshot(aggregator.settings, store, aggregator.clock())
    names = STORED.keys() - ELSEWHERE if everything else FOR_ALL
    checks = {name: look for name, look in STORED.items() if name in names}
    order = list(Severity)
    return sorted(examine(OF, checks, stored), key=lambda each: -order.index(each.state))


def found(each: Finding) -> Found:
    """Return a finding as a row."""
    return Found(each.check, TONES[each.state], each.state, each.what, each.fix)


def verdict(all_found: Sequence[Finding], health: StoreHealth, clock: ClockReading) -> Verdict:
    """Return whether anything is to be done."""
    if health.read_only:
        return Verdict(
            "bad", "No report is taken: the store is read-only.", "Its reports belong elsewhere."
        )
    if health.trouble:
        return Verdict("bad", "The store cannot be written.", f"{health.trouble}.")
    if clock.doubted:
        says = "No report is taken here: the clock of this host is in doubt."
        return Verdict("bad", says, f"What the guard found: {clock}.")
    if health.blocked:
        return Verdict("bad", "No report is taken: it would not be kept safely.", health.why)
    state = worst(all_found)
    if state is Severity.OK:
        return Verdict("good", "All is well.", "Reports are taken, and nothing stands out.")
    number = sum(each.state is state for each in all_found)
    things = "1 thing is" if number == 1 else f"{number} things are"
    return Verdict(TONES[state], f"{things} {NOT_WELL[state]}.", "Reports are taken.")


def facts(aggregator: Aggregator, health: StoreHealth) -> list[Fact]:
    """Return what the store is and promises."""
    taking = _taking(health)
    closed = bool(release_lock_reason(aggregator.store))
    journal = (
        "with a journal beside the store"
        if aggregator.curator.filter.journal
        else ("no journal: none is made")
    )
    return [
        Fact("Store", health.engine, "all of it, of all workers"),
        Fact("What is acknowledged", DURABLE[health.durable], health.why),
        Fact("Reports taken", *taking),
        *_shards(health),
        Fact("Clock", *_clock(aggregator.guard.reading)),
        Fact("Releases", "locked" if closed else "not locked", journal),
    ]


def _taking(health: StoreHealth) -> tuple[str, str]:
    if health.read_only:
        return "no", "read-only"
    if health.blocked:
        return "no", "until the store is durable again"
    return ("no", health.trouble) if health.trouble else ("yes", "not read-only")


def _shards(health: StoreHealth) -> list[Fact]:
    """Return how many shards take reports, where a store has several."""
    if health.shards == 1:
        return []
    figure = f"{health.serving} of {health.shards}"
    return [Fact("Shards that take reports", figure, "reports of the others wait on the devices")]


def _clock(reading: ClockReading) -> tuple[str, str]:
    """Return what is known of this host's clock."""
    if reading.doubted:
        return "in doubt", str(reading)
    if reading.state is ClockState.UNKNOWN:
        return "not known", "it was not compared with the store's"
    return "agrees", "with the store's, and with itself"


def acts(aggregator: Aggregator) -> list[AuditEntry]:
    """Return who changed what, the newest first."""
    return load_audit_log(aggregator.store)[::-1]
