"""One file: where it is, who may read it, how it is opened, shared, forked and kept up to date."""

from __future__ import annotations

import os
import sqlite3
import stat
import threading
from contextlib import closing
from datetime import UTC, datetime
from fcntl import LOCK_SH, flock
from pathlib import Path

import pytest

from veilcount_aggregator.errors import StoreFull, StoreUnavailable, StoreUnfit, StoreWentBack
from veilcount_aggregator.releases.release_journal import ReleaseJournal
from veilcount_aggregator.store import DurabilityState, Record, open_store
from veilcount_aggregator.store.sqlite import connection, schema
from veilcount_aggregator.store.sqlite import database as database_module
from veilcount_aggregator.store.sqlite.connection import SqliteUrl
from veilcount_aggregator.store.sqlite.schema import APPLICATION, FORMAT
from veilcount_aggregator.store.sqlite.store import SqliteStore
from veilcount_aggregator.store.sqlite.wal_guard import ENDS, WalGuard
from veilcount_serving.errors import SettingsError
from veilcount_shared.verdict import Verdict

from ..series_fixtures import DAILY, LINKED, report, send
from .sqlite_fixtures import FORK, in_child, is_sound, open_at, set_format

COUNTED, DUPLICATE = Verdict.COUNTED, Verdict.DUPLICATE


# -- the URL --------------------------------------------------------------------------------------


