"""One file: where it is, who may read it, how it is opened, shared, forked and kept up to date."""

from __future__ import annotations

import multiprocessing
import os
import sqlite3
import stat
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.aggregator.store.series_fixtures import DAILY, LINKED, Asked, row, send
from veilcount_aggregator.errors import SettingsError, StoreUnavailable, StoreUnfit
from veilcount_aggregator.store import DurabilityState, Record, open_store
from veilcount_aggregator.store.sqlite import SqliteStore, reader_pool
from veilcount_aggregator.store.sqlite import database as file
from veilcount_aggregator.store.sqlite.database import SqliteDatabase
from veilcount_aggregator.store.sqlite.schema import APPLICATION, STEPS
from veilcount_aggregator.store.sqlite.url import SqliteUrl
from veilcount_shared.verdict import Verdict

COUNTED, DUPLICATE = Verdict.COUNTED, Verdict.DUPLICATE


def url(path: Path) -> str:
    """Return a path as a store's URL."""
    return f"sqlite:///{path}"


def opened(path: Path, *, make: bool = True) -> SqliteStore:
    """Open a store of this engine."""
    store = open_store(url(path), make=make)
    assert isinstance(store, SqliteStore)
    return store


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a store is going to be."""
    return tmp_path / "store.db"


@pytest.fixture
def store(path: Path) -> Iterator[SqliteStore]:
    """A new store."""
    made = opened(path)
    yield made
    made.close()


# -- the URL ---------------------------------------------------------------------------------------


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
        "sqlite:",
        "sqlite://",
        "sqlite:///",
        "sqlite://store.db",
        "sqlite://host/store.db",
        "sqlite:///:memory:",
        "sqlite:////var/lib/",
        "sqlite:///store.db#part",
        "sqlite:///store.db?durability=full",
        "sqlite:///store.db?durability=relaxed&mode=ro",
        "sqlite:///store.db?timeout=5",
        "postgres://host/db",
    ],
)
def test_what_is_no_place_is_refused(wrong: str) -> None:
    """With what stands there, and what to give instead."""
    with pytest.raises(SettingsError) as refused:
        open_store(wrong, make=True)

    assert refused.value.value == wrong
    assert refused.value.name == "store"


# -- opening ---------------------------------------------------------------------------------------


def test_no_store_is_made_unasked(path: Path) -> None:
    """It says how to make one, and leaves nothing behind."""
    with pytest.raises(StoreUnfit, match="veilcount init"):
        opened(path, make=False)

    assert list(path.parent.iterdir()) == []


def test_a_store_in_no_directory_is_no_store(tmp_path: Path) -> None:
    """Nor is the directory made, unasked."""
    with pytest.raises(StoreUnfit, match="veilcount init"):
        opened(tmp_path / "none" / "store.db", make=False)

    assert list(tmp_path.iterdir()) == []


def test_only_its_owner_may_read_it(tmp_path: Path) -> None:
    """The file, what SQLite and the lock keep beside it, and a directory that is made for it."""
    made = opened(tmp_path / "new" / "store.db")
    send(made, DAILY, Asked(row(1)))

    modes = {each.name: stat.S_IMODE(each.stat().st_mode) for each in tmp_path.rglob("*")}
    inode = (tmp_path / "new" / "store.db").stat().st_ino
    assert modes == {
        f".store.db-{inode}-wal": 0o600,
        f".store.db-{inode}-shm": 0o600,
        "new": 0o700,
        "store.db": 0o600,
        "store.db-wal": 0o600,
        "store.db-shm": 0o600,
        "store.db-lock": 0o600,
    }
    made.close()


def test_a_commit_waits_for_the_disk(store: SqliteStore) -> None:
    """WAL, and synchronous FULL; what is deleted is overwritten."""
    with store.file.writing() as database:
        found = [
            database.execute(f"pragma {name}").fetchone()[0]
            for name in ("journal_mode", "synchronous", "secure_delete", "application_id")
        ]

    assert found == ["wal", 2, 1, APPLICATION]


def test_a_relaxed_store_says_that_it_forgets(path: Path) -> None:
    """It does not wait for the disk, and its health shows it."""
    relaxed = open_store(f"{url(path)}?durability=relaxed", make=True)
    assert isinstance(relaxed, SqliteStore)
    with relaxed.file.writing() as database:
        (synchronous,) = database.execute("pragma synchronous").fetchone()

    assert synchronous == 0
    assert relaxed.health().durable is DurabilityState.NO
    assert "relaxed" in relaxed.health().why
    relaxed.close()


def test_tables_are_strict(store: SqliteStore) -> None:
    """A text is no number, whoever writes it."""
    with store.file.reading() as database:
        strict = database.execute(
            "select name, strict from pragma_table_list where schema = 'main' and type = 'table'"
            " and name not like 'sqlite_%'"
        ).fetchall()

    assert len(strict) == 12
    assert all(each for _, each in strict)


def test_another_programs_database_is_refused(path: Path) -> None:
    """Nothing is written to it, asked or not."""
    with closing(sqlite3.connect(path)) as database:
        database.execute("create table theirs (a)")
    before = path.read_bytes()

    for make in (False, True):
        with pytest.raises(StoreUnfit, match="not a veilcount store"):
            opened(path, make=make)
    assert path.read_bytes() == before


def test_an_empty_file_is_no_store_yet(path: Path) -> None:
    """It becomes one where one is to be made."""
    path.touch()

    with pytest.raises(StoreUnfit, match="is empty"):
        opened(path, make=False)
    opened(path, make=True).close()
    opened(path, make=False).close()


def test_a_damaged_file_is_said_to_be(path: Path) -> None:
    """And left as it is."""
    path.write_bytes(b"no database at all, and quite long" * 200)

    with pytest.raises(StoreUnfit, match="restore a backup"):
        opened(path)


def test_damage_that_shows_later_is_said_too(path: Path, store: SqliteStore) -> None:
    """Pages have turned into noise: the next opening says so."""
    for first in range(40):
        send(store, DAILY, *(Asked(row(100 * first + n)) for n in range(100)))
    store.close()
    size = path.stat().st_size
    with path.open("r+b") as raw:
        raw.seek(4096)
        raw.write(os.urandom(size - 4096))

    with pytest.raises(StoreUnfit, match="restore a backup"):
        opened(path, make=False)


# -- versions --------------------------------------------------------------------------------------

FIRST = (
    "create table state (generation integer not null, read_only integer not null) strict;\n"
    "insert into state values (7, 0);\n"
    "create table record (kind text, key text, value text, primary key (kind, key)) strict;\n"
    "insert into record values ('key', 'a', 'b')"
)
SECOND = (
    "alter table record rename to old;\n"
    "create table record (kind text, key text, value blob not null, primary key (kind, key))"
    " strict;\n"
    "insert into record select kind, key, cast(value as blob) from old;\n"
    "drop table old"
)
BROKEN = "drop table record;\ninsert into nowhere values (1)"


def records_of(path: Path, steps: tuple[str, ...], *, make: bool = False) -> list[object]:
    """Open a file with these steps, and return its records."""
    kept = SqliteDatabase(SqliteUrl(path), steps)
    kept.open(make=make)
    with kept.reading() as database:
        found = database.execute("select value from record").fetchall()
    kept.close()
    return [value for (value,) in found]


def test_an_older_store_is_brought_up_to_date(path: Path) -> None:
    """Step by step, with what it holds."""
    assert records_of(path, (FIRST,), make=True) == ["b"]
    assert records_of(path, (FIRST, SECOND)) == [b"b"]
    assert records_of(path, (FIRST, SECOND)) == [b"b"]


def test_a_newer_store_is_refused(path: Path) -> None:
    """An older program would not know what it writes."""
    records_of(path, (FIRST, SECOND), make=True)

    with pytest.raises(StoreUnfit, match=r"newer veilcount .*upgrade"):
        records_of(path, (FIRST,))


def test_a_step_is_taken_whole_or_not_at_all(path: Path) -> None:
    """The store is as it was, in the version it had."""
    records_of(path, (FIRST,), make=True)

    with pytest.raises(StoreUnavailable):
        records_of(path, (FIRST, BROKEN))
    assert records_of(path, (FIRST,)) == ["b"]


def test_what_an_older_version_dropped_is_never_restored(path: Path) -> None:
    """It deleted rows at once: their slots would be free again."""
    older = SqliteDatabase(SqliteUrl(path), STEPS[:1])
    older.open(make=True)
    with older.writing() as database:
        given = (DAILY.fingerprint, 3)
        database.execute("insert into series (fingerprint, dropped) values (?, ?)", given)
    older.close()
    store = opened(path, make=False)

    assert store.restore_dropped(DAILY) == 0
    assert send(store, DAILY, Asked(row(1), 2), Asked(row(1), 3)) == [
        Verdict.STALE,
        COUNTED,
    ]
    store.close()


def test_a_new_store_has_the_newest_version(path: Path, store: SqliteStore) -> None:
    """As many steps as there are."""
    with store.file.reading() as database:
        (version,) = database.execute("pragma user_version").fetchone()

    assert version == len(STEPS)


# -- the file under the store ----------------------------------------------------------------------


def test_a_store_that_was_removed_takes_nothing(path: Path, store: SqliteStore) -> None:
    """What is acknowledged must be found again; no other one is made in its place."""
    send(store, DAILY, Asked(row(1)))
    path.unlink()

    for _ in range(2):
        with pytest.raises(StoreUnfit, match="no store there"):
            send(store, DAILY, Asked(row(2)))
        with pytest.raises(StoreUnfit, match="no store there"):
            store.generation()
    assert not path.exists()


def test_a_store_that_was_exchanged_is_the_new_one(path: Path, store: SqliteStore) -> None:
    """Its name decides."""
    send(store, DAILY, Asked(row(1)))
    other = opened(path.with_name("other.db"))
    send(other, DAILY, Asked(row(2)))
    other.close()
    for left in ("-wal", "-shm"):
        path.with_name(f"store.db{left}").unlink()
    path.with_name("other.db").replace(path)

    assert store.new_pseudonyms(DAILY) == {0: 1}
    assert send(store, DAILY, Asked(row(1)), Asked(row(2))) == [COUNTED, DUPLICATE]


def test_closing_leaves_one_file(path: Path, store: SqliteStore) -> None:
    """And the lock's; the WAL is written back. A closed store opens anew when it is used."""
    send(store, DAILY, Asked(row(1)))
    store.report_counts(DAILY)
    store.close()

    assert {each.name for each in path.parent.iterdir()} == {"store.db", "store.db-lock"}
    assert send(store, DAILY, Asked(row(1))) == [DUPLICATE]


