"""What goes wrong under a store of SQLite: nothing acknowledged is lost, and health tells."""

from __future__ import annotations

import os
import threading
from contextlib import closing, suppress
from fcntl import LOCK_EX, LOCK_NB, LOCK_UN, flock
from pathlib import Path

import pytest

from veilcount_aggregator.errors import StoreFull, StoreUnavailable, StoreUnfit
from veilcount_aggregator.operate.cli.main import run
from veilcount_aggregator.store import Cell, Record, Store
from veilcount_aggregator.store.sqlite import database as database_module
from veilcount_aggregator.store.sqlite import store as engine
from veilcount_aggregator.store.sqlite.file_lock import FileLock
from veilcount_aggregator.store.sqlite.health import DAMAGED, FULL, MEMORY_SECONDS, WriteHealth
from veilcount_aggregator.store.sqlite.store import SqliteStore
from veilcount_aggregator.store.store_probe import StoreProbe
from veilcount_aggregator.web.api.health import readiness
from veilcount_aggregator.web.api.metrics import _store
from veilcount_shared.verdict import Verdict

from ....processes import limited_files, wait_until
from ...aggregator_fixtures import SteppedClock
from ..series_fixtures import LINKED, drop_and_delete, report, send, series
from .sqlite_fixtures import fill_disk, in_child, is_sound, open_at, small_disk

COUNTED, DUPLICATE = Verdict.COUNTED, Verdict.DUPLICATE
WIDE = series("plane")


def spent_bits(store: SqliteStore) -> int:
    with store.file.reading() as database:
        rows = database.execute("select spent from ledger").fetchall()
    return sum(int.from_bytes(spent, "little").bit_count() for (spent,) in rows)


def counted(store: Store) -> int:
    return sum(sum(store.report_counts(which).values()) for which in (LINKED, WIDE))


def consistent(store: SqliteStore) -> bool:
    """Whether counters, ledger, histograms and report counts are of the same reports."""
    sums = [
        int(store.counters(each, list(store.report_counts(each))).sum()) for each in (LINKED, WIDE)
    ]
    spent = sum(
        int((rows * range(1, len(rows) + 1)).sum())
        for each in (LINKED, WIDE)
        for rows in store.spend_histograms(each).values()
    )
    return is_sound(store) and sum(sums) == counted(store) == spent_bits(store) == spent


# -- the disk is full -----------------------------------------------------------------------------


def send_group(store: Store, number: int) -> list[Verdict]:
    return send(store, LINKED, *(report(40 * number + n, n % 3) for n in range(40)))


def fill_up(store: Store) -> tuple[list[int], int]:
    """Commit until the store is full; return what was acknowledged, and what was not."""
    for number in range(10_000):
        try:
            send_group(store, number)
        except StoreFull:
            return list(range(number)), number
    raise AssertionError("it was never full")


def test_a_full_store_raises_and_comes_back(store: SqliteStore) -> None:
    with store.file.writing() as database:
        (pages,) = database.execute("pragma page_count").fetchone()
        database.execute(f"pragma max_page_count = {pages + 20}")
    known, refused = fill_up(store)

    assert known
    assert consistent(store)
    assert counted(store) == 40 * len(known)
    assert send_group(store, refused) == [COUNTED] * 40
    assert all(send_group(store, number) == [DUPLICATE] * 40 for number in known)