def test_three_slashes_are_relative_and_four_absolute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A relative file stays where it was when it was named."""
    monkeypatch.chdir(tmp_path)

    assert SqliteUrl.parse("sqlite:///a/b.db").path == tmp_path / "a/b.db"
    assert SqliteUrl.parse("sqlite:////var/lib/b.db").path == Path("/var/lib/b.db")
    assert SqliteUrl.parse("sqlite:////var/a%20b.db").path == Path("/var/a b.db")


@pytest.mark.parametrize(
    "wrong",
    [
        "sqlite://",
        "sqlite://store.db",
        "sqlite:///:memory:",
        "sqlite:///store.db#part",
        "sqlite:///store.db?timeout=5",
        "postgres://host/db",
    ],
)
def test_a_url_of_no_file_is_refused(wrong: str) -> None:
    with pytest.raises(SettingsError, match="store = ") as refused:
        open_store(wrong, make=True)

    assert wrong in str(refused.value)


# -- opening ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["store.db", "none/store.db"])
def test_a_store_is_made_only_on_request(tmp_path: Path, name: str) -> None:
    with pytest.raises(StoreUnfit, match="veilcount init"):
        open_at(tmp_path / name, make=False)

    assert list(tmp_path.iterdir()) == []


def test_only_its_owner_may_read_it(tmp_path: Path) -> None:
    """The file, what SQLite and the lock keep next to it, and a directory that is made for it."""
    with closing(open_at(tmp_path / "new" / "store.db")) as made:
        send(made, DAILY, report(1))
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.rglob("*")}
        link = f".store.db-{(tmp_path / 'new' / 'store.db').stat().st_ino}"

    files = ["store.db", *(f"store.db-{end}" for end in ("wal", "shm", "lock", "height"))]
    links = [f"{link}-wal", f"{link}-shm"]
    assert modes == {"new": 0o700} | dict.fromkeys([*files, *links], 0o600)


@pytest.mark.parametrize(("mode", "synchronous"), [("", 2), ("?durability=relaxed", 0)])
def test_only_a_relaxed_store_does_not_wait_for_the_disk(
    path: Path, mode: str, synchronous: int
) -> None:
    with closing(open_at(path, mode=mode)) as store:
        with store.file.writing() as database:
            found = {
                name: database.execute(f"pragma {name}").fetchone()[0]
                for name in ("journal_mode", "synchronous", "secure_delete", "application_id")
            }
            (version,) = database.execute("pragma user_version").fetchone()
        health = store.health()

    assert list(found.values()) == ["wal", synchronous, 1, APPLICATION]
    assert version == FORMAT
    assert health.durable is (DurabilityState.NO if mode else DurabilityState.YES)
    assert ("relaxed" in health.why) == bool(mode)


def test_tables_are_strict(store: SqliteStore) -> None:
    with store.file.reading() as database:
        strict = database.execute(
            "select strict from pragma_table_list where schema = 'main' and type = 'table'"
            " and name not like 'sqlite_%'"
        ).fetchall()

    assert strict == [(1,)] * 14


def test_another_programs_database_is_refused(path: Path) -> None:
    with closing(sqlite3.connect(path)) as database:
        database.execute("create table theirs (a)")
    before = path.read_bytes()

    for make in (False, True):
        with pytest.raises(StoreUnfit, match="not a veilcount store"):
            open_at(path, make=make)
    assert path.read_bytes() == before


def test_an_empty_file_is_no_store_yet(path: Path) -> None:
    path.touch()

    with pytest.raises(StoreUnfit, match="is empty"):
        open_at(path, make=False)
    open_at(path, make=True).close()
    open_at(path, make=False).close()


def test_a_damaged_file_is_refused(path: Path, store: SqliteStore) -> None:
    for first in range(40):
        send(store, DAILY, *(report(100 * first + n) for n in range(100)))
    store.close()
    for whole in (path.read_bytes()[:4096], b""):
        path.write_bytes(whole + os.urandom(100_000))
        with pytest.raises(StoreUnfit, match="restore a backup"):
            open_at(path, make=False)


# -- formats ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [FORMAT - 1, FORMAT + 1])
@pytest.mark.parametrize("make", [False, True])
def test_a_store_of_another_format_is_refused_and_left_as_it_is(
    path: Path, store: SqliteStore, number: int, *, make: bool
) -> None:
    store.close()
    set_format(path, number)
    before = path.read_bytes()

    with pytest.raises(StoreUnfit, match=rf"of format {number}; this version reads {FORMAT}: run"):
        open_at(path, make=make)
    assert path.read_bytes() == before


@pytest.mark.parametrize("planted", [False, True], ids=["", "planted"])
def test_a_program_that_runs_while_another_version_takes_the_store_writes_nothing(
    path: Path, store: SqliteStore, monkeypatch: pytest.MonkeyPatch, *, planted: bool
) -> None:
    """It does not know what the tables mean now. Planted: it looks at the format only once."""
    assert send(store, DAILY, report(1)) == [COUNTED]
    set_format(path, FORMAT + 1)
    if planted:
        monkeypatch.setattr(database_module, "refuse_other_format", lambda *_: None)
        assert send(store, DAILY, report(2)) == [COUNTED]
        return

    with pytest.raises(StoreUnfit, match="run the version that made it"):
        send(store, DAILY, report(2))
    set_format(path, FORMAT)
    assert send(store, DAILY, report(1), report(2)) == [DUPLICATE, COUNTED]


def test_tables_are_made_whole_or_not_at_all(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(schema, "_SCRIPT", f"{schema._SCRIPT};\ninsert into nowhere values (1)")
        with pytest.raises(StoreUnavailable):
            open_at(path)
    with closing(sqlite3.connect(path)) as database:
        tables = database.execute("select count(*) from sqlite_schema").fetchone()

    assert tables == (0,)
    open_at(path).close()


# -- the file under the store ----------------------------------------------------------------------


def test_a_store_that_was_removed_takes_nothing(path: Path, store: SqliteStore) -> None:
    """What is acknowledged must be found again; no other one is made in its place."""
    send(store, DAILY, report(1))
    path.unlink()

    for _ in range(2):
        with pytest.raises(StoreUnfit, match="no store there"):
            send(store, DAILY, report(2))
        with pytest.raises(StoreUnfit, match="no store there"):
            store.generation()
    assert not path.exists()


def test_a_store_that_was_exchanged_is_the_new_one_once_it_is_accepted(
    path: Path, store: SqliteStore
) -> None:
    send(store, DAILY, report(1))
    with closing(open_at(path.with_name("other.db"))) as other:
        send(other, DAILY, report(2))
    for left in ("-wal", "-shm"):
        path.with_name(f"store.db{left}").unlink()
    path.with_name("other.db").replace(path)

    assert store.new_pseudonyms(DAILY) == {0: 1}
    with pytest.raises(StoreWentBack, match="another store"):
        send(store, DAILY, report(1))
    store.accept_losses(datetime.now(UTC))
    assert send(store, DAILY, report(1), report(2)) == [COUNTED, DUPLICATE]


def test_closing_leaves_one_file(path: Path, store: SqliteStore) -> None:
    """And the lock and the height; the WAL is written back. A closed store opens anew when used."""
    send(store, DAILY, report(1))
    store.report_counts(DAILY)
    store.close()

    names = {each.name for each in path.parent.iterdir()}
    assert names == {"store.db", "store.db-lock", "store.db-height"}
    assert send(store, DAILY, report(1)) == [DUPLICATE]


# -- readers ---------------------------------------------------------------------------------------


def test_a_reading_is_one_state_and_cannot_write(store: SqliteStore) -> None:
    with store.file.reading() as database:
        before = database.execute("select generation from state").fetchone()
        store.change_records(0, [Record("key", "a", b"")])
        after = database.execute("select generation from state").fetchone()

    assert before == after == (0,)
    assert store.generation() == 1
    with pytest.raises(StoreUnavailable, match="readonly"), store.file.reading() as database:
        database.execute("delete from ledger")


def test_readers_are_few(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store.file._readers, "_seconds", 0.05)
    held = [store.file.reading() for _ in range(connection.MOST_READERS)]
    for each in held:
        each.__enter__()

    with pytest.raises(StoreUnavailable, match="busy"):
        store.generation()
    for each in held:
        each.__exit__(None, None, None)
    assert store.generation() == 0


# -- forks -----------------------------------------------------------------------------------------


def count_in_child(store: SqliteStore, first: int) -> None:
    """Count ten rows; some of them are the parent's too."""
    send(store, LINKED, *(report(number) for number in range(first, first + 10)))


