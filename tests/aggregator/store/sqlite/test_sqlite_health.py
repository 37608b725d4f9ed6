"""Health tells what reading alone cannot: a full disk, a write that fails, a damaged page."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.aggregator.store.series_fixtures import LINKED, report, send
from tests.aggregator.store.sqlite.sqlite_fixtures import (
    fill_disk,
    in_child,
    limited_log,
    open_at,
    small_disk,
)
from veilcount_aggregator.api.health import readiness
from veilcount_aggregator.api.metrics import _store
from veilcount_aggregator.api.store_probe import StoreProbe
from veilcount_aggregator.cli.main import run
from veilcount_aggregator.errors import StoreFull, StoreUnavailable, StoreUnfit
from veilcount_aggregator.store import Record
from veilcount_aggregator.store.sqlite import SqliteStore
from veilcount_aggregator.store.sqlite import store as engine
from veilcount_aggregator.store.sqlite.health import DAMAGED, FULL, MEMORY_SECONDS, WriteHealth


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


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
    """At /readyz, until there is space again and a commit has shown it."""
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
    with limited_log(path, 0):
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
    store.file.condition = WriteHealth(clock := Clock())
    sizes = []
    for _ in range(4):
        for _ in range(20):
            store.health()
        sizes.append(path.with_name("store.db-wal").stat().st_size)
        clock.now += 2.0

    assert sizes[0] == sizes[1] == sizes[2] < sizes[3]


def test_a_failed_commit_is_remembered_through_a_probe(store: SqliteStore) -> None:
    """The probe succeeds meanwhile, and is no report."""
    store.file.condition = condition = WriteHealth(clock := Clock())
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
