"""What a worker does beside its requests, tick by tick, on a real store."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from veilcount_aggregator.errors import StoreUnavailable
from veilcount_aggregator.records.definitions import DefinitionSource, add_definitions
from veilcount_aggregator.server.background import (
    CLOCK_SECONDS,
    DELETION_SECONDS,
    REPEAT_SECONDS,
    REPLICATION_SECONDS,
    RETENTION_SECONDS,
    SECONDS,
    BackgroundThread,
)
from veilcount_aggregator.service import Aggregator
from veilcount_aggregator.settings import Settings
from veilcount_aggregator.store import ServiceCounter
from veilcount_aggregator.store.retention.clock_guard import ClockState
from veilcount_aggregator.store.transfer_format import decode_numbers
from veilcount_serving.structured_logging import NAME, FaultLog

from ...client.device_fixtures import definitions_text
from ...system.server import wait_until

NOTE = ServiceCounter("answered", "", -1, "reports:2xx:0.01")
FILE = definitions_text("acme-editor", autosave={"from": "2026-11-01", "until": "2026-12-01"})


@dataclass
class Clocks:
    now: datetime = datetime(2026, 11, 10, tzinfo=UTC)
    seconds: float = 1_000.0

    def pass_on(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)
        self.seconds += seconds


@pytest.fixture
def clocks() -> Clocks:
    return Clocks()


@pytest.fixture
def aggregator(tmp_path: Path, clocks: Clocks) -> Iterator[Aggregator]:
    settings = Settings(f"sqlite:///{tmp_path}/store.db", dev=True)
    opened = Aggregator.open(settings, lambda: clocks.now, lambda: clocks.seconds)
    yield opened
    opened.close()


@pytest.fixture
def ticker(aggregator: Aggregator, clocks: Clocks) -> BackgroundThread:
    return BackgroundThread(aggregator, FaultLog(lambda: clocks.seconds), lambda: clocks.seconds)


def test_a_tick_reloads_the_records(
    aggregator: Aggregator, ticker: BackgroundThread, clocks: Clocks
) -> None:
    add_definitions(aggregator.store, DefinitionSource(FILE), clocks.now, "test")
    clocks.seconds += SECONDS

    ticker.tick()

    wait_until(lambda: aggregator.catalog_cache.known().catalog.by_name.keys() == {"autosave"})


def test_copies_that_missed_a_master_are_written_again_within_seconds(
    aggregator: Aggregator,
    ticker: BackgroundThread,
    clocks: Clocks,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers, written = iter([False, True, True]), list[float]()

    def replicate() -> bool:
        written.append(clocks.seconds)
        return next(answers)

    monkeypatch.setattr(aggregator.catalog_cache, "replicate", replicate)
    for _ in range(70):
        ticker.tick()
        clocks.seconds += SECONDS

    assert [later - first for first, later in pairwise(written)] == [
        REPEAT_SECONDS,
        REPLICATION_SECONDS,
    ]


def dropped(aggregator: Aggregator) -> int:
    pieces = aggregator.store.export_pieces()
    return sum(int(decode_numbers(piece.body)[0]) for piece in pieces if piece.kind == "dropped")


def test_what_is_over_is_dropped_every_ten_minutes_once_the_clock_has_agreed_for_a_while(
    aggregator: Aggregator, ticker: BackgroundThread, clocks: Clocks
) -> None:
    """The campaign's first day is over 31 days after it."""
    clocks.now = datetime(2026, 12, 3, tzinfo=UTC)
    add_definitions(aggregator.store, DefinitionSource(FILE), clocks.now, "test")
    clocks.seconds += SECONDS
    aggregator.catalog_cache.refresh()  # waits for the thread that parses definitions
    found = []
    for _ in range(4):
        ticker.tick()
        found.append(dropped(aggregator))
        clocks.pass_on(RETENTION_SECONDS)

    assert found == [0, 0, 1, 1]


def test_rows_that_an_earlier_process_left_are_deleted_from_the_first_tick_on(
    aggregator: Aggregator,
    ticker: BackgroundThread,
    clocks: Clocks,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """For half a second of each; what is final waits for no clock."""

    def take_a_while(_: object) -> bool:
        clocks.seconds += DELETION_SECONDS / 4
        return next(steps)

    steps = iter([True] * 9 + [False])
    monkeypatch.setattr(Aggregator, "delete_rows", take_a_while)
    clocks.now += timedelta(days=40)
    left = []
    for _ in range(4):
        ticker.tick()
        left.append(len(list(copy(steps))))
        clocks.pass_on(SECONDS)

    assert left == [6, 2, 0, 0]


def test_after_an_error_rows_wait_for_the_next_retention(
    aggregator: Aggregator,
    ticker: BackgroundThread,
    clocks: Clocks,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A store that is away is not asked each second by each worker."""
    calls: list[float] = []

    def fail(_: object) -> bool:
        calls.append(clocks.seconds)
        raise StoreUnavailable("away")

    monkeypatch.setattr(Aggregator, "delete_rows", fail)
    begin = clocks.seconds
    for _ in range(3):
        ticker.tick()
        clocks.pass_on(SECONDS)
    clocks.pass_on(RETENTION_SECONDS)
    ticker.tick()

    assert calls == [begin, clocks.seconds]


def test_a_clock_that_jumps_is_logged_and_closes_the_intake_until_it_is_back(
    aggregator: Aggregator,
    ticker: BackgroundThread,
    clocks: Clocks,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, NAME)
    ticker.tick()
    clocks.now += timedelta(days=40)
    clocks.pass_on(CLOCK_SECONDS)
    ticker.tick()
    during = aggregator.guard.reading.state
    clocks.now -= timedelta(days=40)
    clocks.pass_on(CLOCK_SECONDS)
    ticker.tick()

    assert (during, aggregator.guard.reading.state) == (ClockState.JUMPED, ClockState.AGREES)
    assert [record.msg for record in caplog.records] == ["retention paused", "clock", "fault over"]


def test_a_store_that_takes_nothing_loses_no_figures(
    aggregator: Aggregator, ticker: BackgroundThread
) -> None:
    aggregator.service_counters.count(NOTE, 2)
    aggregator.store.set_read_only(on=True)
    ticker.tick()
    aggregator.store.set_read_only(on=False)
    ticker.tick()

    assert aggregator.store.service_counts() == {NOTE: 2}


def test_its_thread_starts_immediately_and_ends_on_request(
    aggregator: Aggregator, ticker: BackgroundThread
) -> None:
    aggregator.service_counters.count(NOTE)
    before = set(threading.enumerate())

    ticker.start()
    ticker.stop()

    assert aggregator.store.service_counts() == {NOTE: 1}
    assert set(threading.enumerate()) <= before
