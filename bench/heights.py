"""What the guards of a store cost: its height, its log, and on Redis the identity of its server."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, nullcontext
from pathlib import Path
from statistics import median
from unittest.mock import patch

import numpy as np
from tests.aggregator.curator_fixtures import AGE, OVER, curator, fill, wanted
from tests.aggregator.store.redis.simulated_rows import row_reports, rows
from tests.engines import REDIS, SQLITE, engine

from veilcount_aggregator.store import Store, open_store
from veilcount_aggregator.store.redis.heights import RedisHeights
from veilcount_aggregator.store.redis.store import RedisStore
from veilcount_aggregator.store.sqlite.height import SqliteHeight
from veilcount_aggregator.store.sqlite.store import open_sqlite
from veilcount_aggregator.store.sqlite.wal_guard import WalGuard

from .stopwatch import cpu_us
from .table import Row, Table, figure

NOTES = (
    "us: CPU of this process for one durable commit; Redis's own is not in it.",
    "ratio: with the guards over without them, the median of rounds that take turns in one run.",
    "Without: no height is compared or kept, and no identity is read behind a write.",
    "look-ups: calls of os.stat; checks: comparisons of the names of a SQLite store's log.",
)
GROUPS = (1, 32)
MOST_RATIO = 1.35
#: by what is done: the most look-ups and checks
MOST_CALLS = {"reading": (1, 0), "commit": (6, 1), "central release": (40, 1)}


def run(*, quick: bool) -> Table:
    """Commit groups with and without the guards, by turns."""
    rounds, commits = (3, 50) if quick else (15, 200)
    lines: list[Row] = []
    with tempfile.TemporaryDirectory() as name:
        for kind in (SQLITE, REDIS):
            folder = Path(name) / kind
            with (
                engine(kind, folder) as opened,
                closing(open_store(opened.url, heights=folder / "heights")) as store,
            ):
                for reports in GROUPS:
                    lines += _compared(store, kind, reports, rounds, commits)
        lines += _calls(Path(name) / "calls.db")
    return Table("heights: what the guards of a store cost a commit", lines, NOTES)


def _calls(file: Path) -> Iterator[Row]:
    """Count the look-ups and checks of one reading, one commit and one central release."""
    with closing(open_sqlite(f"sqlite:///{file}", make=True)) as store:
        central = curator(store, file.with_name("releases.jsonl"))
        for period in range(2):
            fill(store, AGE, [3, 2, 1, 0], period)
        central.answer(AGE, wanted("histogram", 1), OVER, "bench")  # connects a reader, confirms
        actions: dict[str, Callable[[], object]] = {
            "reading": store.generation,
            "commit": lambda: store.commit([row_reports(rows(1, 1))], {}),
            "central release": lambda: central.answer(AGE, wanted("histogram", 1, 1), OVER, "b"),
        }
        for name, act in actions.items():
            for kind, count, most in zip(
                ("look-ups", "checks"), _counted(act), MOST_CALLS[name], strict=True
            ):
                yield figure(kind, count, f"sqlite, one {name}", most)


def _counted(act: Callable[[], object]) -> tuple[int, int]:
    stat = patch.object(os, "stat", wraps=os.stat)
    intact = patch.object(WalGuard, "intact", autospec=True, side_effect=WalGuard.intact)
    with stat as lookups, intact as checks:
        act()
    return lookups.call_count, checks.call_count


def _compared(store: Store, kind: str, reports: int, rounds: int, commits: int) -> Iterator[Row]:
    guarded, unguarded = [], []
    for number in range(rounds):
        guarded.append(_microseconds(store, reports, commits, 2 * number))
        with _without_guards(store):
            unguarded.append(_microseconds(store, reports, commits, 2 * number + 1))
    where = f"{kind}, groups of {reports}"
    ratio = median(first / second for first, second in zip(guarded, unguarded, strict=True))
    yield figure("us, with the guards", median(guarded), where)
    yield figure("us, without", median(unguarded), where)
    yield figure("ratio", ratio, where, MOST_RATIO)


@contextmanager
def _without_guards(store: Store) -> Iterator[None]:
    with ExitStack() as patches:
        if isinstance(store, RedisStore):
            patches.enter_context(patch.object(RedisHeights, "keep", lambda *_: None))
            monitor = store._monitor
            patches.enter_context(patch.object(monitor, "identities_are_seen", new=False))
        else:
            patches.enter_context(patch.object(SqliteHeight, "raising", lambda *_: nullcontext()))
            patches.enter_context(patch.object(SqliteHeight, "keep", lambda *_: None))
        yield


def _microseconds(store: Store, reports: int, commits: int, seed: int) -> float:
    """Return the CPU of a commit of so many new rows."""
    new_rows = rows(commits * reports, 1_000 * reports + seed)
    groups = [row_reports(group) for group in np.split(new_rows, commits)]
    return sum(cpu_us(store.commit, [group], {}) for group in groups) / commits