def test_a_forked_child_opens_anew(store: SqliteStore) -> None:
    send(store, LINKED, report(0))
    store.report_counts(LINKED)
    children = [FORK.Process(target=count_in_child, args=(store, 5 * n)) for n in range(4)]
    for child in children:
        child.start()
        send(store, LINKED, report(100 + len(children)))
    for child in children:
        child.join()

    assert [child.exitcode for child in children] == [0] * 4
    assert sum(store.report_counts(LINKED).values()) == 26
    assert store.spend_histograms(LINKED)[0][0] == 26
    assert is_sound(store)


def refuse_in_child(store: SqliteStore) -> None:
    """Exit with 0 if neither reading nor writing is done."""
    with pytest.raises(StoreUnavailable, match="after the fork"):
        send(store, LINKED, report(1))
    with pytest.raises(StoreUnavailable, match="after the fork"):
        store.generation()


@pytest.mark.parametrize("step", ["a fork", "a call"])
def test_a_call_that_takes_long_is_waited_for_so_long(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """A child that is forked in the middle would take its parent's locks for its own."""
    monkeypatch.setattr(database_module, "FORK_SECONDS", 0.05)
    monkeypatch.setattr(database_module, "SECONDS", 0.1)
    inside, leave = threading.Event(), threading.Event()

    def stay() -> None:
        with store.file.writing():
            inside.set()
            leave.wait(60)

    thread = threading.Thread(target=stay)
    thread.start()
    inside.wait(60)
    if step == "a fork":
        assert in_child(refuse_in_child, store) == 0
    else:
        with pytest.raises(StoreUnavailable, match="another call"):
            send(store, LINKED, report(1))
    leave.set()
    thread.join()

    assert send(store, LINKED, report(1)) == [COUNTED]


# -- files of others in its directory --------------------------------------------------------------


CONTENT = b"what somebody else keeps\n"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    found = tmp_path / "store"
    found.mkdir(mode=0o700)
    return found


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    found = tmp_path / "victim"
    found.write_bytes(CONTENT)
    return found


@pytest.mark.parametrize("end", ["-wal", "-shm", "-journal", "-lock"])
def test_a_file_of_a_store_that_leads_elsewhere_is_refused(
    place: Path, victim: Path, end: str
) -> None:
    url, file = f"sqlite:///{place}/store.db", place / f"store.db{end}"
    open_store(url, make=True).close()
    file.unlink(missing_ok=True)
    file.symlink_to(victim)
    with pytest.raises(StoreUnfit, match="is a link"):
        open_store(url)

    assert victim.read_bytes() == CONTENT


def test_a_journal_that_leads_elsewhere_is_not_written(place: Path, victim: Path) -> None:
    """What stands behind its last whole line would be cut off."""
    victim.write_bytes(CONTENT + b"no end")
    journal = ReleaseJournal(place / "releases.jsonl")
    journal.path.symlink_to(victim)
    with pytest.raises(StoreFull, match="cannot be written"):
        journal.keep([{"a": 1}])

    assert victim.read_bytes() == CONTENT + b"no end"


def test_a_log_that_its_last_user_removes_meanwhile_is_not_put_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One process closes a store just while another one opens it."""
    path = tmp_path / "store.db"
    path.touch()
    log, index = (path.with_name(f".store.db-{path.stat().st_ino}-{end}") for end in ENDS)
    log.touch()
    index.touch()
    held = os.open(log, os.O_RDONLY)
    flock(held, LOCK_SH)

    def removed_first(name: Path, made: Path) -> None:
        log.unlink()
        index.unlink()
        raise FileNotFoundError(name, made)

    monkeypatch.setattr(os, "link", removed_first)
    WalGuard(path).prepare(lambda: False)
    os.close(held)

    assert sorted(path.name for path in tmp_path.iterdir()) == ["store.db"]
