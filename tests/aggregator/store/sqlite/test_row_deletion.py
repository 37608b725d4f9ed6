"""Rows of final drops: deleted in bounded steps, by whichever process is there."""

from __future__ import annotations

import os
import signal
import sqlite3
from contextlib import closing
from itertools import pairwise, takewhile
from pathlib import Path

import pytest

from veilcount_aggregator.store import Cell
from veilcount_aggregator.store.sql import row_deletion
from veilcount_aggregator.store.sql.row_deletion import RowRange
from veilcount_aggregator.store.sqlite.store import SqliteStore
from veilcount_shared.verdict import Verdict

from ..series_fixtures import (
    DAILY,
    LINKED,
    SlotReport,
    drop_and_delete,
    drop_finally,
    histograms,
    report,
    send,
)
from .sqlite_fixtures import in_child, open_at

STEP = 50


@pytest.fixture(autouse=True)
def short_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_deletion, "ROWS_AT_ONCE", STEP)


def row_count(store: SqliteStore) -> int:
    with store.file.reading() as database:
        return int(database.execute("select count(*) from ledger").fetchone()[0])


def filled(path: Path, rows: int) -> SqliteStore:
    store = open_at(path)
    send(store, LINKED, *(report(n) for n in range(rows)))
    return store


# -- what a step costs -----------------------------------------------------------------------------


def instructions(path: Path, rows: int) -> list[int]:
    """Return how many instructions SQLite executes in each step of a deletion of so many rows.

    The reader that is given back is the one that the next reading takes.
    """
    executed = 0

    def count() -> int:
        nonlocal executed
        executed += 1
        return 0

    with closing(filled(path, rows)) as store:
        drop_finally(store, LINKED, 1)
        for connection in (store.file.writing, store.file.reading):
            with connection() as database:
                database.set_progress_handler(count, 1)
        ends = [executed]
        while store.delete_rows(LINKED):
            ends.append(executed)
        assert row_count(store) == 0
    return [end - begin for begin, end in pairwise(ends)]


def delete_by_scan(_: RowRange, database: sqlite3.Connection) -> None:
    """Delete as many rows, each looked up in a list: SQLite compares every row of the epoch."""
    database.execute(
        "delete from ledger where (series, epoch, row) in (select l.series, l.epoch, l.row"
        " from series s join ledger l on l.series = s.number and l.epoch < s.deleted limit ?)",
        (STEP,),
    )


@pytest.mark.parametrize("planted", [False, True], ids=["", "planted"])
def test_a_step_costs_the_same_however_many_rows_are_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, planted: bool
) -> None:
    """No step of a long deletion costs more than the dearest of a short one, within 5%.

    Planted: a step that scans the epoch.
    """
    if planted:
        monkeypatch.setattr(RowRange, "delete", delete_by_scan)
    few, many = (max(instructions(tmp_path / f"{steps}.db", steps * STEP)) for steps in (8, 64))

    assert (many <= 1.05 * few) != planted


def test_a_step_deletes_so_many_rows_and_no_others(path: Path) -> None:
    """Whatever their epoch; those of epochs that are kept stay."""
    reports = [report(n, period) for period in range(3) for n in range(STEP - 10)]
    with closing(open_at(path)) as store:
        send(store, DAILY, *reports)
        drop_finally(store, DAILY, 2)
        counts = [row_count(store)]
        while store.delete_rows(DAILY):
            counts.append(row_count(store))

        assert [*counts, row_count(store)] == [3 * STEP - 30, 2 * STEP - 30, STEP - 10]
        assert not store.delete_rows(DAILY)
        assert send(store, DAILY, *reports[-2:], report(STEP, 2)) == [
            *2 * [Verdict.DUPLICATE],
            Verdict.COUNTED,
        ]


# -- what happens in between -----------------------------------------------------------------------


def test_commits_are_made_between_two_steps(path: Path) -> None:
    with closing(filled(path, 10 * STEP)) as store:
        drop_finally(store, LINKED, 1)
        steps = takewhile(lambda _: store.delete_rows(LINKED), range(100))
        verdicts = [send(store, DAILY, report(step, 0)) for step in steps]

        assert verdicts == 10 * [[Verdict.COUNTED]]
        assert row_count(store) == 10


def test_a_deletion_half_way_shows_nowhere(path: Path, tmp_path: Path) -> None:
    """The epoch is closed, its figures stay, no copy has its rows, and nothing restores it."""
    with closing(filled(path, 3 * STEP)) as store, closing(open_at(tmp_path / "copy.db")) as copy:
        figures = store.report_counts(LINKED), histograms(store, LINKED)
        drop_finally(store, LINKED, 1)
        assert store.delete_rows(LINKED)
        copy.import_pieces(list(store.export_pieces()))

        assert row_count(store) == 2 * STEP
        assert send(store, LINKED, report(1)) == send(store, LINKED, report(3 * STEP - 1))
        assert send(store, LINKED, report(9 * STEP)) == [Verdict.STALE]
        assert (store.report_counts(LINKED), histograms(store, LINKED)) == figures
        assert not store.close_row(LINKED, [0], report(3 * STEP - 1).row)
        assert store.restore_dropped(LINKED) == 0
        assert row_count(copy) == 0


def drop_and_die(path: Path) -> None:
    """Drop an epoch, and end after the first step."""
    store = open_at(path)
    drop_finally(store, LINKED, 1)
    store.delete_rows(LINKED)
    os.kill(os.getpid(), signal.SIGKILL)


def test_opening_a_store_deletes_nothing_and_any_process_goes_on(path: Path) -> None:
    filled(path, 3 * STEP).close()
    assert in_child(drop_and_die, path) == -signal.SIGKILL

    with closing(open_at(path)) as again:
        assert row_count(again) == 2 * STEP
        assert send(again, LINKED, report(1)) == [Verdict.STALE]
        while again.delete_rows(LINKED):
            pass
        assert row_count(again) == 0
        assert again.report_counts(LINKED) == {Cell(0, 0): 3 * STEP}


def test_what_was_dropped_is_not_left_on_the_disk(path: Path) -> None:
    marked = b"\xa5marked-row\x5a"
    store = filled(path, 300)
    send(store, LINKED, SlotReport(marked))
    store.close()
    assert marked in path.read_bytes()

    drop_and_delete(store, LINKED, 1)
    store.close()
    assert marked not in path.read_bytes()
