"""What `growth` measures, each function in a process of its own: CPU microseconds of a size."""

from __future__ import annotations

import logging
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from statistics import median

import numpy as np
from tests.engines import CLUSTER, SQLITE, engine
from tests.processes import cpu_seconds

from veilcount_aggregator.intake.decode import DecodedGroup, decode_body
from veilcount_aggregator.intake.pipeline import IntakeDays, IntakePipeline
from veilcount_aggregator.intake.pseudonym_limit import PseudonymLimit
from veilcount_aggregator.intake.store_writer import StoreWriter
from veilcount_aggregator.queries.estimate import RequestedSeries
from veilcount_aggregator.queries.snapshot import Snapshot
from veilcount_aggregator.records.definitions import (
    DefinitionSource,
    add_definitions,
    load_catalog,
)
from veilcount_aggregator.records.service_counters import ServiceCounters
from veilcount_aggregator.store import COUNTED, ROW_BYTES, SeriesReports, open_store
from veilcount_aggregator.store.sqlite.store import SqliteStore, open_sqlite
from veilcount_analysis.kinds.estimate import estimate_series
from veilcount_analysis.kinds.estimate_query import EstimateQuery, GroupBy
from veilcount_analysis.series.series import Series
from veilcount_client.testing import ClientHarness
from veilcount_shared import parse_collections
from veilcount_shared.wire import BINARY_TYPE

from . import estimate
from .definitions import question
from .groups import Group, group_costs
from .load import Shape, bodies
from .memory import reports_of
from .retention import dropped_epoch, fill
from .stopwatch import cpu_us

FIRST = date(2020, 1, 1)
QUESTION = """
[q{place}]
question = "Which one?"
values = ["a", "b", "c"]
epsilon = 1
unit = "day"
from = {first}
until = {last}
"""
CELLS = 32  # of a day, at most
SLOTS, GROUP = 8, 32
COMMITS, ROUNDS = 31, 5


@contextmanager
def _store() -> Iterator[tuple[SqliteStore, str]]:
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/store.db"
        with closing(open_sqlite(url, make=True)) as store:
            yield store, url


def _file(questions: int, days: int = 30) -> str:
    last = FIRST + timedelta(days=days)
    tables = (QUESTION.format(place=n, first=FIRST, last=last) for n in range(questions))
    return "".join(['app = "bench"\n', *tables])


def parse(questions: int) -> float:
    """Read a file of so many questions."""
    return cpu_us(parse_collections, _file(questions), lambda _: [])


def catalog(questions: int) -> float:
    """Open a store with so many definitions."""
    with _store() as (store, _):
        add_definitions(store, DefinitionSource(_file(questions)), datetime.now(UTC), "bench")
        return cpu_us(load_catalog, store)


def days(number: int) -> float:
    """Read and estimate each of so many days."""
    return _estimated(number, 1)


def cells(number: int) -> float:
    """Read and estimate so many cells, of which a day has as many as it may."""
    return _estimated(number // CELLS, CELLS)


def _estimated(days: int, segments: int) -> float:
    """Estimate each day of a store that has a report of each of its cells."""
    words = [f"s{place}" for place in range(segments)]
    text = _file(1, days) + (f"segments.arm = {words}\n" if segments > 1 else "")
    with _store() as (store, _):
        add_definitions(store, DefinitionSource(text), datetime.now(UTC), "bench")
        snapshot = Snapshot(load_catalog(store), store, FIRST + timedelta(days=days + 9))
        (series,) = snapshot.named("q0")
        store.commit([_one_in_each(series, days, segments)], {})

        def ask(query: EstimateQuery) -> None:
            request, data = RequestedSeries.check(snapshot, series, query).loaded(query)
            estimate_series(request.kind, query, data)

        ask(EstimateQuery())  # has it import what an estimate needs
        return cpu_us(ask, EstimateQuery(by=GroupBy.DAY))


def _one_in_each(series: Series, days: int, segments: int) -> SeriesReports:
    number = days * segments
    who = np.random.default_rng(0).integers(0, 256, (number, ROW_BYTES), np.uint8)
    periods = np.repeat(np.arange(days), segments)
    return SeriesReports.of_one(
        series,
        rows=who,
        epochs=np.array([series.epoch(day) for day in range(days)])[periods],
        periods=periods,
        segments=np.tile(np.arange(segments), days),
        slots=np.zeros(number, np.int64),
        messages=np.zeros((number, series.collection.message_bytes), np.uint8),
        default_verdicts=np.full(number, COUNTED),
        new_pseudonym_limit=1 << 40,
    )


@contextmanager
def quiet() -> Iterator[None]:
    """Log nothing: a client has words on the verdicts that its testing kit draws."""
    logging.disable()
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)


