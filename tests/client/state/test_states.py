"""Both engines keep the contract: alone, among processes, with failing disks and servers."""

from __future__ import annotations

import ast
import logging
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from itertools import count
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pytest

import veilcount_client
from tests.client.delivery import server_fixtures
from tests.client.state.state_contract import (
    ANN,
    BEN,
    COST,
    NOW,
    OTHER,
    SERIES,
    Engine,
    StateContract,
    agree,
    draw,
    held,
    lease_all,
    spent,
    statuses,
)
from tests.redis_server import HOST, LosingProxy, RedisServer, free_port
from veilcount_client.state import (
    ClientState,
    DrawOutcome,
    OutboxLimits,
    StateError,
    clone_detection,
    sqlite_database,
)
from veilcount_client.state import redis as redis_state
from veilcount_client.state.factory import open_state
from veilcount_client.state.losses import Loss
from veilcount_client.state.redis import RedisState
from veilcount_client.state.sqlite import SqliteState
from veilcount_client.state.sqlite_database import FILE

ROOT = Path(__file__).parents[3]
PROCESSES, THREADS, PERIODS = 4, 8, 12


class Opened(Engine):
    """Closes what was opened."""

    def __init__(self) -> None:
        self.states: list[ClientState] = []

    def open(self) -> ClientState:
        """Open the state."""
        self.states.append(open_state(self.place))
        return self.states[-1]

    def close(self) -> None:
        """Close all."""
        for state in self.states:
            state.close()


