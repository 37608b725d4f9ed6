"""The cache of the catalog in a worker: what it reads, writes and drops."""

from __future__ import annotations

import threading
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from unittest.mock import Mock

import pytest

from veilcount_aggregator.errors import StoreUnavailable
from veilcount_aggregator.records import definitions
from veilcount_aggregator.records.api_keys import Role, create_key, revoke_key
from veilcount_aggregator.records.cache import CatalogCache, CatalogSnapshot
from veilcount_aggregator.records.definitions import (
    Catalog,
    DefinitionSource,
    ReadCatalog,
    add_definitions,
    close_collection,
)
from veilcount_aggregator.records.service_counters import ServiceCounters
from veilcount_aggregator.records.sessions import begin_session
from veilcount_aggregator.store import Record, ServiceCounter, Store
from veilcount_aggregator.store.records import TRIES, update_records
from veilcount_aggregator.store.retention.retention_guard import epochs_over
from veilcount_analysis.series.series import Series

from ...client.device_fixtures import definitions_text
from ...system.server import wait_until
from ..aggregator_fixtures import SteppedClock, make_collection
from ..record_reads import CountedReads

NOW = datetime(2026, 12, 3, 12, tzinfo=UTC)
FILE = definitions_text(theme={"question": "Which theme?", "values": ["light", "dark"]})


@pytest.fixture
def url(tmp_path: Path, store: Store) -> str:
    return f"sqlite:///{tmp_path}/store.db?durability=relaxed"


@pytest.fixture
def catalog_cache(store: Store, clock: SteppedClock) -> CatalogCache:
    return CatalogCache(store, clock)


def push(store: Store, text: str = FILE, read: ReadCatalog | None = None) -> None:
    add_definitions(store, DefinitionSource(text), NOW, "cli", read)


def found(catalog_cache: CatalogCache, clock: SteppedClock, name: str) -> CatalogSnapshot:
    """Return what is known once a collection is: new definitions are parsed by another thread."""

    def look() -> bool:
        clock.now += 0.6
        return name in catalog_cache.known().catalog.by_name

    wait_until(look)
    return catalog_cache.known()


# -- within a second -------------------------------------------------------------------------------


def test_what_changes_is_known_within_a_second(
    store: Store, clock: SteppedClock, catalog_cache: CatalogCache
) -> None:
    seen = []

    def look() -> None:
        clock.now += 0.6
        known = catalog_cache.known()
        theme = known.catalog.by_name.get("theme", ())
        seen.append((len(theme), [each.closed for each in theme], len(known.api_keys.keys)))

    look()
    push(store)
    found(catalog_cache, clock, "theme")
    look()
    close_collection(store, "theme", NOW, "cli")
    look()
    key, secret = create_key(store, Role.DEVICE, "", NOW)
    look()
    before = catalog_cache.known().api_keys.find(secret)
    revoke_key(store, key.id, NOW)
    look()

    assert seen == [(0, [], 0), (1, [False], 0), (1, [True], 0), (1, [True], 1), (1, [True], 1)]
    assert before is not None
    assert catalog_cache.known().api_keys.find(secret) is None


