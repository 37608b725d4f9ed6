"""How many calls one commit takes: commands of Redis, statements and system calls of SQLite."""

from __future__ import annotations

import os
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

from tests.aggregator.store.redis.simulated_rows import million, random_reports
from tests.engines import REDIS, SQLITE, engine
from tests.processes import status, wait_until

from veilcount_aggregator.store import Store, open_store

from .definitions import question
from .table import Row, Table

NOTES = (
    "One commit of 200 reports of new pseudonyms: of Redis, every command that the server counts,",
    "  also those within the function; of SQLite, every statement, also those of triggers; and the",
    "  system calls of this process meanwhile (strace).",
    "new: the first reports of a period; there: the same reports from other pseudonyms.",
)
REPORTS = 200
MARK = "/a commit"
UNCOUNTED = ("cmdstat_info", "cmdstat_ping", "cmdstat_client", "cmdstat_hello", "cmdstat_auth")


def run(*, quick: bool) -> Table:
    """Commit reports that need new counters, and reports that need none."""
    with TemporaryDirectory() as name:
        rows = [*_redis(Path(name)), *_sqlite(Path(name))]
    return Table("commit-calls: the calls of one commit", rows, NOTES)


def _redis(folder: Path) -> Iterator[Row]:
    with engine(REDIS, folder / "redis") as servers, closing(open_store(servers.url)) as store:
        (server,) = servers.nodes

        def commands() -> int:
            stats = server.info("commandstats").items()
            return sum(stat["calls"] for name, stat in stats if not name.startswith(UNCOUNTED))

        yield from _rows("Redis", store, commands)


def _sqlite(folder: Path) -> Iterator[Row]:
    statements: list[str] = []

    def connect(*arguments: object, **options: object) -> sqlite3.Connection:
        connection: sqlite3.Connection = sqlite3.Connection(*arguments, **options)  # type: ignore[arg-type]
        connection.set_trace_callback(statements.append)
        return connection

    with (
        engine(SQLITE, folder / "statements") as file,
        patch("sqlite3.connect", connect),
        closing(open_store(file.url)) as store,
    ):
        yield from _rows("SQLite", store, lambda: len(statements))
    with engine(SQLITE, folder / "calls") as file, closing(open_store(file.url)) as store:
        yield from _traced(store, folder / "trace")


def _traced(store: Store, trace: Path) -> Iterator[Row]:
    """Mark the begin and the end of each commit by a system call of its own."""
    command = ["strace", "-f", "-qq", "-o", str(trace), "-p", str(os.getpid())]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as tracer:
        wait_until(lambda: status("self", "TracerPid"))
        rows = list(_rows("the system, SQLite", store, lambda: int(os.access(MARK, os.F_OK))))
        tracer.terminate()
    calls = trace.read_text(encoding="ascii", errors="replace").split(MARK)[1::2]
    for row, lines in zip(rows, calls, strict=True):
        yield {**row, "calls": lines.count("\n") - 1}


def _rows(what: str, store: Store, count: Callable[[], int]) -> Iterator[Row]:
    for definition, series in {"64 values": question(1), "20,000 values": million(32)}.items():
        for counters, seed in (("new", 1), ("there", 2)):
            reports = random_reports(series, REPORTS, seed)
            reports.messages[:] = random_reports(series, REPORTS, 1).messages
            before = count()
            store.commit([reports], {})
            row: Row = {"calls of": what, "definition": definition, "counters": counters}
            yield {**row, "calls": count() - before}