class Sqlite(Opened):
    """A folder."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder

    @property
    def place(self) -> str:
        return str(self.folder)

    def everything(self) -> bytes:
        return b"".join(path.read_bytes() for path in self.folder.iterdir())


class Redis(Opened):
    """A key space of a server."""

    def __init__(self, server: RedisServer, space: str) -> None:
        super().__init__()
        self.server = server
        self.space = space

    @property
    def place(self) -> str:
        return f"{self.server.url}#{self.space}"

    def everything(self) -> bytes:
        return b"".join(path.read_bytes() for path in self.server.folder.rglob("*.aof"))


@pytest.fixture(scope="module")
def server(memory: Path) -> Iterator[RedisServer]:
    """A server for all who do it no harm."""
    with TemporaryDirectory(dir=memory) as folder:
        server = RedisServer(Path(folder))
        yield server
        server.kill()


@pytest.fixture
def frail(tmp_path: Path) -> Iterator[RedisServer]:
    """A server for one test alone."""
    server = RedisServer(tmp_path)
    yield server
    server.kill()


@pytest.fixture
def sqlite(tmp_path: Path) -> Iterator[Sqlite]:
    engine = Sqlite(tmp_path / "state")
    yield engine
    engine.close()


spaces = count()


@pytest.fixture
def redis(server: RedisServer) -> Iterator[Redis]:
    engine = Redis(server, f"space-{next(spaces)}")
    yield engine
    engine.close()


class TestSqlite(StateContract):
    @pytest.fixture
    def engine(self, sqlite: Sqlite) -> Engine:
        return sqlite


class TestRedis(StateContract):
    @pytest.fixture
    def engine(self, redis: Redis) -> Engine:
        return redis


@pytest.fixture(params=["sqlite", "redis"])
def engine(request: pytest.FixtureRequest) -> Opened:
    """Each engine in turn."""
    engine: Opened = request.getfixturevalue(request.param)
    return engine


def run(name: str, *given: object) -> subprocess.Popen[str]:
    """Start a process that uses a state."""
    command = [sys.executable, "-m", "tests.client.state.state_apps", name, *map(str, given)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


def numbers_from(process: subprocess.Popen[str]) -> list[int]:
    """Return the numbers that a process said before it ended."""
    text, _ = process.communicate(timeout=60)
    return [int(word) for word in text.split()]


# -- both alike ------------------------------------------------------------------------------------


def step(chance: Random) -> Callable[[ClientState], Any]:
    """Return something to do with a state, whose result says what it did."""
    who, series = chance.choice([ANN, BEN]), chance.choice([SERIES, OTHER])
    now = NOW + chance.randrange(8)
    numbers = [chance.randrange(1, 60) for _ in range(3)]
    draws = [
        draw(
            chance.randrange(6),
            chance.randrange(2),
            person=chance.choice([ANN, BEN]),
            series=chance.choice([SERIES, OTHER]),
            lineage=chance.choice(["theme", "sound"]),
            message=bytes(chance.randrange(1, 90)),
            day_cap=3 * COST,
            life_cap=9 * COST,
            send_at=now + chance.random() * 9,
            earliest=now,
            expires=now + chance.randrange(2, 30),
            free=chance.random() < 0.5,
        )
        for _ in range(chance.randrange(1, 6))
    ]
    bounds = OutboxLimits(chance.randrange(5, 30), chance.randrange(200, 2000))
    value = held(
        chance.choice("ab"), person=who, series=series, period=chance.randrange(3), due=now + 2
    )
    through = chance.randrange(6)
    given = chance.random() < 0.8
    steps: list[tuple[int, Callable[[ClientState], Any]]] = [
        (6, lambda state: state.commit(draws)),
        (3, lambda state: _by_number(state.lease(now, now + 3, 1000, hurry=given))),
        (3, lambda state: state.settle(numbers[:2], {numbers[2]: Loss.FULL})),
        (2, lambda state: state.reschedule({numbers[0]: now + 1, numbers[1]: now + 2})),
        (2, lambda state: sorted(state.overdue(now, now + 4, 1000))),
        (2, lambda state: state.hold(state.held(who, series), value)),
        (1, lambda state: state.drop_held(value)),
        (1, lambda state: state.close_row(who, series, through)),
        (1, lambda state: state.expire(now, bounds)),
        (1, lambda state: state.consent(who, given, frozenset({series}), now)),
        (1, lambda state: state.forget(who) if given else None),
        (1, lambda state: state.lose({(Loss.AGED, series): 1})),
    ]
    weights = [weight for weight, _ in steps]
    return chance.choices([do for _, do in steps], weights)[0]


def _by_number(queued_reports: list[Any]) -> list[Any]:
    return sorted(queued_reports, key=lambda queued_report: queued_report.number)


def view(state: ClientState) -> object:
    """Return all that can be asked of a state, its secrets left out."""
    return [
        state.next_due(),
        state.losses(),
        sorted(state.consenting()),
        [state.waiting(NOW + at) for at in (0, 4, 9)],
        [(state.sent(who), state.spent(who)) for who in (ANN, BEN)],
        [state.used(who, series) for who in (ANN, BEN) for series in (SERIES, OTHER)],
        [state.held(who, series) for who in (ANN, BEN) for series in (SERIES, OTHER)],
        sorted(state.held_due(NOW + 9, 1000), key=repr),
        {(each.series, each.pseudonym) for each in state.row_closes(NOW + 9, 1000)},
        [state.next_held(), state.next_row_close(), state.attempts()],
        [(state.person(who).consented, state.person(who).covered) for who in (ANN, BEN)],
        [state.person(who).since for who in (ANN, BEN)],
    ]


@pytest.mark.parametrize(
    "seed", [*range(2), *(pytest.param(seed, marks=pytest.mark.full) for seed in range(2, 40))]
)
def test_the_engines_do_the_same(sqlite: Sqlite, redis: Redis, seed: int) -> None:
    """Whatever is asked of them, in whatever order."""
    chance, one, other = Random(seed), sqlite.open(), redis.open()
    for state in (one, other):
        agree(state, ANN, BEN)
    for _ in range(120):
        do = step(chance)

        assert do(one) == do(other)
        assert view(one) == view(other)


# -- a crowd ---------------------------------------------------------------------------------------


def expect_one_winner_a_slot(state: ClientState, results: list[list[int]]) -> None:
    """Each slot was stored once, the cap of the day was kept, and no period went back."""
    stored, charged, back = (sum(column) for column in zip(*results, strict=True))
    slots = [(each.report.fingerprint, each.report.period) for each in state.sent(ANN)]
    days = [period for series, period in slots if series == SERIES]

    assert days == sorted(set(days))
    assert stored == len(days) == spent(state)
    assert charged == slots.count((OTHER, 0)) == spent(state, lineage="event") == 5
    assert back == 0


def test_processes_that_want_the_same_slots(engine: Opened) -> None:
    """One of four has each, and between them they stay under the caps."""
    state = engine.open()
    agree(state)
    processes = [run("race", engine.place, PERIODS) for _ in range(PROCESSES)]
    results = [numbers_from(process) for process in processes]

    expect_one_winner_a_slot(state, results)


def test_threads_that_want_the_same_slots(engine: Opened) -> None:
    """One of eight has each."""
    state = engine.open()
    agree(state)
    fates: Counter[DrawOutcome] = Counter()

    def want() -> None:
        for period in range(PERIODS):
            fates.update(state.commit([draw(period), draw(0, lineage="x", series=OTHER)]))

    threads = [threading.Thread(target=want) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    reports = [each.report for each in state.sent(ANN)]
    assert len(set(reports)) == len(reports) == fates[DrawOutcome.STORED] == spent(state) + 1
    assert state.used(ANN, SERIES) == (PERIODS - 1, 1)
    assert fates.total() == THREADS * PERIODS * 2


def test_a_report_is_leased_once(engine: Opened) -> None:
    """Four processes take all reports, none twice; after the leases all are there again."""
    state = engine.open()
    agree(state)
    state.commit([draw(at) for at in range(60)])
    processes = [run("take", engine.place) for _ in range(PROCESSES)]
    taken = [number for process in processes for number in numbers_from(process)]

    assert len(taken) == 60
    assert len(set(taken)) == 60
    assert lease_all(state, NOW + 599) == []
    assert {queued_report.number for queued_report in lease_all(state, NOW + 600)} == set(taken)


def test_many_open_a_new_state_at_once(engine: Opened) -> None:
    """They agree on one root, and nothing is taken for damage."""
    processes = [run("take", engine.place) for _ in range(PROCESSES)]
    nothing = [numbers_from(process) for process in processes]
    state = engine.open()

    assert nothing == [[]] * PROCESSES
    assert [process.returncode for process in processes] == [0] * PROCESSES
    assert not state.losses()


# -- ends ------------------------------------------------------------------------------------------


def expect_whole(state: ClientState, heard: list[int]) -> None:
    """All that was heard of is there; every report has its charge, every charge its report."""
    periods = [each.report.period for each in state.sent(ANN)]

    assert set(heard) <= set(periods)
    assert len(periods) == len(set(periods)) == spent(state)
    assert state.used(ANN, SERIES)[0] == max(periods)


def hear(process: subprocess.Popen[str], lines: int) -> list[int]:
    """Return the first numbers that a process says."""
    assert process.stdout is not None
    return [int(process.stdout.readline()) for _ in range(lines)]


@pytest.mark.parametrize(
    "rounds", [3, pytest.param(40, marks=[pytest.mark.full, pytest.mark.timeout(300)])]
)
def test_killed_while_it_stores(sqlite: Sqlite, rounds: int) -> None:
    """Nothing that was stored is lost, nothing is half done."""
    agree(sqlite.open())
    heard = []
    for attempt in range(rounds):
        process = run("store", sqlite.place)
        heard += hear(process, 5 + 7 * attempt % 30)
        process.kill()
        heard += numbers_from(process)

    expect_whole(sqlite.open(), heard)
    assert not sqlite.open().losses()


@pytest.mark.parametrize(
    "rounds", [2, pytest.param(20, marks=[pytest.mark.full, pytest.mark.timeout(300)])]
)
def test_a_server_killed_while_it_stores(frail: RedisServer, rounds: int) -> None:
    """What it had answered is there when it comes back, and the same state goes on."""
    state = RedisState(frail.url)
    agree(state)
    heard = []
    for attempt in range(rounds):
        process = run("store", frail.url)
        heard += hear(process, 20 + 13 * attempt % 50)
        frail.kill()
        heard += numbers_from(process)
        with pytest.raises(StateError):
            state.waiting(NOW)
        frail.start()

    expect_whole(state, heard)
    state.close()


def test_a_child_outlives_its_parent(engine: Opened, tmp_path: Path) -> None:
    """What a daemon stores after its parent ended is there, though it was killed."""
    process = run("part", engine.place, tmp_path)
    process.wait(20)
    numbers_from(process)
    state = engine.open()

    assert (tmp_path / "parted").exists()
    assert spent(state) >= 3
    assert len(state.sent(ANN)) == spent(state)
    assert state.used(ANN, SERIES) == (3, 1)
    assert not state.losses()


# -- full ------------------------------------------------------------------------------------------


def test_a_full_disk(sqlite: Sqlite) -> None:
    """It is a StateError; what was stored stays, and with room it goes on."""
    stored, refused, charged, kept = numbers_from(run("fill", sqlite.place))
    state = sqlite.open()

    assert stored > 1
    assert refused == 3
    assert stored == charged == kept == spent(state) == len(state.sent(ANN))
    assert not state.losses()


def test_a_redis_without_memory(frail: RedisServer) -> None:
    """It takes nothing new, and lets go of what it has."""
    state = RedisState(frail.url)
    agree(state)
    state.commit([draw(0), draw(1)])
    frail.ask("CONFIG", "SET", "maxmemory", "1")
    with pytest.raises(StateError, match="maxmemory"):
        state.commit([draw(2)])
    with pytest.raises(StateError):
        state.person(BEN)
    first, second = (queued_report.number for queued_report in lease_all(state))
    state.settle([first], {second: Loss.FULL})
    state.reschedule({second: NOW})
    state.expire(NOW, OutboxLimits())
    state.consent(ANN, False, frozenset(), NOW)

    assert statuses(state) == ["delivered", "full"]
    assert spent(state) == 2
    assert state.used(ANN, SERIES) == (1, 1)
    state.forget(ANN)
    assert len(state.row_closes(NOW, 10)) == 1

    frail.ask("CONFIG", "SET", "maxmemory", "0")
    agree(state)

    assert state.commit([draw(2)]) == [DrawOutcome.STORED]
    state.close()


# -- lost replies ----------------------------------------------------------------------------------


@pytest.fixture
def proxied(redis: Redis) -> Iterator[tuple[LosingProxy, RedisState]]:
    """A state behind a proxy that loses replies on demand."""
    proxy = LosingProxy(redis.server.port)
    state = RedisState(f"{proxy.url}#{redis.space}")
    for script in state._scripts.values():  # or the reply that is lost says only: no such script
        state._redis.script_load(script.script)
    agree(state)
    yield proxy, state
    state.close()
    proxy.close()


def test_a_lost_reply_charges_once(proxied: tuple[LosingProxy, RedisState]) -> None:
    """The fates are those of the commit that was done, events included."""
    proxy, state = proxied
    proxy.lose = 1
    fates = state.commit([draw(0, 0), draw(0, 1), draw(0, 1), draw(free=True)])

    assert proxy.lost == 1
    assert fates == [DrawOutcome.STORED, DrawOutcome.STORED, DrawOutcome.FROZEN, DrawOutcome.STORED]
    assert spent(state) == 2
    assert len(state.sent(ANN)) == 3


def test_two_lost_replies_are_an_error(proxied: tuple[LosingProxy, RedisState]) -> None:
    """The commit may be done; its slot is charged once all the same."""
    proxy, state = proxied
    proxy.lose = 2
    with pytest.raises(StateError):
        state.commit([draw()])
    again = state.commit([draw()])

    assert proxy.lost == 2
    assert again == [DrawOutcome.FROZEN]
    assert spent(state) == len(state.sent(ANN)) == 1


def test_whatever_reply_is_lost(proxied: tuple[LosingProxy, RedisState]) -> None:
    """Nothing is counted, put back or forgotten twice."""
    proxy, state = proxied
    state.commit([draw(0), draw(1), draw(2)])
    first, second, third = (queued_report.number for queued_report in lease_all(state))
    losing: list[Callable[[], object]] = [
        lambda: state.lose({(Loss.AGED, "a"): 1}),
        lambda: state.reschedule({first: NOW}),
        lambda: state.hold(None, held("a")),
        lambda: state.settle([second], {third: Loss.FULL}),
        lambda: state.expire(NOW, OutboxLimits()),
        lambda: state.consent(BEN, True, frozenset(), NOW),
    ]
    for act in losing:
        proxy.lose = 1
        act()

    assert proxy.lost == len(losing)
    assert state.losses() == {(Loss.AGED, "a"): 1, (Loss.FULL, SERIES): 1}
    assert [queued_report.tries for queued_report in lease_all(state)] == [2]
    assert statuses(state) == ["waiting", "delivered", "full"]

    proxy.lose = 1
    state.forget(ANN)

    assert len(state.row_closes(NOW, 10)) == 1


# -- a damaged, moved or rolled back file ----------------------------------------------------------


def damage(folder: Path, start: int = 0) -> None:
    """Write noise over a file, from a place on."""
    path = folder / FILE
    noise = Random(1).randbytes(path.stat().st_size - start)
    with path.open("r+b") as file:
        file.seek(start)
        file.write(noise)


@pytest.mark.parametrize("start", [0, 4096])
def test_a_damaged_file_is_left_and_counted(sqlite: Sqlite, start: int) -> None:
    """The next one begins anew, once, and a third opening finds nothing new."""
    state = sqlite.open()
    agree(state)
    root = state.root
    state.close()
    damage(sqlite.folder, start)
    noise = (sqlite.folder / FILE).read_bytes()
    try:
        anew = sqlite.open()
        anew.person(ANN)
    except StateError:
        anew = sqlite.open()
    again = sqlite.open()

    assert (sqlite.folder / FILE).read_bytes() == noise
    assert anew.root == again.root != root
    assert anew.person(ANN).consented is None
    assert again.losses() == {(Loss.CORRUPT, ""): 1}


def test_damage_while_many_have_it_open(sqlite: Sqlite) -> None:
    """Each learns it with one error, all agree on the next file, and it is counted once."""
    states = [sqlite.open() for _ in range(3)]
    agree(states[0])
    for state in states:
        state.close()
    damage(sqlite.folder, 4096)
    for state in states:
        with pytest.raises(StateError, match="begins anew"):
            state.person(ANN)
    for state in states:
        agree(state)
        state.commit([draw(state.used(ANN, SERIES)[0] + 1)])

    assert len({state.root for state in states}) == 1
    assert states[2].used(ANN, SERIES) == (2, 1)
    assert states[2].losses() == {(Loss.CORRUPT, ""): 1}


def test_an_emptied_file_is_counted(sqlite: Sqlite) -> None:
    """Its neighbour knows that there was one."""
    sqlite.open().close()
    for path in sqlite.folder.glob(f"{FILE}*"):
        path.write_bytes(b"")

    assert sqlite.open().losses() == {(Loss.CORRUPT, ""): 1}


def test_a_report_that_none_could_be_is_damage(sqlite: Sqlite) -> None:
    """It would stop the uploader for ever."""
    state = sqlite.open()
    agree(state)
    state.commit([draw()])
    with sqlite3.connect(sqlite.folder / FILE) as database:
        database.execute("update report set slot = 99999")
    database.close()
    with pytest.raises(StateError, match="begins anew"):
        lease_all(state)

    assert lease_all(state) == []
    assert state.losses() == {(Loss.CORRUPT, ""): 1}


def test_a_fault_of_ours_is_not_damage(sqlite: Sqlite) -> None:
    """The file stays."""
    state = sqlite.open()
    agree(state)
    with pytest.raises(StateError):
        state.keep("a", None)  # type: ignore[arg-type] # the fault

    assert state.person(ANN).consented is True
    assert not state.losses()


def test_a_copy_is_another_person_with_the_same_ledger(sqlite: Sqlite, tmp_path: Path) -> None:
    """Counted once; the original goes on."""
    state = sqlite.open()
    agree(state)
    state.commit([draw(0), draw(1)])
    person = state.person(ANN)
    state.close()
    shutil.copytree(sqlite.folder, tmp_path / "copy")
    copy = SqliteState(tmp_path / "copy")

    assert copy.person(ANN).secret != person.secret
    assert copy.person(ANN).consented is None
    assert copy.sent(ANN) == []
    assert copy.used(ANN, SERIES) == (-1, 0)
    assert copy.spent(ANN) == state.spent(ANN)
    assert spent(copy) == 2
    assert copy.losses() == SqliteState(tmp_path / "copy").losses() == {(Loss.MOVED, ""): 1}
    assert sqlite.open().person(ANN) == person
    copy.close()


# A backup of a state, from one moment: the file, and its log if there was one.
Backup = dict[str, bytes]


def back_up(folder: Path) -> Backup:
    """Copy what holds the state, as a backup does; the mark is not part of it."""
    return {path.name: path.read_bytes() for path in folder.glob(f"{FILE}*")}


def copy_back(folder: Path, backup: Backup) -> None:
    """Copy it into the same files, as `cp` does: their inode numbers stay."""
    _without_log(folder)
    for name, content in backup.items():
        (folder / name).write_bytes(content)


def move_back(folder: Path, backup: Backup) -> None:
    """Put other files in their place, as `mv` does."""
    _without_log(folder)
    for name, content in backup.items():
        (folder / f"new-{name}").write_bytes(content)
        (folder / f"new-{name}").replace(folder / name)


def _without_log(folder: Path) -> None:
    for path in folder.glob(f"{FILE}-*"):
        path.unlink()


def backed_up_while_open(engine: Sqlite) -> Backup:
    """Back up between two commits of one opening."""
    state = engine.open()
    agree(state)
    state.commit([draw(0)])
    backup = back_up(engine.folder)
    state.commit([draw(1)])
    state.close()
    return backup


def backed_up_through_sqlite(engine: Sqlite) -> Backup:
    """Back up between two commits of one opening, with SQLite's own online backup."""
    state = engine.open()
    agree(state)
    state.commit([draw(0)])
    with (
        closing(sqlite3.connect(engine.folder / FILE)) as database,
        closing(sqlite3.connect(engine.folder.parent / "backup")) as to,
    ):
        database.backup(to)
    state.commit([draw(1)])
    state.close()
    return {FILE: (engine.folder.parent / "backup").read_bytes()}


