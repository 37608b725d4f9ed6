"""The aggregator's services on one store: catalog, ingest, releases, retention. No HTTP."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime

from veilcount_analysis.series.series import Series, utc_day
from veilcount_serving.errors import Overloaded, SettingsError
from veilcount_shared import Collection
from veilcount_shared.shuffling.batch_record import BatchRecord
from veilcount_shared.shuffling.part import BatchPart
from veilcount_shared.verdict import Verdict

from .errors import (
    ClockUntrusted,
    StoreError,
    StoreUnavailable,
)
from .intake.decode import DecodedBody, DecodedGroup, decode_group
from .intake.group_intake import IntakeRequest
from .intake.pipeline import IntakeDays, IntakeFailed, IntakePipeline, Outcome
from .intake.pseudonym_limit import ANY, PseudonymLimit, RequestOrigin, limit_secret_reader
from .intake.shuffled_batches.batch_checks import BatchOrigin, find_origin, require_signature
from .intake.shuffled_batches.batch_intake import BatchIntake, TakenPart
from .intake.shuffled_batches.expiry import close_batches
from .intake.shuffled_batches.opening import OpenPart
from .intake.store_writer import StoreWriter
from .queries import Snapshot
from .queries.published_figures import publishing_problem
from .queries.publishing_key import read_publishing_key
from .records.cache import CatalogCache, CatalogSnapshot
from .records.counter_admission import require_memory
from .records.definitions import DefinitionSource, add_definitions, read_source
from .records.key_uses import KeyUses
from .records.service_counters import ServiceCounters
from .records.shuffled_batches.batch_counts import (
    BATCH,
    REFUSALS,
    UNFINISHED,
    UNREADABLE,
    refused_as,
)
from .records.shuffled_batches.record_store import keep_record, require_recorded_numbers
from .records.shuffler_canary_plans import canary_marks
from .records.shuffler_keys import load_shuffler_keys
from .releases.curator import Curator
from .releases.privacy_filter import PrivacyFilter
from .releases.release_journal import ReleaseJournal
from .releases.store_confirmation import SETTLING_SECONDS
from .settings import Settings
from .sign_in import SignIn, sign_in_at_start
from .store import VERDICTS, ServiceCounter, Store, open_store, store_file
from .store.retention.clock_guard import Clock, ClockGuard
from .store.retention.retention_guard import DROPPED, RetentionGuard, delete_rows

HOUR = 3600


@dataclass(frozen=True, slots=True)
class Aggregator:
    """What all endpoints, pages and commands of one process share."""

    settings: Settings
    store: Store
    catalog_cache: CatalogCache
    pipeline: IntakePipeline
    service_counters: ServiceCounters
    curator: Curator
    clock: Clock
    guard: ClockGuard
    retention: RetentionGuard
    key_uses: KeyUses = field(default_factory=KeyUses)
    apps: tuple[str, ...] = ()  # whose definitions exist for who asks; none: those of all
    sign_in: SignIn | None = None

    @classmethod
    def open(
        cls,
        settings: Settings,
        clock: Clock = lambda: datetime.now(UTC),
        seconds: Callable[[], float] = time.monotonic,
    ) -> Aggregator:
        """Open the store (in development mode, create it) and load the definition files."""
        with ExitStack() as undo:
            store = open_store(
                settings.store, make=settings.dev, heights=settings.heights, alone=settings.dev
            )
            undo.callback(store.close)
            aggregator = cls._assembled(settings, store, clock, seconds)
            aggregator.require_publishable()
            with suppress(StoreError):  # confirmed again before each release; ingestion goes on
                aggregator.confirm()
            undo.pop_all()
        return aggregator

    @classmethod
    def _assembled(
        cls, settings: Settings, store: Store, clock: Clock, seconds: Callable[[], float]
    ) -> Aggregator:
        catalog_cache = CatalogCache(store, seconds)
        for file in settings.collections:
            _load(store, catalog_cache, read_source(file), clock(), settings.max_counter_memory)
        service_counters = ServiceCounters(seconds)
        limit = PseudonymLimit(
            settings.max_new_pseudonyms,
            limit_secret_reader(store),
            settings.max_new_pseudonyms_per_hour,
            settings.max_pseudonyms_per_body,
        )
        writer = StoreWriter(store, service_counters, seconds)
        pipeline = IntakePipeline(writer.commit, service_counters, limit)
        settling = 0 if store_file(settings.store) else SETTLING_SECONDS
        curator = Curator(PrivacyFilter(store, ReleaseJournal.from_settings(settings), settling))
        guard = ClockGuard(store, clock, seconds)
        retention = RetentionGuard(store, guard, clock)
        return cls(
            settings,
            store,
            catalog_cache,
            pipeline,
            service_counters,
            curator,
            clock,
            guard,
            retention,
            sign_in=sign_in_at_start(settings.sign_in) if settings.sign_in else None,
        )

    def push(self, source: DefinitionSource, actor: str) -> list[Collection]:
        """Store a definitions file; return its new collections, whose reports count from now on."""
        read, limit = self.catalog_cache.catalog.read, self.settings.max_counter_memory
        new = add_definitions(self.store, source, self.clock(), actor, read, counter_limit=limit)
        self.catalog_cache.refresh()
        return new

    def require_memory(self, source: DefinitionSource) -> None:
        """Refuse a definitions file as `push` does if its counters do not fit."""
        loaded_series, limit = self.known().catalog.series, self.settings.max_counter_memory
        require_memory(self.store, loaded_series, source.series(), self.today(), limit)

    def known(self) -> CatalogSnapshot:
        """Return the current definitions and keys."""
        snapshot = self.catalog_cache.known()
        if not self.apps:
            return snapshot
        return replace(snapshot, catalog=snapshot.catalog.of_apps(self.apps))

    def of_apps(self, apps: tuple[str, ...]) -> Aggregator:
        """Return the aggregator as a key sees it that reads only these apps; none: it reads all."""
        return replace(self, apps=apps) if apps else self

    def today(self) -> date:
        """Return the UTC day."""
        return utc_day(self.clock())

    def require_publishable(self) -> None:
        """Refuse to start if the settings publish what must not be, or with a key that is none."""
        if self.settings.publish_key is not None:
            read_publishing_key(self.settings.publish_key)
        for name in self.settings.publish:
            definitions = self.known().catalog.by_name.get(name, ())  # it may be pushed later
            problems = [publishing_problem(one.collection) for one in definitions]
            if problems and all(problems):
                raise SettingsError("--publish", name, problems[0])

    def snapshot(self) -> Snapshot:
        """Return the snapshot that queries read. Service counters are those of the last second."""
        return Snapshot(self.known().catalog, self.store, self.today())

    def take(self, body: DecodedBody, origin: RequestOrigin | None = None) -> list[Verdict]:
        """Return the verdicts of a body, once they are durable."""
        ((outcome,),) = self._process([(origin, DecodedGroup.from_body(body))])
        if isinstance(outcome, Exception):
            raise outcome
        return [VERDICTS[code] for code in outcome.tolist()]

    def take_group(self, requests: Sequence[IntakeRequest]) -> list[Outcome]:
        """Return what each request of a group gets. One never spoils another's."""
        try:
            return self._take_group(requests)
        except (StoreError, ClockUntrusted, Overloaded) as error:
            return [error] * len(requests)
        except Exception as error:  # noqa: BLE001 - logged where the request is answered
            if len(requests) == 1:
                return [IntakeFailed(error)]
            return [outcome for request in requests for outcome in self.take_group([request])]

    def _take_group(self, requests: Sequence[IntakeRequest]) -> list[Outcome]:
        places: dict[tuple[str, str], list[int]] = {}
        for place, request in enumerate(requests):
            network = request.network if request.network in self.settings.source_classes else ANY
            places.setdefault((request.key, network), []).append(place)
        hour = int(self.clock().timestamp()) // HOUR
        groups = []
        for source, of_source in places.items():
            bodies = [requests[place].body for place in of_source]
            group = decode_group(bodies, takes_tests=self.settings.dev)
            groups.append((RequestOrigin(hour, *source), group))
        outcomes: dict[int, Outcome] = {}
        for of_source, outcomes_of_source in zip(
            places.values(), self._process(groups), strict=True
        ):
            outcomes.update(zip(of_source, outcomes_of_source, strict=True))
        return [outcomes[place] for place in range(len(requests))]

    def _process(
        self, groups: Sequence[tuple[RequestOrigin | None, DecodedGroup]]
    ) -> list[list[Outcome]]:
        self.guard.refuse_if_doubted()
        loaded_series, day = self.known().catalog.series, self.today()
        return self.pipeline.process(
            groups, loaded_series, IntakeDays(day, self.retention.sure(day))
        )

    def take_part(self, part: BatchPart, open_part: OpenPart) -> TakenPart:
        """Take a part of a shuffler's batch, or refuse it; what is returned is durable."""
        now = self.instant()
        origin = self._signed_by_shuffler(part.head.crowd_id, part.head.period, part)
        fingerprint = origin.series.fingerprint
        with self._counting_refusals(fingerprint):
            require_recorded_numbers(self.store, origin.series, part.head)
            marks = canary_marks(self.store, origin.series, origin.period, part.head.crowd_id)
            intake = BatchIntake(self.store, open_part, self.settings.dev)
            result = intake.take(part, origin, now, marks)
        unreadable = result.totals.unreadable if result.is_new else 0
        self.service_counters.count(ServiceCounter(BATCH, fingerprint, -1, UNREADABLE), unreadable)
        return result

    def take_batch_record(self, record: BatchRecord) -> None:
        """Keep a shuffler's signed record of what became of a batch, or refuse it."""
        origin = self._signed_by_shuffler(record.crowd_id, record.period, record)
        with self._counting_refusals(origin.series.fingerprint):
            keep_record(self.store, origin.series, record)

    def _signed_by_shuffler(
        self, key: bytes, period: int, document: BatchPart | BatchRecord
    ) -> BatchOrigin:
        """Return what a shuffler's document is of, or refuse one that it did not sign."""
        loaded = self.known()
        with self._counting_refusals(""):
            origin = find_origin(
                loaded.catalog.series.values(), loaded.gateway_secrets, key, period
            )
            trusted = load_shuffler_keys(self.store)
            require_signature(trusted, origin, document.signed(), document.signature)
        return origin

    @contextmanager
    def _counting_refusals(self, fingerprint: str) -> Iterator[None]:
        """Count what is refused of a series' batches, by its name."""
        try:
            yield
        except REFUSALS as error:
            self.service_counters.count(ServiceCounter(BATCH, fingerprint, -1, refused_as(error)))
            raise

    def instant(self) -> datetime:
        """Return the time for a decision that cannot be undone; raise if the clock is in doubt."""
        self.guard.refuse_if_doubted()
        now = self.clock()
        if self.retention.sure(utc_day(now)) < utc_day(now):
            raise ClockUntrusted("this day is not confirmed: `veilcount store confirm-clock`")
        return now

    def look_at_clock(self) -> None:
        """Compare this host's clock with the others'."""
        self.retention.look(self.known().catalog.series.values())

    def drop_expired(self) -> int:
        """Drop expired epochs, if the clock is trusted; return how many were dropped."""
        all_series = self.known().catalog.series.values()
        dropped = self.retention.run(all_series)
        if dropped:
            self.service_counters.count(DROPPED, dropped)
        self._close_batches([series for series in all_series if series.collection.batch])
        return dropped

    def _close_batches(self, all_series: Sequence[Series]) -> None:
        if all_series and (unfinished := close_batches(self.store, all_series, self.instant())):
            self.service_counters.count(ServiceCounter(BATCH, "", -1, UNFINISHED), unfinished)

    def delete_rows(self) -> bool:
        """Delete some rows of final drops, by whichever process; return whether more are left."""
        return delete_rows(self.store, self.known().catalog.series.values())

    def confirm(self) -> None:
        """Have this host's journal confirm the store, if central releases are possible."""
        journal = self.curator.filter.journal
        if journal is not None and (self.known().catalog.releases or journal.path.exists()):
            self.curator.filter.tick(self.clock())

    def flush(self) -> None:
        """Write the service counters and the days of keys' use that are still in memory."""
        self.key_uses.write(self.store, self.clock())
        counts = self.service_counters.take(now=True)
        try:
            if counts:
                self.store.commit([], counts)
        except StoreError:
            self.service_counters.restore(counts)
            raise

    def close(self) -> None:
        """Write what is in memory and close the store, even if it accepts no writes."""
        try:
            self.flush()
        finally:
            self.store.close()


def _load(
    store: Store,
    catalog_cache: CatalogCache,
    source: DefinitionSource,
    now: datetime,
    counter_limit: int | None,
) -> None:
    """Load a definitions file; while records are unavailable, all of it has to be known already."""
    try:
        add_definitions(store, source, now, "start", counter_limit=counter_limit)
        catalog_cache.refresh()
    except StoreUnavailable:
        loaded_series = catalog_cache.known().catalog.series
        if any(
            collection.fingerprint not in loaded_series
            for collection in source.collections().values()
        ):
            raise
