"""How many calls one commit takes inside the store: commands of Redis, statements of SQLite."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

from tests.aggregator.store.redis.simulated_rows import million, random_reports
from tests.redis_server import RedisServer

from veilcount_aggregator.store import Store, open_store
from veilcount_analysis.series.series import Series

from .ingest_load import question
from .table import Row, Table

COLUMNS = {"engine": "", "definition": "", "counters": "", "calls": ",d", "load": ".1f"}
NOTES = (
    "One commit of 200 reports of new pseudonyms: of Redis, every command that the servers count,",
    "  also those within the function; of SQLite, every statement, also those of triggers.",
    "new: the first reports of a period; there: the same reports from other pseudonyms.",
)
REPORTS = 200

Count = Callable[[], int]


def run(*, quick: bool) -> Table:
    """Commit reports that need new counters, and reports that need none."""
    with TemporaryDirectory() as name:
        rows = [*_redis(Path(name) / "redis"), *_sqlite(Path(name))]
    return Table("commit-calls: the calls of one commit", COLUMNS, rows, NOTES)


def _redis(folder: Path) -> Iterator[Row]:
    folder.mkdir()
    server = RedisServer(folder)
    try:
        store = open_store(server.url, make=True)
        yield from _rows("Redis", store, lambda: _commands(server))
        store.close()
    finally:
        server.kill()


def _commands(server: RedisServer) -> int:
    with server.connection() as client:
        stats = client.info("commandstats")
    uncounted = ("cmdstat_info", "cmdstat_ping", "cmdstat_client", "cmdstat_hello", "cmdstat_auth")
    return sum(each["calls"] for name, each in stats.items() if not name.startswith(uncounted))


def _sqlite(folder: Path) -> Iterator[Row]:
    statements: list[str] = []

    def connect(*arguments: object, **named: object) -> sqlite3.Connection:
        opened: sqlite3.Connection = sqlite3.Connection(*arguments, **named)  # type: ignore[arg-type]
        opened.set_trace_callback(statements.append)
        return opened

    with patch("sqlite3.connect", connect):
        store = open_store(f"sqlite:///{folder}/calls.db", make=True)
        yield from _rows("SQLite", store, lambda: len(statements))
        store.close()


def _rows(engine: str, store: Store, count: Count) -> Iterator[Row]:
    definitions = {"64 values": Series(question(1)), "20,000 values": million(32)}
    for definition, series in definitions.items():
        for counters, seed in (("new", 1), ("there", 2)):
            reports = random_reports(series, REPORTS, seed)
            reports.messages[:] = random_reports(series, REPORTS, 1).messages
            before = count()
            store.commit([reports], {})
            yield {
                "engine": engine,
                "definition": definition,
                "counters": counters,
                "calls": count() - before,
                "load": os.getloadavg()[0],
            }
