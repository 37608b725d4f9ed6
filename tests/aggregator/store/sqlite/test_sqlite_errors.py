"""What goes wrong under a store of SQLite, for real: nothing acknowledged is lost or doubled."""

from __future__ import annotations

import multiprocessing
import os
import resource
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from fcntl import LOCK_EX, LOCK_NB, LOCK_UN, flock
from pathlib import Path
from shutil import which

import pytest

from tests.aggregator.store.series_fixtures import LINKED, Asked, drop_and_delete, row, send, series
from veilcount_aggregator.errors import StoreFull, StoreUnavailable
from veilcount_aggregator.store import Cell, Record, Store, open_store
from veilcount_aggregator.store.sqlite import SqliteStore
from veilcount_aggregator.store.sqlite import database as file
from veilcount_aggregator.store.sqlite.file_lock import FileLock
from veilcount_shared.verdict import Verdict

COUNTED, DUPLICATE = Verdict.COUNTED, Verdict.DUPLICATE
WIDE = series("plane")


def made(path: Path) -> SqliteStore:
    """Make a store."""
    store = open_store(f"sqlite:///{path}", make=True)
    assert isinstance(store, SqliteStore)
    return store


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the store is."""
    return tmp_path / "store.db"


@pytest.fixture
def store(path: Path) -> Iterator[SqliteStore]:
    """A new store."""
    store = made(path)
    yield store
    store.close()


def spent_bits(store: SqliteStore) -> int:
    """Return how many slots the ledger says are spent."""
    with store.file.reading() as database:
        rows = database.execute("select spent from ledger").fetchall()
    return sum(int.from_bytes(spent, "little").bit_count() for (spent,) in rows)


def counted(store: Store) -> int:
    """Return how many reports the tallies hold."""
    return sum(sum(store.report_counts(which).values()) for which in (LINKED, WIDE))


def whole(store: SqliteStore) -> bool:
    """Whether counters, ledger, spread and sizes tell of the same reports, in a sound file."""
    with store.file.reading() as database:
        sound = database.execute("pragma integrity_check").fetchone() == ("ok",)
    sums = [
        int(store.counters(each, list(store.report_counts(each))).sum()) for each in (LINKED, WIDE)
    ]
    spread = sum(
        int((rows * range(1, len(rows) + 1)).sum())
        for each in (LINKED, WIDE)
        for rows in store.spend_histograms(each).values()
    )
    return sound and sum(sums) == counted(store) == spent_bits(store) == spread


# -- the process ends -----------------------------------------------------------------------------


def load(path: Path, first: int, told: Path) -> None:
    """Commit for ever; write down what was acknowledged."""
    store = made(path)
    with told.open("ab", buffering=0) as line:
        for number in range(first, 1 << 40):
            verdicts = send(store, LINKED, Asked(row(number), 0), Asked(row(number), 1))
            verdicts += send(store, WIDE, Asked(row(number), 0, message=number % 5000))
            assert verdicts == [COUNTED] * 3
            line.write(number.to_bytes(8, "big"))


def acknowledged(told: Path) -> list[int]:
    """Return what writers have written down so far."""
    raw = told.read_bytes()
    return [int.from_bytes(raw[at : at + 8], "big") for at in range(0, len(raw), 8)]


def wait_for(attempt: int, told: Path) -> None:
    """Wait until a writer has begun to be acknowledged."""
    deadline = time.monotonic() + 60
    while attempt not in {number >> 20 for number in acknowledged(told)}:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_writer_that_is_killed_has_lost_and_doubled_nothing(path: Path, tmp_path: Path) -> None:
    """kill -9 of one of two writers, again and again; the other goes on all the time."""
    made(path).close()
    spawn, told = multiprocessing.get_context("fork"), tmp_path / "acknowledged"
    steady = spawn.Process(target=load, args=(path, 1 << 30, told))
    steady.start()
    told.touch()
    for attempt in range(4):
        process = spawn.Process(target=load, args=(path, attempt << 20, told))
        process.start()
        wait_for(attempt, told)
        time.sleep(0.05 * attempt)  # at any step of another round
        os.kill(process.pid or 0, signal.SIGKILL)
        process.join()
    assert steady.is_alive()
    os.kill(steady.pid or 0, signal.SIGKILL)
    steady.join()

    store = made(path)
    numbers = acknowledged(told)
    assert len({number >> 20 for number in numbers}) == 5
    for number in numbers:
        again = send(store, LINKED, Asked(row(number), 0), Asked(row(number), 1))
        again += send(store, WIDE, Asked(row(number), 0))
        assert again == [DUPLICATE] * 3
    assert whole(store)
    store.close()


# -- the disk is full -----------------------------------------------------------------------------


def fill_up(store: Store, first: int = 0) -> tuple[list[int], int]:
    """Commit until there is no room; return what was acknowledged, and what was not."""
    acknowledged: list[int] = []
    for number in range(first, first + 10_000):
        try:
            send(store, LINKED, *(Asked(row(40 * number + n), n % 3) for n in range(40)))
        except StoreFull:
            return acknowledged, number
        acknowledged.append(number)
    raise AssertionError("it was never full")


def all_there(store: Store, acknowledged: list[int]) -> bool:
    """Whether each report of these groups is a duplicate."""
    return all(
        send(store, LINKED, *(Asked(row(40 * number + n), n % 3) for n in range(40)))
        == [DUPLICATE] * 40
        for number in acknowledged
    )


def test_a_full_store_says_so_and_comes_back(store: SqliteStore) -> None:
    """A group is refused whole; when there is room, the next is taken by the same store."""
    with store.file.writing() as database:
        (pages,) = database.execute("pragma page_count").fetchone()
        database.execute(f"pragma max_page_count = {pages + 20}")
    acknowledged, refused = fill_up(store)

    assert acknowledged
    assert whole(store)
    assert counted(store) == 40 * len(acknowledged)
    again = send(store, LINKED, *(Asked(row(40 * refused + n), n % 3) for n in range(40)))
    assert again == [COUNTED] * 40
    assert all_there(store, acknowledged)


@contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    """Mount a disk of one MiB, where that is allowed."""
    folder.mkdir()
    mount = [which("mount") or "mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)]
    if os.geteuid() or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("mounting a small disk needs root")
    try:
        yield folder
    finally:
        subprocess.run([which("umount") or "umount", str(folder)], check=True)


def test_a_full_disk_is_survived(tmp_path: Path) -> None:
    """Of the file system itself: refused whole, readable, and going on when there is room."""
    with small_disk(tmp_path / "disk") as disk:
        (disk / "ballast").write_bytes(bytes(200_000))
        store = made(disk / "store.db")
        acknowledged, refused = fill_up(store)
        assert store.report_counts(LINKED)
        with pytest.raises(StoreFull):
            send(store, LINKED, *(Asked(row(40 * refused + n), n % 3) for n in range(40)))

        (disk / "ballast").unlink()
        assert all_there(store, acknowledged)
        assert send(store, LINKED, Asked(row(40 * refused), 0)) == [COUNTED]
        assert whole(store)
        store.close()


def test_a_disk_that_is_full_from_the_start_says_so(tmp_path: Path) -> None:
    """No half of a store is left in the way."""
    with small_disk(tmp_path / "disk") as disk:
        ballast = disk / "ballast"
        with pytest.raises(OSError, match="No space"):
            ballast.write_bytes(bytes(2 << 20))

        with pytest.raises(StoreFull):
            made(disk / "store.db")
        ballast.unlink()
        store = made(disk / "store.db")
        assert send(store, LINKED, Asked(row(1))) == [COUNTED]
        store.close()


def in_child(work: Callable[[Path], None], path: Path) -> int | None:
    """Do something in a process of its own; return its exit code."""
    process = multiprocessing.get_context("fork").Process(target=work, args=(path,))
    process.start()
    process.join()
    return process.exitcode


def write_into_a_limit(path: Path) -> None:
    """Exit with 0 if a write that fails changes nothing, and the next is made."""
    store = made(path)
    send(store, LINKED, Asked(row(1)))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    most = path.with_name(f"{path.name}-wal").stat().st_size + 8192
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))
    with pytest.raises(StoreUnavailable):
        send(store, LINKED, *(Asked(row(n)) for n in range(2, 2000)))
    assert counted(store) == 1
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert send(store, LINKED, *(Asked(row(n)) for n in range(2000))) == [
        COUNTED if n != 1 else DUPLICATE for n in range(2000)
    ]
    assert whole(store)


def test_a_write_that_fails_is_no_write(path: Path) -> None:
    """The operating system refuses it in the middle of a commit."""
    assert in_child(write_into_a_limit, path) == 0


# -- somebody is in the way -----------------------------------------------------------------------


def test_who_holds_the_lock_for_too_long_is_named(
    path: Path, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The wait ends; reading was possible all the time; and when it is free, the store goes on."""
    monkeypatch.setattr(file, "SECONDS", 0.2)
    with path.with_name("store.db-lock").open("r+") as held:
        flock(held, LOCK_EX)
        for _ in range(3):
            with pytest.raises(StoreUnavailable, match="another process"):
                send(store, LINKED, Asked(row(1)))
        assert store.report_counts(LINKED) == {}

    assert send(store, LINKED, Asked(row(1))) == [COUNTED]


