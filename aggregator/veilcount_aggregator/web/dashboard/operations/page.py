"""The operations page: how the service runs; for admins also the host and the audit log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

from flask import request

from veilcount_analysis.series.series import Series
from veilcount_analysis.text import number_format
from veilcount_analysis.text.privacy_guarantees import counts_are_public
from veilcount_serving.findings import Finding, Severity, examine, worst
from veilcount_shared.schedule import period_start

from ....queries import Snapshot
from ....queries.checks.store_checks import STORED, TARGET
from ....queries.checks.store_snapshot import StoreSnapshot
from ....records.audit_log import load_audit_log
from ....records.gateway_keys import load_gateway_keys
from ....service import Aggregator
from ....store import DurabilityState, HealthStore, ShardHealth, Store, StoreHealth, TallyReader
from ....store.restore_lock import release_lock_reason
from ....store.retention.clock_guard import ClockReading, ClockState
from ..overview import TitledFigure
from ..pages import Content, Context, page, paginate
from . import counter_panels

PAGE_SIZE = 50  # entries of the audit log


@page("/operations", tab="Operations", order=3, every_app=True)
def operations(context: Context) -> Content:
    """Show how the service runs."""
    aggregator = context.aggregator
    health = aggregator.store.health()
    store, complete = aggregator.store.reachable_part()
    snapshot = replace(aggregator.snapshot(), store=store)
    checks = findings(aggregator, store, everything=context.is_admin)
    return {
        "conclusion": conclusion(checks, health, aggregator.guard.reading),
        "figures": figures(aggregator, health),
        "findings": checks,
        "tones": TONES,
        "shards": shard_rows(aggregator.store),
        "complete": complete,
        **_reports(snapshot),
        **_service(aggregator, snapshot),
        **(paginate(load_audit_log(aggregator.store)[::-1], PAGE_SIZE) if context.is_admin else {}),
    }


def _reports(snapshot: Snapshot) -> dict[str, Any]:
    """Return the verdicts of all collections, and of the chosen one by period."""
    notes, named = snapshot.store.service_counts(), snapshot.catalog.by_name
    table = counter_panels.by_collection(snapshot.store, named, notes)
    choosable = [name for name in table.rows if name in named]
    wanted = request.args.get("collection", "")
    chosen = wanted if wanted in choosable else next(iter(choosable), "")
    content = {"table": table, "choosable": choosable, "chosen": chosen}
    if not chosen:
        return content
    series = named[chosen][0]
    counts = counter_panels.verdict_counts(snapshot.store.report_counts(series), series, notes)
    return {**content, "verdicts": counter_panels.by_period(series, counts)}


def _service(aggregator: Aggregator, snapshot: Snapshot) -> dict[str, Any]:
    """Return the service's figures; the intake's only where all counts are public."""
    counts, named = snapshot.store.service_counts(), snapshot.catalog.by_name
    withheld = [
        name
        for name, series in named.items()
        if not all(counts_are_public(one_series.collection) for one_series in series)
    ]
    newest = (series[0] for series in named.values())
    return {
        "withheld": withheld,
        "latencies": counter_panels.latencies(counts, intake=not withheld),
        "relayed": None if withheld else _relayed(snapshot.store),
        "rejected": [] if withheld else counter_panels.rejected_bodies(counts),
        "commits": None if withheld else counter_panels.commit_chart(counts),
        "quotas": pseudonym_quotas(
            snapshot.store, newest, aggregator.settings.max_new_pseudonyms, snapshot.today
        ),
    }


def _relayed(store: Store) -> str:
    """Return how much comes through a relay, where there is a gateway."""
    if not load_gateway_keys(store):
        return ""
    through, accepted = counter_panels.relayed(store.service_counts())
    share = number_format.share(through / accepted) if accepted else "none"
    return f"{share} of {accepted:,} accepted requests with reports came through a relay"


FOR_ANALYSTS = frozenset(
    {"durable", "definitions", "new pseudonyms", "retention", "verdicts", "batches"}
)
ELSEWHERE = frozenset({"remarks"})  # on definitions: shown where they are pushed
SEVERITY = {Severity.WARN: "need attention", Severity.WRONG: "failed"}
TONES = {Severity.OK: "good", Severity.WARN: "weak", Severity.WRONG: "bad"}
DURABLE = {
    DurabilityState.YES: "survive a power failure",
    DurabilityState.NO: "lost in a power failure",
    DurabilityState.UNKNOWN: "not known",
    DurabilityState.MANAGED: "vouched for by the operator",
}
NEARLY_FULL = 0.8  # of a limit: as the alerts have it
LATEST = 3  # periods of a series that are listed
UNKNOWN = "unknown"
MIB = 1 << 20

Conclusion = tuple[str, str, str]  # tone, headline, details


# -- health ----------------------------------------------------------------------------------------


def findings(aggregator: Aggregator, store: Store, *, everything: bool) -> list[Finding]:
    """Return the doctor's findings, the worst first; `everything`: also those for admins.

    The store may be a view of the reachable shards.
    """
    stored = StoreSnapshot(aggregator.settings, store, aggregator.clock())
    names = STORED.keys() - ELSEWHERE if everything else FOR_ANALYSTS
    checks = {name: look for name, look in STORED.items() if name in names}
    order = list(Severity)
    return sorted(examine(TARGET, checks, stored), key=lambda finding: -order.index(finding.state))


def conclusion(found: Sequence[Finding], health: StoreHealth, clock: ClockReading) -> Conclusion:
    """Return whether anything needs to be done."""
    if health.read_only:
        return "bad", "No report is accepted: the store is read-only.", "Its data moved elsewhere."
    if health.trouble:
        return "bad", "The store cannot be written to.", f"{health.trouble}."
    if clock.doubted:
        headline = "No report is accepted: the clock of this host is not trusted."
        return "bad", headline, f"The clock guard reports: {clock}."
    if health.blocked:
        return "bad", "No report is accepted: it could be lost.", health.why
    state = worst(found)
    if state is Severity.OK:
        return "good", "No problems found.", "Reports are accepted, and every check passes."
    number = sum(status.state is state for status in found)
    checks = "1 check" if number == 1 else f"{number} checks"
    verb = SEVERITY[state].replace("need", "needs") if number == 1 else SEVERITY[state]
    return TONES[state], f"{checks} {verb}.", "Reports are accepted."


def figures(aggregator: Aggregator, health: StoreHealth) -> list[TitledFigure]:
    """Return the state of the store, the clock and releases."""
    locked = bool(release_lock_reason(aggregator.store))
    journal = "with a journal next to the store"
    if not aggregator.curator.filter.journal:
        journal = "no journal: not possible"
    shards = [
        TitledFigure(
            "Shards that accept reports",
            f"{health.serving} of {health.shards}",
            "reports for the others wait on the devices",
        )
    ]
    return [
        TitledFigure("Store", health.engine, "shared by all workers"),
        TitledFigure("Acknowledged reports", DURABLE[health.durable], health.why),
        TitledFigure("Reports accepted", *_accepting(health)),
        *(shards if health.shards > 1 else []),
        TitledFigure("Clock", *_clock(aggregator.guard.reading)),
        TitledFigure("Releases", "locked" if locked else "not locked", journal),
    ]


def _accepting(health: StoreHealth) -> tuple[str, str]:
    if health.read_only:
        return "no", "read-only"
    if health.blocked:
        return "no", "until the store is durable again"
    return ("no", health.trouble) if health.trouble else ("yes", "not read-only")


def _clock(reading: ClockReading) -> tuple[str, str]:
    if reading.doubted:
        return "not trusted", str(reading)
    if reading.state is ClockState.UNKNOWN:
        return "not known", "not compared with the store's clock"
    return "agrees", "with the store's clock, and with itself"


# -- shards ----------------------------------------------------------------------------------------


ShardRow = tuple[str, str, str, str, str]  # name, tone, state, memory, file


def shard_rows(store: HealthStore) -> list[ShardRow]:
    """Return the shards of a store that has several, and the server of its records."""
    shards = store.shards()
    if len(shards) <= 2:  # noqa: PLR2004 - records and one shard
        return []
    return [(shard.name, *_state(shard), _memory(shard), _file(shard)) for shard in shards]


def _state(shard: ShardHealth) -> tuple[str, str]:
    if not shard.up:
        return "bad", "unreachable"
    limit = shard.memory_limit_bytes
    if limit and (shard.memory_bytes or 0) > NEARLY_FULL * limit:
        return "weak", "nearly full"
    return "good", "up"


def _memory(shard: ShardHealth) -> str:
    if shard.memory_bytes is None:
        return UNKNOWN
    limit = shard.memory_limit_bytes
    of = f" of {limit / MIB:,.0f}" if limit else ""
    return f"{shard.memory_bytes / MIB:,.0f}{of} MiB"


def _file(shard: ShardHealth) -> str:
    if shard.aof_failing is None:
        return UNKNOWN
    if shard.aof_failing:
        return "the last write or rewrite failed"
    rewriting = "is being rewritten, " if shard.aof_rewriting else ""
    return f"{rewriting}{shard.aof_delayed_fsyncs or 0:,} delayed fsyncs"


# -- pseudonyms ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PseudonymQuota:
    """The new pseudonyms of one period, and their limit."""

    name: str
    begins: str
    new: int
    limit: int

    @property
    def nearly_full(self) -> bool:
        """Whether the limit may soon be reached."""
        return self.new >= NEARLY_FULL * self.limit


def pseudonym_quotas(
    store: TallyReader, series: Iterable[Series], limit: int, today: date
) -> list[PseudonymQuota]:
    """Return the latest open periods, the fullest first; only where counts are public."""
    quotas = [
        period
        for one in series
        if counts_are_public(one.collection) and not one.closed
        for period in _latest(store, one, limit, today)
    ]
    return sorted(quotas, key=lambda period: (-period.new, period.name, period.begins))


def _latest(
    store: TallyReader, series: Series, limit: int, today: date
) -> Iterator[PseudonymQuota]:
    oldest, newest = series.open_periods(today)
    new = store.new_pseudonyms(series)
    for period in range(max(oldest, newest - LATEST + 1), newest + 1):
        if period in new:
            begins = period_start(series.collection, period).date()
            yield PseudonymQuota(series.collection.name, str(begins), new[period], limit)