def backed_up_when_closed(engine: Sqlite) -> Backup:
    """Back up after one opening, and use the state in another."""
    state = engine.open()
    agree(state)
    state.commit([draw(0)])
    state.close()
    backup = back_up(engine.folder)
    later = engine.open()
    later.commit([draw(1)])
    later.close()
    return backup


BACKUPS = [backed_up_while_open, backed_up_through_sqlite, backed_up_when_closed]
COPIES = [copy_back, move_back]


@pytest.mark.parametrize("put_back", COPIES)
@pytest.mark.parametrize("back_up_state", BACKUPS)
def test_a_restored_file_is_another_person(
    sqlite: Sqlite,
    back_up_state: Callable[[Sqlite], Backup],
    put_back: Callable[[Path, Backup], None],
) -> None:
    """Whenever it was backed up; what the backup knew of is still spent. Counted once."""
    put_back(sqlite.folder, back_up_state(sqlite))
    back = sqlite.open()

    assert back.person(ANN).consented is None
    assert spent(back) == 1
    assert back.losses() == sqlite.open().losses() == {(Loss.MOVED, ""): 1}


def test_a_file_is_restored_a_second_time(sqlite: Sqlite) -> None:
    """It is detected each time, and so is the file that was in use before."""
    backup = backed_up_while_open(sqlite)
    latest = back_up(sqlite.folder)
    secrets = set()
    for each in (backup, backup, latest):
        copy_back(sqlite.folder, each)
        back = sqlite.open()
        secrets.add(back.person(ANN).secret)

        assert back.losses() == {(Loss.MOVED, ""): 1}
        back.close()
    assert len(secrets) == 3