def test_a_turn_that_was_given_up_is_passed_on(path: Path) -> None:
    """A lock that comes too late for one is there for the next."""
    lock_path = path.with_name("lock")
    with lock_path.open("w") as held:
        flock(held, LOCK_EX)
        late = FileLock(lock_path)
        with pytest.raises(StoreUnavailable):
            late.take(0.05)
        flock(held, LOCK_UN)
        deadline = time.monotonic() + 10
        while any(thread.name == "veilcount-store-lock" for thread in threading.enumerate()):
            assert time.monotonic() < deadline
            time.sleep(0.005)

        flock(held, LOCK_EX | LOCK_NB)


def test_a_lock_is_waited_for(path: Path) -> None:
    """It comes when the other lets go, and is held then."""
    lock_path = path.with_name("lock")
    with lock_path.open("w") as other:
        flock(other, LOCK_EX)
        threading.Timer(0.1, flock, (other, LOCK_UN)).start()
        lock = FileLock(lock_path)
        lock.take(10)

        with pytest.raises(BlockingIOError):
            flock(other, LOCK_EX | LOCK_NB)
        lock.release()
        flock(other, LOCK_EX | LOCK_NB)
        lock.close()


def test_a_call_that_takes_long_is_waited_for_so_long(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Within one process too."""
    monkeypatch.setattr(file, "SECONDS", 0.1)
    inside, leave = threading.Event(), threading.Event()

    def stay() -> None:
        with store.file.writing():
            inside.set()
            leave.wait(20)

    thread = threading.Thread(target=stay)
    thread.start()
    inside.wait(20)
    with pytest.raises(StoreUnavailable, match="another call"):
        send(store, LINKED, Asked(row(1)))
    leave.set()
    thread.join()

    assert send(store, LINKED, Asked(row(1))) == [COUNTED]


def test_a_group_that_fails_inside_leaves_nothing(store: SqliteStore) -> None:
    """Whatever it was: the next group is taken by the same store."""
    with suppress(ZeroDivisionError), store.file.writing() as database:
        database.execute("insert into record values ('a', 'b', x'00')")
        raise ZeroDivisionError

    assert store.records("a") == {}
    assert store.change_records(0, [Record("a", "b", b"1")])


# -- much to drop ---------------------------------------------------------------------------------


def test_dropping_much_lets_others_through(store: SqliteStore) -> None:
    """40,000 rows go in many small transactions; commits are made between them."""
    for first in range(20):
        send(store, LINKED, *(Asked(row(2000 * first + n)) for n in range(2000)))
    dropping = threading.Thread(target=drop_and_delete, args=(store, LINKED, 1))
    dropping.start()
    between = 0
    while dropping.is_alive():
        send(store, WIDE, Asked(row(between), 0))
        between += 1
    dropping.join()

    assert between >= 5
    assert spent_bits(store) == between
    assert counted(store) == 40_000 + between


def drop_and_die(path: Path) -> None:
    """Drop an epoch, give it up, and end before its rows are deleted."""
    store = made(path)
    store._delete_rows = lambda: os.kill(os.getpid(), signal.SIGKILL)  # type: ignore[method-assign]
    drop_and_delete(store, LINKED, 1)


def test_a_sweep_that_was_interrupted_is_finished_at_the_next_opening(path: Path) -> None:
    """It was stale from the first moment; the rows are gone in the end."""
    store = made(path)
    send(store, LINKED, *(Asked(row(n)) for n in range(5000)))
    store.close()
    process = multiprocessing.get_context("fork").Process(target=drop_and_die, args=(path,))
    process.start()
    process.join()
    again = made(path)

    assert process.exitcode == -signal.SIGKILL
    assert spent_bits(again) == 0
    assert send(again, LINKED, Asked(row(1))) == [Verdict.STALE]
    assert again.report_counts(LINKED) == {Cell(0, 0): 5000}
    again.close()


def test_what_was_dropped_is_not_left_on_the_disk(path: Path, store: SqliteStore) -> None:
    """Not in a free page either."""
    marked = b"\xa5marked-row\x5a"
    send(store, LINKED, *(Asked(row(n)) for n in range(300)), Asked(marked))
    store.close()
    assert marked in path.read_bytes()

    drop_and_delete(store, LINKED, 1)
    store.close()
    assert marked not in path.read_bytes()


# -- much to count --------------------------------------------------------------------------------


def test_a_tally_is_kept_in_few_parts(store: SqliteStore) -> None:
    """However many groups it came in; in one, when it is final."""
    most = 0
    for number in range(300):
        send(store, WIDE, Asked(row(number), 0, message=number % 7))
        with store.file.reading() as database:
            most = max(most, database.execute("select count(*) from part").fetchone()[0])
    assert 32 <= most <= 64

    drop_and_delete(store, WIDE, 1)
    with store.file.reading() as database:
        assert database.execute("select dense, level from part").fetchall() == [(0, 3)]
    assert store.counters(WIDE, [Cell(0, 0)])[:8].tolist() == [43] * 6 + [42, 0]


def test_a_tally_that_fills_up_becomes_dense(store: SqliteStore) -> None:
    """More than half of its counters are touched: it is all of them in a row."""
    for first in range(32):
        send(
            store,
            WIDE,
            *(Asked(row(200 * first + n), 0, message=(171 * first + n) % 5461) for n in range(171)),
        )

    with store.file.reading() as database:
        assert database.execute("select dense, level from part").fetchall() == [(1, 3)]
    assert store.counters(WIDE, [Cell(0, 0)]).sum() == 32 * 171
