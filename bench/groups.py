"""What a group of requests costs the intake's thread, from their bodies to durable verdicts.

One process, without HTTP: bodies are decoded, judged and committed as in a worker, and the thread's
CPU is divided by the reports. Beside it a bare SQLite commit of as many small rows.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import numpy as np
from tests.engines import REDIS, SQLITE, Engine, engine

from veilcount_aggregator.intake.decode import RequestBody
from veilcount_aggregator.intake.group_intake import IntakeRequest
from veilcount_aggregator.service import Aggregator
from veilcount_aggregator.settings import Settings
from veilcount_analysis.series.series import Series
from veilcount_shared.wire import BINARY_TYPE

from .definitions import definitions, questions
from .load import Shape, bodies_in_turn
from .table import Row, Table

NOTES = (
    "CPU microseconds of the intake's thread for each report; the store's own CPU is not in it.",
    "bare: a commit of as many rows of 40 bytes by the sqlite3 module, WAL and synchronous=FULL.",
)
SLOTS = 128
ALONE, MANY = Shape(1), Shape(100, mixed=True)
UNCOUNTED = 10  # groups at the beginning, while caches fill
NAMES = {SQLITE: "SQLite", REDIS: "Redis"}


@dataclass(frozen=True, slots=True)
class Group:
    """So many requests, of so many definitions in turn, each with so many reports."""

    requests: int
    definitions: int = 1
    shape: Shape = ALONE

    @property
    def reports(self) -> int:
        """How many there are in all."""
        return self.requests * self.shape.reports


GROUPS = (
    *(Group(1), Group(32), Group(128)),
    *(Group(32, 4), Group(32, 32), Group(1, 1, MANY)),
)


def run(*, quick: bool) -> Table:
    """Take groups of each kind on each engine."""
    rounds = 40 if quick else 200
    rows = [_row(kind, group, rounds) for kind in NAMES for group in GROUPS]
    return Table("groups: what a report costs the intake's thread", rows, NOTES)


def _row(kind: str, group: Group, rounds: int) -> Row:
    with TemporaryDirectory() as name, engine(kind, Path(name) / "store") as store:
        taken, bare = group_costs(Path(name), store, group, rounds)
    return {
        "store": NAMES[kind],
        "requests": group.requests,
        "definitions": group.definitions,
        "reports each": group.shape.reports,
        "us a report": taken / group.reports,
        "x bare": taken / bare,
    }


def group_costs(folder: Path, store: Engine, group: Group, rounds: int) -> tuple[float, float]:
    """Return the median CPU of a group and of a bare commit, in turns."""
    file = folder / "collections.toml"
    file.write_text(definitions(SLOTS, group.definitions), encoding="utf-8")
    series = questions(SLOTS, group.definitions)
    settings = Settings(
        store.url, (file,), max_new_pseudonyms_per_hour=0, max_pseudonyms_per_body=1000
    )
    generator = np.random.default_rng(1)
    taken, bare = [], []
    with closing(Aggregator.open(settings)) as aggregator, closing(_bare(folder)) as database:
        for _ in range(rounds + UNCOUNTED):
            requests = _requests(series, group, generator)
            taken.append(_cpu(_take, aggregator, requests))
            rows = [(os.urandom(12), os.urandom(28)) for _ in range(group.reports)]
            bare.append(_cpu(_write, database, rows))
    return median(taken[UNCOUNTED:]), median(bare[UNCOUNTED:])


def _requests(
    series: list[Series], group: Group, generator: np.random.Generator
) -> list[IntakeRequest]:
    return [
        IntakeRequest(RequestBody(BINARY_TYPE, "", body), "", "", Future())
        for body in bodies_in_turn(series, group.shape, group.requests, generator)
    ]


def _take(aggregator: Aggregator, requests: list[IntakeRequest]) -> None:
    for outcome in aggregator.take_group(requests):
        assert isinstance(outcome, np.ndarray), outcome
        assert not outcome.any(), outcome


def _bare(folder: Path) -> sqlite3.Connection:
    database = sqlite3.connect(folder / "bare.db", isolation_level=None)
    database.execute("pragma journal_mode = wal")
    database.execute("pragma synchronous = full")
    database.execute("create table t (key blob primary key, body blob) without rowid")
    return database


def _write(database: sqlite3.Connection, rows: list[tuple[bytes, bytes]]) -> None:
    database.execute("begin immediate")
    database.executemany("insert into t values (?, ?)", rows)
    database.execute("commit")


def _cpu(act: Callable[..., object], *arguments: object) -> float:
    """Return the CPU microseconds of this thread that something takes."""
    begun = time.thread_time()
    act(*arguments)
    return 1e6 * (time.thread_time() - begun)