def test_a_restored_file_does_not_undo_a_withdrawal(sqlite: Sqlite) -> None:
    """Nothing was stored since the backup, but a consent was withdrawn."""
    state = sqlite.open()
    agree(state)
    backup = back_up(sqlite.folder)
    state.consent(ANN, False, frozenset(), NOW)
    state.close()
    copy_back(sqlite.folder, backup)

    assert sqlite.open().consenting() == []


@pytest.mark.parametrize("back_up_state", [backed_up_while_open, backed_up_through_sqlite])
def test_a_count_of_openings_does_not_detect_a_restored_file(
    sqlite: Sqlite, back_up_state: Callable[[Sqlite], Backup], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The planted variant: the slot of a report that was stored is drawn a second time."""
    begin = SqliteState._begin

    def count_opening(state: SqliteState, database: sqlite3.Connection, path: Path) -> bytes:
        root = begin(state, database, path)
        with sqlite_database.transaction(database):
            sqlite_database._count(database)
        state._write_mark(database)
        return root

    @contextmanager
    def write_uncounted(state: SqliteState) -> Iterator[sqlite3.Connection]:
        with state._reading() as database, sqlite_database.transaction(database):
            yield database

    monkeypatch.setattr(SqliteState, "_begin", count_opening)
    monkeypatch.setattr(SqliteState, "_writing", write_uncounted)
    copy_back(sqlite.folder, back_up_state(sqlite))
    back = sqlite.open()

    assert not back.losses()
    assert back.commit([draw(1)]) == [DrawOutcome.STORED]


@pytest.mark.parametrize("commits", [20, pytest.param(400, marks=pytest.mark.full)])
def test_a_stale_log_file(sqlite: Sqlite, commits: int) -> None:
    """Only the file is copied back after a crash: the log has the rest, or it is detected."""
    agree(sqlite.open())
    process = run("store", sqlite.place)
    heard = hear(process, commits)
    backup = (sqlite.folder / FILE).read_bytes()
    heard += hear(process, commits)
    process.kill()
    heard += numbers_from(process)
    sqlite.close()
    (sqlite.folder / FILE).write_bytes(backup)
    back = sqlite.open()

    assert back.losses() or back.used(ANN, SERIES)[0] >= max(heard)


# -- the mark --------------------------------------------------------------------------------------


def mark(engine: Sqlite) -> Path:
    """Return where the mark of a state is."""
    return clone_detection.mark_path(engine.folder / FILE)


def committed(engine: Sqlite) -> int:
    """Return how many transactions a state has counted."""
    return int(engine.open().note("transactions") or 0)


@pytest.mark.parametrize("place", ["before", "after"])
@pytest.mark.parametrize(
    "writes", [0, *(pytest.param(each, marks=pytest.mark.full) for each in (1, 2, 3, 7))]
)
def test_a_crash_before_the_mark_is_written_is_no_rollback(
    sqlite: Sqlite, place: str, writes: int
) -> None:
    """A process that is killed between its commit and its mark, or right after it."""
    agree(sqlite.open())
    for _ in range(2):
        process = run("crash", sqlite.place, place, writes)
        numbers_from(process)
        assert process.returncode == -signal.SIGKILL
    state = sqlite.open()

    assert not state.losses()
    assert state.person(ANN).consented
    assert clone_detection.read_mark(mark(sqlite)) == committed(sqlite)


@pytest.mark.parametrize(
    "rounds", [2, pytest.param(40, marks=[pytest.mark.full, pytest.mark.timeout(600)])]
)
def test_kills_of_many_processes_are_no_rollback(sqlite: Sqlite, rounds: int) -> None:
    """At any moment: the mark is never ahead of what was committed."""
    agree(sqlite.open())
    chance = Random(rounds)
    for _ in range(rounds):
        processes = [run("store", sqlite.place) for _ in range(2)]
        hear(processes[0], 1)
        for process in processes:
            server_fixtures.wait_until(lambda: False, chance.random() / 5)
            process.kill()
            numbers_from(process)

        assert clone_detection.read_mark(mark(sqlite)) <= committed(sqlite)
        assert not sqlite.open().losses()


def test_the_last_of_many_processes_leaves_the_highest_mark(sqlite: Sqlite) -> None:
    """Though each writes it after its commit, in whatever order."""
    agree(sqlite.open())
    for process in [run("race", sqlite.place, PERIODS) for _ in range(PROCESSES)]:
        numbers_from(process)

    assert clone_detection.read_mark(mark(sqlite)) == committed(sqlite)


def test_a_mark_within_a_transaction_waits_for_its_commit(sqlite: Sqlite) -> None:
    """What is rolled back was never counted."""
    state = sqlite.open()
    before = clone_detection.read_mark(mark(sqlite))
    with suppress(ZeroDivisionError), state._writing() as outer:  # type: ignore[attr-defined]
        with state._writing() as inner:  # type: ignore[attr-defined]
            sqlite_database.keep(inner, "a", "1")
        assert outer.in_transaction
        assert clone_detection.read_mark(mark(sqlite)) == before
        raise ZeroDivisionError

    assert clone_detection.read_mark(mark(sqlite)) == before == committed(sqlite)


def _link(path: Path) -> None:
    (path.parent / "elsewhere").write_bytes(b"%020d %020d\n" % (10**9, 10**9))
    path.symlink_to(path.parent / "elsewhere")


@pytest.mark.parametrize(
    "spoil",
    [
        _link,
        os.mkfifo,
        Path.mkdir,
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(b"%020d %020d\n" % (10**9, 10**9 + 1)),
        lambda path: path.write_bytes(b"1000000000\n"),
        lambda path: path.write_bytes(b"\xff" * 10_000),
        lambda path: path.write_bytes("\u0661 \u0661".encode()),
    ],
    ids=["link", "pipe", "folder", "empty", "torn", "once", "noise", "other digits"],
)
def test_a_mark_that_is_none_is_ignored(sqlite: Sqlite, spoil: Callable[[Path], object]) -> None:
    """It detects nothing and disturbs nothing; a link is not followed."""
    state = sqlite.open()
    agree(state)
    state.close()
    mark(sqlite).unlink()
    spoil(mark(sqlite))
    elsewhere = sqlite.folder / "elsewhere"
    content = elsewhere.read_bytes() if elsewhere.exists() else b""
    again = sqlite.open()

    assert again.commit([draw()]) == [DrawOutcome.STORED]
    assert not again.losses()
    assert again.person(ANN).consented
    assert not elsewhere.exists() or elsewhere.read_bytes() == content


# -- refusals --------------------------------------------------------------------------------------


def test_a_folder_that_cannot_be(tmp_path: Path) -> None:
    """Below a file there is none."""
    (tmp_path / "file").touch()

    with pytest.raises(StateError):
        open_state(tmp_path / "file" / "state")


def test_a_file_of_a_newer_version(sqlite: Sqlite) -> None:
    """It is not touched."""
    sqlite.open().close()
    with sqlite3.connect(sqlite.folder / FILE) as database:
        database.execute("pragma user_version = 99")
    database.close()

    with pytest.raises(StateError, match="newer veilcount"):
        sqlite.open()


def test_a_file_is_its_owners(sqlite: Sqlite) -> None:
    """Nobody else reads it, nor the folder."""
    agree(sqlite.open())

    assert sqlite.folder.stat().st_mode & 0o077 == 0
    for path in sqlite.folder.glob(f"{FILE}*"):
        assert path.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("url", ["ftp://h", "redis://h:port", "redis://h#a b", "redis://h#{x}"])
def test_a_place_that_is_none(url: str) -> None:
    """The error says what to give."""
    with pytest.raises(StateError):
        open_state(url)


def test_a_server_that_is_not_there() -> None:
    """At once."""
    with pytest.raises(StateError):
        open_state(f"redis://{HOST}:{free_port()}/0")


def test_a_server_that_is_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    """After as long as a question may take."""
    monkeypatch.setattr(redis_state, "TIMEOUT", 0.1)
    with socket.create_server((HOST, 0)) as silent, pytest.raises(StateError):
        open_state(f"redis://{HOST}:{silent.getsockname()[1]}/0")


@pytest.mark.parametrize(
    ("name", "value", "wanted"),
    [
        ("maxmemory-policy", "volatile-lru", "maxmemory-policy noeviction"),
        ("appendonly", "no", "appendonly yes"),
    ],
)
def test_a_redis_that_would_forget(frail: RedisServer, name: str, value: str, wanted: str) -> None:
    """It is refused, and what to set is said."""
    frail.ask("CONFIG", "SET", name, value)

    with pytest.raises(StateError, match=f"set {wanted}"):
        RedisState(frail.url)


def test_a_redis_that_is_late_on_the_disk(
    frail: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    """It is taken, with a warning."""
    frail.ask("CONFIG", "SET", "appendfsync", "everysec")
    RedisState(frail.url).close()

    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert "appendfsync always" in caplog.text


def test_a_redis_without_config_get(frail: RedisServer, caplog: pytest.LogCaptureFixture) -> None:
    """It is taken with one warning, which says what it should have."""
    frail.ask("ACL", "SETUSER", "default", "-config")
    state = RedisState(frail.url)
    agree(state)

    assert state.commit([draw()]) == [DrawOutcome.STORED]
    assert len(caplog.records) == 1
    assert "appendonly yes" in caplog.text
    state.close()


def test_a_redis_without_rights(frail: RedisServer) -> None:
    """Every method says so by a StateError."""
    state = RedisState(frail.url)
    frail.ask("ACL", "SETUSER", "default", "-@all", "+acl", "+ping")

    for refused in (lambda: state.waiting(NOW), lambda: state.person(ANN), lambda: state.note("a")):
        with pytest.raises(StateError):
            refused()
    state.close()


def test_an_emptied_redis_begins_anew(frail: RedisServer) -> None:
    """Whoever had it open learns it with one error; it is counted once."""
    one, other = RedisState(frail.url), RedisState(frail.url)
    agree(one)
    root = one.root
    frail.ask("FLUSHALL")
    for state in (one, other):
        with pytest.raises(StateError):
            state.commit([draw()])

    assert one.root == other.root != root
    assert one.losses() == {(Loss.CORRUPT, ""): 1}
    assert one.person(ANN).consented is None
    one.close()
    other.close()


def test_apps_in_one_redis_are_apart(server: RedisServer) -> None:
    """Each has its space, which the URL names."""
    one, other = RedisState(f"{server.url}#one"), RedisState(f"{server.url}#other")
    agree(one)
    one.keep("a", "1")

    assert one.root != other.root
    assert other.consenting() == []
    assert other.note("a") is None
    one.close()
    other.close()


# -- size ------------------------------------------------------------------------------------------


def test_a_person_costs_little(frail: RedisServer) -> None:
    """With one collection: the person and the ledger, under 128 bytes; less than 200 with a report.

    At the hundred thousand persons that this stands for, a bucket has 24 of them.
    """
    state = RedisState(frail.url)
    keys = [bytes([0, at // 24 * 16]) + at.to_bytes(14, "big") for at in range(24 * 16)]
    agree(state, *keys)
    state.commit([draw(person=key) for key in keys])
    bare = _bytes(frail, "person") + _bytes(frail, "ledger")
    state.settle([queued_report.number for queued_report in lease_all(state)], {})

    assert bare / len(keys) < 128
    assert (bare + _bytes(frail, "past")) / len(keys) < 200
    state.close()


def _bytes(server: RedisServer, kind: str) -> int:
    keys: Any = server.ask("KEYS", f"veilcount:*:{kind}:*")
    return sum(int(str(server.ask("MEMORY", "USAGE", key))) for key in keys)


# -- its users -------------------------------------------------------------------------------------

MODULES = sorted(Path(veilcount_client.__file__).parent.rglob("*.py"))


@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.stem)
def test_modules_use_the_contract_only(module: Path) -> None:
    """What a module asks of a state, every state has promised."""
    promised = {name for name in (*dir(ClientState), "root") if not name.startswith("_")}
    asked = {
        node.attr
        for node in ast.walk(ast.parse(module.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and _names_a_state(node.value)
    }

    assert module.parent.name == "state" or asked <= promised


def _names_a_state(node: ast.expr) -> bool:
    name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
    return name in {"state", "_state"}
