"""One aggregator, put together: a store, and what stands in front of it. No web in here."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime

from veilcount_shared.collection import Model
from veilcount_shared.verdict import Verdict

from .catalog.cache import CatalogCache, CatalogSnapshot
from .catalog.definitions import DefinitionSource, add_definitions, read_source
from .central.curator import Curator
from .central.privacy_filter import PrivacyFilter
from .central.release_journal import ReleaseJournal
from .central.store_confirmation import SETTLING_SECONDS
from .errors import ClockUntrusted, StoreError, StoreUnavailable
from .ingest.decode import DecodedBody
from .ingest.group_commit import GroupCommitter
from .ingest.pipeline import IntakePipeline, require_trusted_day
from .ingest.pseudonym_limit import ANY, PseudonymLimit, RequestOrigin, limit_secret_reader
from .ingest.service_counters import ServiceCounters
from .queries import Snapshot
from .retention.clock_guard import Clock, ClockGuard
from .retention.retention_guard import DROPPED, RetentionGuard
from .series.series import utc_day
from .settings import Settings
from .store import MemoryLimits, Store, open_store

HOUR = 3600


@dataclass(frozen=True, slots=True)
class Aggregator:
    """What every door of a deployment shares, in one process."""

    settings: Settings
    store: Store
    watch: CatalogCache
    intake: IntakePipeline
    committer: GroupCommitter
    service_counters: ServiceCounters
    curator: Curator
    clock: Clock
    guard: ClockGuard
    retention: RetentionGuard

    @classmethod
    def open(
        cls,
        settings: Settings,
        clock: Clock = lambda: datetime.now(UTC),
        seconds: Callable[[], float] = time.monotonic,
    ) -> Aggregator:
        """Open the store (in development mode, make it) and load the definitions that are given."""
        store = open_store(settings.store, make=settings.dev)
        watch = CatalogCache(store, seconds)
        for file in settings.collections:
            _load(store, watch, read_source(file), clock())
        service_counters = ServiceCounters(seconds)
        limit = PseudonymLimit(
            settings.max_new_pseudonyms,
            limit_secret_reader(store),
            settings.max_new_pseudonyms_per_hour,
            settings.max_pseudonyms_per_body,
        )
        memory = MemoryLimits(settings.max_series_memory, settings.max_store_memory)
        committer = GroupCommitter(store, service_counters)
        intake = IntakePipeline(committer.commit, service_counters, limit, memory)
        settling = 0 if settings.store.startswith("sqlite:") else SETTLING_SECONDS
        curator = Curator(PrivacyFilter(store, ReleaseJournal.from_settings(settings), settling))
        guard = ClockGuard(store, clock, seconds)
        retention = RetentionGuard(store, guard, clock)
        made = cls(
            settings,
            store,
            watch,
            intake,
            committer,
            service_counters,
            curator,
            clock,
            guard,
            retention,
        )
        with suppress(StoreError):  # looked at again before each release; the intake goes on
            made.confirm()
        return made

    def replicate(self) -> None:
        """Have a copy of what the intake needs on every shard."""
        self.watch.replicate()

    def known(self) -> CatalogSnapshot:
        """Return the definitions and keys of now."""
        return self.watch.known()

    def today(self) -> date:
        """Return the UTC day."""
        return utc_day(self.clock())

    def snapshot(self) -> Snapshot:
        """Return what answers are read from, as of now."""
        with suppress(StoreError):  # of a store that is read-only, what is written can be read
            self.flush()
        return Snapshot(self.known().catalog, self.store, self.today())

    def origin(self, key: str, label: str) -> RequestOrigin:
        """Return what the limits know of a request: its device key's id, and its proxy's label."""
        known = label in self.settings.source_classes
        return RequestOrigin(int(self.clock().timestamp()) // HOUR, key, label if known else ANY)

    def take(self, body: DecodedBody, origin: RequestOrigin | None = None) -> list[Verdict]:
        """Return the verdicts of a body, once they are durable."""
        self.guard.refuse_if_doubted()
        known, day = self.known().catalog.series, self.today()
        require_trusted_day(body, known, day, self.retention.sure(day))
        return self.intake.process(body, known, day, origin)

    def instant(self) -> datetime:
        """Return now, for what is judged by it and cannot be undone; raise if it is in doubt."""
        self.guard.refuse_if_doubted()
        now = self.clock()
        if self.retention.sure(utc_day(now)) < utc_day(now):
            raise ClockUntrusted("this day is not confirmed: `veilcount store confirm-clock`")
        return now

    def look_at_clock(self) -> None:
        """Compare this host's clock with the others; what it judges depends on what is found."""
        self.retention.look(self.known().catalog.series.values())

    def tend(self) -> int:
        """Drop what is over, if the clock is good for it; return how many epochs were dropped."""
        dropped = self.retention.run(self.known().catalog.series.values())
        if dropped:
            self.service_counters.count(DROPPED, dropped)
        return dropped

    def confirm(self) -> None:
        """Have this host's journal confirm the store, where anything could be released."""
        journal = self.curator.filter.journal
        models = {each.collection.model for each in self.known().catalog.series.values()}
        if journal is not None and (Model.CENTRAL in models or journal.path.exists()):
            self.curator.filter.tick(self.clock())

    def flush(self) -> None:
        """Write the figures of the service that are still in memory."""
        notes = self.service_counters.take(now=True)
        try:
            if notes:
                self.store.commit([], notes)
        except StoreError:
            self.service_counters.restore(notes)
            raise

    def close(self) -> None:
        """Write what is in memory and let go, also where the store takes no more."""
        try:
            self.flush()
        finally:
            self.store.close()


def _load(store: Store, watch: CatalogCache, source: DefinitionSource, now: datetime) -> None:
    """Load a file of definitions; while the records are away, all of it has to be known before."""
    try:
        add_definitions(store, source, now, "start")
        watch.refresh()
    except StoreUnavailable:
        known = watch.known().catalog.series
        if any(each.fingerprint not in known for each in source.collections().values()):
            raise