def test_the_generation_is_read_twice_a_second_and_records_when_it_changed(
    store: Store, clock: SteppedClock, catalog_cache: CatalogCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    generation, records = Mock(wraps=store.generation), Mock(wraps=store.records)
    monkeypatch.setattr(store, "generation", generation)
    monkeypatch.setattr(store, "records", records)
    for _ in range(1000):
        clock.now += 0.00105
        catalog_cache.known()

    assert (generation.call_count, records.call_count) == (2, 0)


def test_a_store_that_is_away_leaves_what_was_known(
    store: Store, clock: SteppedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    push(store)
    catalog_cache = CatalogCache(store, clock)

    with monkeypatch.context() as patch:
        patch.setattr(store, "generation", Mock(side_effect=StoreUnavailable("away")))
        clock.now += 1
        kept = catalog_cache.known()
    close_collection(store, "theme", NOW, "cli")
    clock.now += 1

    assert "theme" in kept.catalog.by_name
    assert catalog_cache.known().catalog.by_name["theme"][0].closed


def test_while_one_thread_looks_the_others_go_on(
    store: Store, clock: SteppedClock, catalog_cache: CatalogCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    looking, go = threading.Event(), threading.Event()

    def slowly() -> int:
        looking.set()
        go.wait(60)
        return 0

    monkeypatch.setattr(store, "generation", slowly)
    clock.now += 1
    slow = threading.Thread(target=catalog_cache.known)
    slow.start()
    looking.wait(60)
    known = catalog_cache.known()
    go.set()
    slow.join(60)

    assert known.generation == 0


def test_no_request_parses_definitions(
    store: Store, clock: SteppedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While a long list is parsed, requests go on with what was known; keys are seen meanwhile."""
    catalog_cache, parse = CatalogCache(store, clock), threading.Event()
    original = definitions._series
    threads: set[str] = set()

    def slowly(key: str, value: bytes) -> tuple[Series, ...]:
        threads.add(threading.current_thread().name)
        parse.wait(60)
        return original(key, value)

    monkeypatch.setattr(definitions, "_series", slowly)
    push(store, FILE, lambda: Catalog({}, {}))
    _, secret = create_key(store, Role.DEVICE, "", NOW)
    clock.now += 0.6
    meanwhile = catalog_cache.known()
    parse.set()

    assert "theme" not in meanwhile.catalog.by_name
    assert meanwhile.api_keys.find(secret) is not None
    assert "theme" in found(catalog_cache, clock, "theme").catalog.by_name
    assert threads == {"veilcount-parser"}


def test_a_log_in_makes_no_worker_read_definitions_or_keys_again(
    store: Store, clock: SteppedClock
) -> None:
    worker, operator = CountedReads(store), CountedReads(store)
    for n in range(20):
        push(store, f"{FILE}# {n}\n")
        key, secret = create_key(store, Role.ANALYST, "", NOW)
    catalog_cache = CatalogCache(worker, clock)
    started = dict(worker.reads)
    worker.reads.clear()
    begin_session(operator, Role.ANALYST, key.id, NOW)
    catalog_cache.refresh()
    after_log_in = dict(worker.reads)
    revoke_key(operator, key.id, NOW)
    catalog_cache.refresh()

    assert started == {"source": 40, "key": 20}  # their keys, then what is new of them
    assert after_log_in == {}
    assert worker.reads == {"key": 20}
    assert operator.reads == {"key": 1}
    assert catalog_cache.known().api_keys.find(secret) is None


# -- records ---------------------------------------------------------------------------------------


def test_a_change_that_is_beaten_every_time_gives_up(store: Store) -> None:
    tries = 0

    def decide() -> tuple[list[Record], None]:
        nonlocal tries
        tries += 1
        assert store.change_records(store.generation(), [Record("x", str(tries), b"")])
        return [Record("x", "mine", b"")], None

    with pytest.raises(StoreUnavailable, match="too many concurrent writers; retry"):
        update_records(store, decide)

    assert tries == TRIES
    assert "mine" not in store.records("x")


# -- service counters ------------------------------------------------------------------------------


def test_service_counters_are_handed_out_once_a_second(clock: SteppedClock) -> None:
    service_counters, note = ServiceCounters(clock), ServiceCounter("x", "", -1, "y")
    service_counters.count(note)
    service_counters.count(note, 2)
    early = service_counters.take()
    clock.now += 1.0
    taken = service_counters.take()
    service_counters.restore(taken)
    service_counters.count(note)

    assert (early, taken) == ({}, {note: 3})
    assert service_counters.take() == {}
    assert service_counters.take(now=True) == {note: 4}
    assert service_counters.take(now=True) == {}


# -- what is over ----------------------------------------------------------------------------------


def test_epochs_are_dropped_a_day_after_nothing_is_taken_any_more() -> None:
    daily = Series(make_collection(unit='"day"', until="2026-12-31", late=10))
    linked = Series(make_collection(unit='"month"', late=10))
    first = date(2026, 12, 2) + timedelta(days=10)
    days = [first, first + timedelta(days=1), first + timedelta(days=2), date(2028, 1, 1)]

    assert [epochs_over(daily, day) for day in days] == [0, 1, 2, 30]
    assert daily.due(0) == days[1]
    assert daily.open_periods(first)[0] == 1
    assert [epochs_over(linked, date(2027, 12, day)) for day in (11, 12)] == [0, 1]