def persons(number: int) -> float:
    """Record and send a value of each of so many persons of one client."""
    with quiet(), ClientHarness() as veilcount:
        client = veilcount.client(parse_collections(_file(1), lambda _: []), persons=True)

        def record() -> None:
            for name in range(number):
                client.person(str(name)).record("q0", "a")
            veilcount.advance(days=2)

        return cpu_us(record)


def life(number: int) -> float:
    """Record and send a value on each of so many days."""
    with quiet(), ClientHarness() as veilcount:
        client = veilcount.client(parse_collections(_file(1, number + 2), lambda _: []))

        def record() -> None:
            for _ in range(number):
                client.record("q0", "a")
                veilcount.advance(days=1)

        return cpu_us(record)


def waiting(number: int) -> float:
    """Send so many reports that waited on a device."""
    text = _file(1, 3).replace('unit = "day"', f'unit = "event"\nper_day = {min(number, 300)}')
    with quiet(), ClientHarness() as veilcount:
        client = veilcount.client(parse_collections(text, lambda _: []), persons=True)
        for name in range(-(-number // 300)):
            for _ in range(min(number, 300)):
                client.person(str(name)).record("q0", "a")
        client.flush(until="stored")
        us = cpu_us(lambda: veilcount.advance(days=2))
        if len(veilcount.sent) < number:
            raise RuntimeError(f"{len(veilcount.sent)} of {number} reports left")
        return us


def commit(rows: int) -> float:
    """Commit small groups on top of so many rows of a period; what as many reports would take."""
    chance, series = np.random.default_rng(2), question(SLOTS)
    with _store() as (store, url):
        fill(store, series, rows, series.epoch(1))
        with closing(open_sqlite(url, make=False)) as opened:
            with opened.file.writing() as database:  # what is read once is met again: as much as
                database.execute("select count(*) from ledger").fetchone()  # its cache may hold

            def one() -> float:
                who = chance.integers(0, 256, (GROUP, ROW_BYTES), np.uint8)
                group = [reports_of(who, np.zeros(GROUP, np.int64), SLOTS, chance)]
                return cpu_us(opened.commit, group, {})

            return sum(one() for _ in range(COMMITS)) / (COMMITS * GROUP) * rows


def retention(rows: int) -> float:
    """Delete the rows of a period."""
    series = question(SLOTS)
    with (
        tempfile.TemporaryDirectory() as name,
        dropped_epoch(Path(name) / "store.db", series, rows) as store,
    ):

        def delete() -> None:
            while store.delete_rows(series):
                pass

        return cpu_us(delete)


def collections(number: int) -> float:
    """Take a group with a report to each of so many collections."""
    with tempfile.TemporaryDirectory() as name, engine(SQLITE, Path(name) / "store") as store:
        return group_costs(Path(name), store, Group(number, number), ROUNDS)[0]


def shards(number: int) -> float:
    """Commit some reports for each of so many shards of a cluster: all processes."""
    chance, count = np.random.default_rng(3), number * GROUP
    with (
        tempfile.TemporaryDirectory() as name,
        engine(CLUSTER, Path(name) / "store", f"?shards={number}") as servers,
        closing(open_store(servers.url)) as store,
    ):

        def group() -> list[SeriesReports]:
            who = chance.integers(0, 256, (count, ROW_BYTES), np.uint8)
            return [reports_of(who, np.zeros(count, np.int64), SLOTS, chance)]

        store.commit(group(), {})
        before = cpu_seconds(*servers.pids())
        app = sum(cpu_us(store.commit, group(), {}) for _ in range(COMMITS))
        return (app + (cpu_seconds(*servers.pids()) - before) * 1e6) / COMMITS


def reports(number: int) -> float:
    """Read, judge and count a body of reports of so many persons."""
    series, day = question(SLOTS), datetime.now(UTC).date()
    counters = ServiceCounters(time.monotonic)
    with _store() as (store, _):
        intake = IntakePipeline(
            StoreWriter(store, counters, time.monotonic).commit,
            counters,
            PseudonymLimit(1 << 40, lambda: b""),
        )

        def take(raw: bytes) -> None:
            group = DecodedGroup.from_body(decode_body(BINARY_TYPE, "", raw))
            intake.process([(None, group)], {series.fingerprint: series}, IntakeDays(day, day))

        raw = bodies(series, Shape(number, mixed=True), COMMITS, np.random.default_rng(4))
        return median(cpu_us(take, body) for body in raw)


def values(number: int) -> float:
    """Decode the counters of so many values."""
    return 1e3 * float(estimate.measure(number, "1", ROUNDS)["decode ms"])