def test_on_a_disk_that_is_full_from_the_start_no_half_store_is_left(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk") as disk:
        ballast = fill_disk(disk)
        with pytest.raises(StoreFull):
            open_at(disk / "store.db")
        ballast.unlink()
        with closing(open_at(disk / "store.db")) as store:
            assert send(store, LINKED, report(1)) == [COUNTED]


# -- somebody is in the way -----------------------------------------------------------------------


def test_a_lock_that_is_held_for_too_long_is_named(
    path: Path, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The wait ends; reading was possible all the time; and when it is free, the store goes on."""
    monkeypatch.setattr(database_module, "SECONDS", 0.2)
    with path.with_name("store.db-lock").open("r+") as held:
        flock(held, LOCK_EX)
        for _ in range(3):
            with pytest.raises(StoreUnavailable, match="another process"):
                send(store, LINKED, report(1))
        assert store.report_counts(LINKED) == {}

    assert send(store, LINKED, report(1)) == [COUNTED]


def test_an_abandoned_place_in_the_queue_is_passed_on(path: Path) -> None:
    """A lock that comes too late for one is there for the next."""
    with path.open("w") as held:
        flock(held, LOCK_EX)
        late = FileLock(path)
        with pytest.raises(StoreUnavailable):
            late.take(0.05)
        flock(held, LOCK_UN)
        names = {"veilcount-store-lock"}
        wait_until(lambda: not names & {each.name for each in threading.enumerate()}, 60)

        flock(held, LOCK_EX | LOCK_NB)


def test_a_group_that_fails_inside_leaves_nothing(store: SqliteStore) -> None:
    with suppress(ZeroDivisionError), store.file.writing() as database:
        database.execute("insert into record values ('a', 'b', x'00')")
        raise ZeroDivisionError

    assert store.records("a") == {}
    assert store.change_records(0, [Record("a", "b", b"1")])


# -- much to count --------------------------------------------------------------------------------


def parts(store: SqliteStore) -> list[tuple[int, int]]:
    """Return the form of each part of the tallies, and its level."""
    with store.file.reading() as database:
        return database.execute("select form, level from part").fetchall()


def test_a_tally_is_kept_in_few_parts(store: SqliteStore) -> None:
    """However many groups it came in; in one, when it is final."""
    most = 0
    for number in range(150):
        send(store, WIDE, report(number, 0, message=number % 7))
        most = max(most, len(parts(store)))
    assert 32 <= most <= 64

    drop_and_delete(store, WIDE, 1)
    assert parts(store) == [(0, 3)]
    assert store.counters(WIDE, [Cell(0, 0)])[:8].tolist() == [22] * 3 + [21] * 4 + [0]


def test_a_tally_that_fills_up_becomes_dense(store: SqliteStore) -> None:
    """More than half of its counters are touched: it is all of them in a row."""
    for first in range(32):
        numbers = range(171 * first, 171 * (first + 1))
        send(store, WIDE, *(report(n, 0, message=n % 5461) for n in numbers))

    assert parts(store) == [(1, 3)]
    assert store.counters(WIDE, [Cell(0, 0)]).sum() == 32 * 171


# -- health tells what reading alone cannot --------------------------------------------------------


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each question writes and looks, whoever asked before."""
    monkeypatch.setattr(engine, "PROBE_SECONDS", 0.0)
    monkeypatch.setattr(engine, "PAGES_SECONDS", 0.0)


def test_the_probe_writes_to_the_disk(path: Path, store: SqliteStore) -> None:
    """A write that changes no byte would be skipped by SQLite, and prove nothing."""
    send(store, LINKED, report(1))
    before = path.with_name("store.db-wal").stat().st_size
    for _ in range(3):
        store.health()

    assert path.with_name("store.db-wal").stat().st_size >= before + 3 * 4096


def test_a_full_disk_is_reported(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk") as disk:
        store = open_at(disk / "store.db")
        probe = StoreProbe(store)
        assert readiness(probe).ready
        ballast = fill_disk(disk)

        found = readiness(probe)
        assert not found.ready
        assert FULL in found.why
        with pytest.raises(StoreFull):
            send(store, LINKED, *(report(n) for n in range(2000)))
        ballast.unlink()
        assert not readiness(probe).ready, "a probe is too small to show that there is space"
        send(store, LINKED, report(1))
        assert readiness(probe).ready
        store.close()


def look_into_a_limit(path: Path) -> None:
    """Exit with 0 if a write that the system refuses is reported."""
    store = open_at(path)
    send(store, LINKED, report(1))
    with limited_files(path.with_name(f"{path.name}-wal").stat().st_size):
        assert store.health().trouble == "a write failed: SQLITE_IOERR_WRITE"
    assert store.health().trouble == ""
    store.close()


def test_a_write_that_fails_is_reported_by_its_name(path: Path) -> None:
    assert in_child(look_into_a_limit, path) == 0


def test_a_damaged_page_that_nobody_reads_is_reported(path: Path, store: SqliteStore) -> None:
    """By readiness, metric and exit code, though small writes succeed; restoring ends it."""
    check = ["store", "check", "--store", f"sqlite:///{path}"]
    send(store, LINKED, *(report(n) for n in range(3000)))
    assert "veilcount_store_writable{} 1\n" in "".join(_store(store.health()))
    assert run(check) == 0
    store.close()
    whole = path.read_bytes()
    _damage(path, store)

    # Of another table: a report of the ledger may lie on the damaged page.
    store.change_records(store.generation(), [Record("kind", "key", b"value")])
    found = readiness(StoreProbe(store))

    assert store.health().trouble == DAMAGED
    assert not found.ready
    assert "restore a backup" in found.why
    assert "veilcount_store_writable{} 0\n" in "".join(_store(store.health()))
    assert run(check) == 1

    store.close()
    path.with_name("new.db").write_bytes(whole)
    path.with_name("new.db").replace(path)
    assert store.health().trouble == ""


def test_damage_that_a_reading_meets_is_reported(path: Path, store: SqliteStore) -> None:
    store.file.condition.due("pages", 1e9)
    send(store, LINKED, *(report(n) for n in range(3000)))
    store.close()
    _damage(path, store)
    with pytest.raises(StoreUnfit):
        list(store.export_pieces())

    assert store.health().trouble == DAMAGED


def test_probes_are_few(path: Path, store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "PROBE_SECONDS", 5.0)
    store.file.condition = WriteHealth(clock := SteppedClock())
    sizes = []
    for _ in range(4):
        for _ in range(20):
            store.health()
        sizes.append(path.with_name("store.db-wal").stat().st_size)
        clock.now += 2.0

    assert sizes[0] == sizes[1] == sizes[2] < sizes[3]


def test_a_failed_commit_is_remembered_through_a_probe(store: SqliteStore) -> None:
    """The probe succeeds meanwhile, and is no report."""
    store.file.condition = condition = WriteHealth(clock := SteppedClock())
    condition.failed(StoreUnavailable("x"), OSError(5, "I/O error"), probe=False)

    assert store.health().trouble == "a write failed: OSError"
    clock.now += MEMORY_SECONDS
    assert store.health().trouble == ""


def _damage(path: Path, store: SqliteStore) -> None:
    with store.file.reading() as database:
        (page,) = database.execute(
            "select pageno from dbstat where name = 'ledger' and pagetype = 'leaf'"
            " order by pageno desc limit 1"
        ).fetchone()
        (size,) = database.execute("pragma page_size").fetchone()
    store.close()
    with path.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(os.urandom(size))