# -- readers ---------------------------------------------------------------------------------------


def test_readers_cannot_write(store: SqliteStore) -> None:
    """Their connections are opened for reading."""
    with pytest.raises(StoreUnavailable, match="readonly"), store.file.reading() as database:
        database.execute("delete from ledger")


def test_a_reading_is_one_state(store: SqliteStore) -> None:
    """What is committed meanwhile is seen by the next one."""
    with store.file.reading() as database:
        before = database.execute("select generation from state").fetchone()
        store.change_records(0, [Record("key", "a", b"")])
        after = database.execute("select generation from state").fetchone()

    assert before == after == (0,)
    assert store.generation() == 1


def test_readers_are_few(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """One more than that waits, and is told so in the end."""
    monkeypatch.setattr(store.file._readers, "_seconds", 0.05)
    held = [store.file.reading() for _ in range(reader_pool.MOST)]
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
    send(store, LINKED, *(Asked(row(number)) for number in range(first, first + 10)))


def test_a_forked_child_opens_anew(store: SqliteStore) -> None:
    """Parent and children write to one store; each row is counted once."""
    send(store, LINKED, Asked(row(0)))
    store.report_counts(LINKED)
    fork = multiprocessing.get_context("fork")
    children = [fork.Process(target=count_in_child, args=(store, 5 * n)) for n in range(4)]
    for child in children:
        child.start()
        send(store, LINKED, Asked(row(100 + len(children))))
    for child in children:
        child.join()

    assert [child.exitcode for child in children] == [0] * 4
    assert sum(store.report_counts(LINKED).values()) == 26
    assert store.spend_histograms(LINKED)[0][0] == 26
    with store.file.reading() as database:
        assert database.execute("pragma integrity_check").fetchone() == ("ok",)


def refuse_in_child(store: SqliteStore) -> None:
    """Exit with 0 if neither reading nor writing is done."""
    with pytest.raises(StoreUnavailable, match="after the fork"):
        send(store, LINKED, Asked(row(1)))
    with pytest.raises(StoreUnavailable, match="after the fork"):
        store.generation()


def test_a_child_of_a_fork_in_the_middle_keeps_off(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would take its parent's locks for its own. The parent goes on."""
    monkeypatch.setattr(file, "FORK_SECONDS", 0.05)
    inside, leave = threading.Event(), threading.Event()

    def stay() -> None:
        with store.file.writing():
            inside.set()
            leave.wait(20)

    thread = threading.Thread(target=stay)
    thread.start()
    inside.wait(20)
    child = multiprocessing.get_context("fork").Process(target=refuse_in_child, args=(store,))
    child.start()
    child.join()
    leave.set()
    thread.join()

    assert child.exitcode == 0
    assert send(store, LINKED, Asked(row(1))) == [COUNTED]
