"""What happens to apps happens to these: forks, kill -9, dead collectors, full disks, odd clocks.

Real processes, real signals, real servers; nothing here waits without a bound.
"""

from __future__ import annotations

import logging
import math
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from veilcount_client import Client
from veilcount_client import session as session_module
from veilcount_client.delivery.worker import MOST_QUEUED
from veilcount_client.state import StateError
from veilcount_client.state.losses import Loss
from veilcount_shared.errors import VeilcountError

from . import server_fixtures
from .app_scripts import (
    MARKED,
    PER_DAY,
    START,
    Running,
    client_of,
    consenting,
    wait_for_thread,
    worker_of,
)
from .server_fixtures import Server, serving

ROOT = Path(__file__).parents[3]
LEASE = 700.0  # after which another run may send what a killed one was sending
FORKS = not sys.platform.startswith("win")

pytestmark = pytest.mark.skipif(not FORKS, reason="there is no fork, no SIGKILL")


@pytest.fixture(autouse=True)
def _no_thread_is_left() -> Iterator[None]:
    """Whatever a test did to it, a closed client's thread ends."""
    yield
    names = [each for each in threading.enumerate() if each.name == "veilcount"]

    assert server_fixtures.wait_until(lambda: not any(each.is_alive() for each in names), 5)


@pytest.fixture
def sink() -> Iterator[Server]:
    """A server that counts."""
    with serving(server_fixtures.counting) as server:
        yield server


@pytest.fixture(scope="session")
def environment() -> dict[str, str]:
    """What apps are started with: no settings, and no proxy."""
    return {
        **{name: text for name, text in os.environ.items() if not name.startswith("VEILCOUNT")},
        "PYTHONPATH": os.pathsep.join(str(ROOT / room) for room in ("client", "shared")),
        "NO_PROXY": server_fixtures.HOST,
    }


class Apps:
    """Starts apps in a folder, and ends them whatever happens."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self.folder = folder
        self._environment = environment
        self._started: list[subprocess.Popen[str]] = []

    def start(self, name: str, url: str, *given: object) -> subprocess.Popen[str]:
        """Start an app."""
        order = [
            sys.executable,
            "-m",
            "tests.client.delivery.app_scripts",
            name,
            url,
            str(self.folder),
        ]
        app = subprocess.Popen(
            [*order, *map(str, given)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env=self._environment,
            start_new_session=True,  # so that its children end with it
        )
        self._started.append(app)
        return app

    def run(self, name: str, url: str, *given: object, ends: int | None = 0) -> tuple[str, str]:
        """Run an app to its end; return what it said and what it logged."""
        app = self.start(name, url, *given)
        said, logged = app.communicate(timeout=60)

        assert ends is None or app.returncode == ends, logged
        return said, logged

    def kill_all(self) -> None:
        """Leave nothing behind."""
        for app in self._started:
            with suppress(ProcessLookupError):
                os.killpg(app.pid, signal.SIGKILL)
            app.communicate(timeout=10)


@pytest.fixture
def apps(tmp_path: Path, environment: dict[str, str]) -> Iterator[Apps]:
    """Apps that share a folder."""
    found = Apps(tmp_path, environment)
    yield found
    found.kill_all()


def lost(client: Client, name: str) -> dict[str, int]:
    """Return the losses of a collection, by reason."""
    return dict(client.explain(name).losses)


# -- forks -----------------------------------------------------------------------------------------


def each_came_once(server: Server, reports: int) -> None:
    """Assert that so many reports came, none of them twice."""
    assert len(server.reports) == reports
    assert len(server.seen) == reports


def test_a_fork_with_every_lock_held(apps: Apps, sink: Server) -> None:
    """The child works though no one is left to let go; what was queued leaves once."""
    said, _ = apps.run("fork_with_locks_held", sink.url)

    assert said == "True\n"
    each_came_once(sink, 2)


def test_a_fork_while_the_uploader_waits(apps: Apps) -> None:
    """The child sends on its own; the parent's report comes again with the same bytes."""
    with serving(
        server_fixtures.in_turn(server_fixtures.silent, server_fixtures.counting)
    ) as server:
        said, _ = apps.run("fork_in_a_request", server.url)

        assert said == "True\n"
        assert len(server.seen) == 2
        assert len(server.reports) == 3
        assert len({report.message for report in server.reports[:1]}) == 1
        assert server.reports.count(server.reports[0]) == 2


def test_children_that_store_and_leave_by_os_exit(apps: Apps, sink: Server) -> None:
    """What prefork workers store before they leave, whoever still runs delivers."""
    said, _ = apps.run("fork_in_the_prefork_way", sink.url)

    assert said == "True\n"
    each_came_once(sink, 5)


def test_a_fork_of_a_fork(apps: Apps, sink: Server) -> None:
    """As daemons do."""
    said, _ = apps.run("fork_grandchild", sink.url)

    assert said == "True\n"
    each_came_once(sink, 3)


def test_a_storm_of_forks(apps: Apps, sink: Server) -> None:
    """Two threads store without a pause while the process forks four children at a time."""
    said, _ = apps.run("fork_storm", sink.url, 8)

    assert said == "True\n"
    assert len(sink.seen) == 1 + PER_DAY + 4 * 8
    assert all(len(messages) == 1 for messages in sink.seen.values())


@pytest.mark.full
@pytest.mark.parametrize("attempt", range(5))
def test_a_long_storm_of_forks(apps: Apps, sink: Server, attempt: int) -> None:
    """The same, until every person's day is used up."""
    said, _ = apps.run("fork_storm", sink.url, PER_DAY)

    assert said == "True\n"
    assert len(sink.seen) == 1 + PER_DAY + 4 * PER_DAY
    assert all(len(messages) == 1 for messages in sink.seen.values())


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_children_of_multiprocessing(method: str, apps: Apps, sink: Server) -> None:
    """They end without a word to the client, and nothing of theirs is lost."""
    said, _ = apps.run("in_processes", sink.url, method)

    assert said == "True\n"
    each_came_once(sink, 3)


# -- kill -9 ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", ["queued", "commit", "stored", "sent", "settling"])
def test_killed_at_a_step(step: str, apps: Apps, sink: Server) -> None:
    """No slot is drawn twice, nothing stored is lost, a retry has the same bytes."""
    said = ""
    for run in range(3):
        told, _ = apps.run("die", sink.url, START + run * LEASE, step, ends=-signal.SIGKILL)
        said += told
    apps.run("deliver", sink.url, START + 3 * LEASE)

    stored = 0 if step in {"queued", "commit"} else 3
    assert all(len(messages) == 1 for messages in sink.seen.values())
    assert len(sink.seen) == stored
    assert said.count("stored") <= stored
    assert len(sink.reports) == (1 + 2 + 3 + 3 if step in {"sent", "settling"} else stored)


def killed_again_and_again(apps: Apps, sink: Server, times: int, seed: int) -> None:
    """Assert the claim over so many runs, each killed at another moment."""
    draw = random.Random(seed)
    stored = 0
    for run in range(times):
        app = apps.start("record_until_killed", sink.url, START + run * LEASE)
        assert app.stdout is not None
        app.stdout.readline()
        time.sleep(draw.uniform(0, 0.1))
        app.kill()
        said, logged = app.communicate(timeout=20)
        assert "Traceback" not in logged
        stored += said.count("stored")
    said, _ = apps.run("deliver", sink.url, START + times * LEASE)

    assert said == "True\n"
    assert all(len(messages) == 1 for messages in sink.seen.values())
    assert min(stored, PER_DAY) <= len(sink.seen) <= PER_DAY
    assert len(sink.seen) == in_the_state(apps.folder)


def in_the_state(folder: Path) -> int:
    """Return how many answers the state says were given."""
    with closing(sqlite3.connect(folder / "state" / "veilcount.db")) as database:
        return int(database.execute("select sum(answers) from used").fetchone()[0])


def test_killed_at_any_moment(apps: Apps, sink: Server) -> None:
    """Never two messages for one slot, never more than the cap, everything stored arrives."""
    killed_again_and_again(apps, sink, times=10, seed=1)


@pytest.mark.full
@pytest.mark.parametrize("seed", range(2, 8))
def test_killed_at_any_of_many_moments(seed: int, apps: Apps, sink: Server) -> None:
    """The same, more often."""
    killed_again_and_again(apps, sink, times=40, seed=seed)


def test_killed_while_replies_are_lost(apps: Apps) -> None:
    """Counted there, unknown here, killed: the retry has the same bytes."""
    with serving(server_fixtures.dropping) as server:
        for run in range(3):
            apps.run("die", server.url, START + run * LEASE, "sent", ends=-signal.SIGKILL)

        assert all(len(messages) == 1 for messages in server.seen.values())
        assert len(server.seen) == 3
        assert len(server.reports) > 3


# -- the end of a process --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("how", "code"),
    [
        ("normally", 0),
        ("closed", 0),
        ("in a request", 0),
        ("with a daemon thread", 0),
        ("by sys.exit", 3),
        ("by an exception", 1),
    ],
)
def test_an_end_stores_everything(how: str, code: int, apps: Apps, sink: Server) -> None:
    """With a collector that never answers: at once, and the next run delivers it."""
    with serving(server_fixtures.silent) as silent:
        said, logged = apps.run("end", silent.url, START, how, ends=code)
        took = time.time() - float(said.split()[1])
    assert logged.count("Traceback") == (how == "by an exception")
    assert took < 5.0  # it waits for no answer, which would be 30 s; the bench has the figure

    delivered, _ = apps.run("deliver", sink.url, START + 1)
    assert delivered == "True\n"
    if not sink.seen:  # a busy machine: the end had no time to give back what was being sent
        apps.run("deliver", sink.url, START + 1 + LEASE)

    assert len(sink.seen) == len(sink.reports) == in_the_state(apps.folder)
    assert len(sink.seen) >= 3


def test_the_next_run_delivers_unasked(apps: Apps, sink: Server) -> None:
    """By its thread, which the first record starts; no flush."""
    with serving(server_fixtures.silent) as silent:
        apps.run("end", silent.url, START, "in a request")
    apps.run("deliver_unasked", sink.url, START + 10)

    assert len(sink.seen) == 5


# -- a dead collector ------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["silent", "refusing", "slow head", "dripping", "failing"])
def test_a_dead_collector_is_the_apps_least_worry(kind: str, tmp_path: Path) -> None:
    """record() never waits or raises; close() keeps to its time; the reports stay."""
    behaviour = {
        "slow head": server_fixtures.slow_head,
        "dripping": server_fixtures.dripping,
        "failing": server_fixtures.answering(500),
    }.get(kind, server_fixtures.silent)
    with serving(behaviour) as server, server_fixtures.nobody() as refusing:
        client = consenting(refusing if kind == "refusing" else server.url, tmp_path)
        started = time.monotonic()
        for _ in range(1000):
            client.record("event", True)
        recorded = time.monotonic()
        client.flush(0.3)
        flushed = time.monotonic()
        client.record("theme", "light", arm="A")
        closing_at = time.monotonic()
        client.close(timeout=1)
        closed = time.monotonic()

        assert recorded - started < 2
        assert flushed - recorded < 2
        assert closed - closing_at < 2
    assert waiting(tmp_path) == PER_DAY + 1


def waiting(folder: Path) -> int:
    """Return how many reports the state holds."""
    with closing(sqlite3.connect(folder / "state" / "veilcount.db")) as database:
        rows = database.execute("select count(*) from report where status = 'waiting'")
        return int(rows.fetchone()[0])


def test_memory_is_bounded_and_the_rest_is_counted(tmp_path: Path) -> None:
    """More at once than memory may hold is refused, and reported."""
    with serving(server_fixtures.silent) as server:
        client = consenting(server.url, tmp_path, threaded=False)
        for _ in range(MOST_QUEUED + 5):
            client.record("event", True)

        assert client.flush(until="stored")
        assert lost(client, "event")["crowded"] == 5
        assert lost(client, "event")["frozen"] == MOST_QUEUED - PER_DAY


# -- disks and folders -----------------------------------------------------------------------------


def test_a_full_disk_holds_nothing_up_and_loses_nothing(apps: Apps, sink: Server) -> None:
    """The app goes on, the reason is reported, and when there is room again all of it is stored."""
    said, logged = apps.run("fill_the_disk", sink.url)

    lines = said.splitlines()
    assert lines[:2] == ["not stored", "not delivered"]
    assert "disk" in lines[2]
    assert lines[3:] == ["stored", "delivered"]
    assert len(sink.seen) == 21
    assert "Traceback" not in logged


def test_an_end_on_a_full_disk(apps: Apps, sink: Server) -> None:
    """Lost, but quietly."""
    said, logged = apps.run("end_on_a_full_disk", sink.url)

    assert said == "ended\n"
    assert "Traceback" not in logged


def test_held_values_outlive_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that is full at the instant of a held answer only delays it."""
    with serving(server_fixtures.counting) as server:
        client = consenting(server.url, tmp_path, threaded=False)
        client.record("minutes", 5)
        assert client.flush(until="stored")
        answers = worker_of(client).recorder
        [held] = answers._held.values()
        due = held.instants[0]

        def full(*given: object) -> None:
            raise StateError("full")

        with monkeypatch.context() as patch:
            patch.setattr(answers.state, "commit", full)
            with pytest.raises(StateError):
                answers.sweep(due, {}.values())
            with pytest.raises(StateError):
                answers.finish()
        client.close()

    assert waiting(tmp_path) == 1


def test_losses_outlive_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What could not be counted now is counted later."""
    client = client_of("http://127.0.0.1:9", tmp_path, threaded=False)
    client.record("event", True)
    answers = worker_of(client).recorder

    def full(*given: object) -> None:
        raise StateError("full")

    with monkeypatch.context() as patch:
        patch.setattr(answers.state, "lose", full)
        assert not client.flush(until="stored")

    assert lost(client, "event") == {"no_consent": 1}


def test_a_folder_without_rights(apps: Apps, sink: Server) -> None:
    """Nothing is recorded, and why is reported."""
    apps.folder.chmod(0o755)
    for above in list(apps.folder.parents)[:3]:
        if above.owner() == apps.folder.owner() and str(above).startswith(tempfile.gettempdir()):
            above.chmod(0o755)
    said, logged = apps.run("record_without_rights", sink.url, "lenient")

    consented, losses, reasons = said.splitlines()
    assert consented == "None"
    assert losses == "{'no_state': 1}"
    assert "state" in reasons
    assert "Traceback" not in logged
    assert not sink.connections


def test_a_strict_client_raises_for_a_folder_without_rights(apps: Apps, sink: Server) -> None:
    """strict=True."""
    _, logged = apps.run("record_without_rights", sink.url, "strict", ends=1)

    assert "StateError" in logged


def test_a_folder_that_cannot_be(tmp_path: Path) -> None:
    """Below a file there is no folder."""
    (tmp_path / "file").write_text("a file")
    client = client_of("http://127.0.0.1:9", tmp_path / "file")
    client.consent(True)
    client.record("event", True)
    client.record("event", True)

    assert client.consented is None
    assert client.unasked() == []
    assert not client.flush(0.1)
    assert lost(client, "event") == {"no_state": 2}
    client.forget()
    client.close()
    with pytest.raises(StateError):
        client_of("http://127.0.0.1:9", tmp_path / "file", strict=True)


@pytest.mark.parametrize(
    "error", [PermissionError(13, "no"), sqlite3.DatabaseError("odd"), RuntimeError("no home")]
)
def test_whatever_opening_raises_stays_out_of_the_app(
    error: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unless it asked for it."""

    def fail(*given: object) -> None:
        raise error

    monkeypatch.setattr(session_module, "open_state", fail)
    client = client_of("http://127.0.0.1:9", tmp_path)
    client.record("event", True)

    assert not client.flush(0.1)
    assert lost(client, "event") == {"no_state": 1}
    with pytest.raises(type(error)):
        client_of("http://127.0.0.1:9", tmp_path, strict=True)


@pytest.mark.parametrize("name", ["missing.toml", "folder", "binary.toml", "wrong.toml"])
def test_definitions_that_cannot_be_read(name: str, tmp_path: Path) -> None:
    """Logged once, counted, and raised only where asked for."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "binary.toml").write_bytes(bytes(range(256)))
    (tmp_path / "wrong.toml").write_text("app = 1")
    url = "http://127.0.0.1:9"
    client = Client(url, collections=tmp_path / name, state_dir=tmp_path / "state")
    client.consent(True)
    client.record("event", True)
    client.close()

    assert client.explain("event").reasons
    with pytest.raises(VeilcountError):
        Client(url, collections=tmp_path / name, state_dir=tmp_path / "state", strict=True)


@pytest.mark.parametrize("name", ["unheard of", "", None, 7, ["a", "list"], {}])
def test_a_name_that_is_none(name: object, tmp_path: Path) -> None:
    """A slip of the app's is the client's to bear."""
    client = consenting("http://127.0.0.1:9", tmp_path, threaded=False)

    client.record(name, True)  # type: ignore[arg-type] # the slip

    client.close()


# -- clocks ----------------------------------------------------------------------------------------


class Set:
    """A clock that says what it is reported to say."""

    def __init__(self, seconds: float = START) -> None:
        self.seconds = seconds

    def now(self) -> float:
        """Return the present instant, or what passes for it."""
        return self.seconds


DAY = 86_400.0
ODD_CLOCKS = {
    "a day back": START - DAY,
    "a year back": START - 365 * DAY,
    "1970": 0.0,
    "before 1970": -1.0,
    "long before 1970": -1e12,
    "a day ahead": START + DAY,
    "five years ahead": START + 5 * 365 * DAY,
    "year 9999": 253_402_300_799.0,
    "after year 9999": 253_402_300_800.0,
    "after all years": 1e30,
    "never": math.inf,
    "before ever": -math.inf,
    "no number": math.nan,
}


@pytest.mark.parametrize("odd", ODD_CLOCKS)
def test_an_odd_clock_gives_no_extra_slot(odd: str, tmp_path: Path, sink: Server) -> None:
    """Nor an exception; and when the clock is right again, so is the client."""
    clock = Set()
    client = consenting(sink.url, tmp_path, clock=clock, threaded=False)
    record_all(client)
    clock.seconds = ODD_CLOCKS[odd]
    record_all(client)
    assert client.explain("event").reasons
    assert client.receipt().text()
    clock.seconds = START + 1
    record_all(client)
    client.close()
    days = 2 if odd == "a day ahead" else 2 if odd == "a day back" else 1

    answers = {"theme": 0, "event": 0, "minutes": 0}
    for name, each in client.collections.items():
        answers[name] = sum(slot[0] == each.fingerprint for slot in sink.seen)
    assert answers["theme"] <= days
    assert answers["event"] <= days * PER_DAY
    assert all(len(messages) == 1 for messages in sink.seen.values())
    assert len({slot[1:] for slot in sink.seen}) == len(sink.seen)


def record_all(client: Client) -> None:
    """Record more than a day holds."""
    for _ in range(PER_DAY + 2):
        client.record("event", True)
    client.record("theme", "light", arm="A")
    client.record("theme", "system", arm="A")
    client.record("minutes", 5)
    client.flush(1)


def test_a_clock_set_back_draws_nothing_anew(tmp_path: Path, sink: Server) -> None:
    """Yesterday's slots are spent, or will not be used."""
    clock = Set(START + DAY)
    client = consenting(sink.url, tmp_path, clock=clock, threaded=False)
    record_all(client)
    before = len(sink.seen)
    clock.seconds = START
    record_all(client)
    client.close()

    assert len(sink.seen) == before


@pytest.mark.parametrize("odd", ["five years ahead", "no number", "a day ahead", "1970"])
def test_a_failure_under_an_odd_clock_is_forgotten(odd: str, tmp_path: Path) -> None:
    """Back-off that was set by a wrong clock does not outlive it by more than some hours."""
    clock = Set()
    with serving(server_fixtures.counting) as server:
        client = consenting(server.url, tmp_path, clock=clock, threaded=False)
        worker = worker_of(client)
        client.record("event", True)
        worker.store()
        clock.seconds = ODD_CLOCKS[odd]
        leased = worker.state.lease(clock.now(), clock.now() + 600, 9, hurry=True)
        worker.uploader._put_back(worker.state, leased, 3600)
        clock.seconds = START + DAY
        for _ in range(9):
            worker.work()
            clock.seconds = max(clock.seconds + 1, worker.uploader.next_due() or 0)
        client.close()

        assert len(server.seen) == 1


@pytest.mark.parametrize("odd", ["no number", "never", "after year 9999", "before 1970"])
def test_the_thread_outlives_an_odd_clock(odd: str, tmp_path: Path, sink: Server) -> None:
    """It waits, and works when the clock does."""
    clock = Set(ODD_CLOCKS[odd])
    client = consenting(sink.url, tmp_path, clock=clock)
    for _ in range(3):
        client.record("event", True)
        time.sleep(0.05)
    thread = wait_for_thread(client)
    clock.seconds = START
    client.record("event", True)

    assert client.flush(10)
    assert len(sink.seen) == 1
    assert worker_of(client)._process.thread is thread
    assert thread.is_alive()
    client.close()


# -- what is kept, logged and imported -------------------------------------------------------------


@pytest.mark.parametrize("end", ["close", "kill"])
def test_nothing_unrandomized_is_kept_or_logged(end: str, apps: Apps, sink: Server) -> None:
    """No value, no segment that was made up, no person's id: on no disk, in no log."""
    ends = -signal.SIGKILL if end == "kill" else 0
    _, logged = apps.run("record_marked", sink.url, end, ends=ends)

    files = [path for path in apps.folder.rglob("*") if path.is_file()]
    assert {path.name for path in files} >= {"veilcount.db"}
    assert not [path for path in files if MARKED.encode() in path.read_bytes()]
    assert not [request for request in sink.requests if MARKED.encode() in request.body]
    assert MARKED not in logged
    assert "Traceback" not in logged


@pytest.mark.parametrize("status", [400, 429, 500, 302])
def test_no_value_is_logged_when_sending_fails(status: int, apps: Apps) -> None:
    """Whatever the aggregator says."""
    with serving(server_fixtures.problem(status)) as server:
        _, logged = apps.run("record_marked", server.url, "close")

    assert "veilcount" in logged
    assert MARKED not in logged
    assert "Traceback" not in logged


def test_no_value_is_logged_on_a_full_disk(apps: Apps, sink: Server) -> None:
    """Nor in what SQLite has to say."""
    _, logged = apps.run("fill_the_disk", sink.url)

    assert "disk" in logged
    assert MARKED not in logged


def test_no_thread_and_no_network_before_a_consent(tmp_path: Path, sink: Server) -> None:
    """Making a client, asking it anything, recording, flushing, forgetting: none of it speaks."""
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "veilcount.db").write_bytes(b"junk" * 4096)  # a loss that would be told
    before = threading.active_count()
    client = client_of(sink.url, tmp_path)
    client.record("event", True)
    client.receipt()
    client.explain("event")

    assert threading.active_count() == before
    client.flush(0.2)
    client.forget()
    client.flush(0.2)
    client.close()
    assert not sink.connections


def test_no_network_after_a_consent_was_withdrawn(tmp_path: Path, sink: Server) -> None:
    """What was not sent by then never is."""
    client = consenting(sink.url, tmp_path, jitter=1000)
    client.record("event", True)
    assert client.flush(until="stored")
    client.consent(False)
    worker_of(client).state.lose({(Loss.AGED, client.collections["event"].fingerprint): 3})
    client.record("event", True)
    client.flush(0.5)
    client.close()

    assert not sink.connections


def test_no_thread_before_the_first_record(tmp_path: Path, sink: Server) -> None:
    """And one, a daemon, from then on."""
    before = set(threading.enumerate())
    client = consenting(sink.url, tmp_path)
    assert set(threading.enumerate()) == before

    for _ in range(3):
        client.record("event", True)
    [thread] = [each for each in set(threading.enumerate()) - before if each.name == "veilcount"]

    assert thread.daemon
    client.close()
    assert not thread.is_alive()


def test_the_client_brings_little_along(apps: Apps) -> None:
    """Nothing of the server's; and requests only where there is something to send."""
    said, _ = apps.run("what_is_imported", "http://127.0.0.1:9")
    heavy = {"numpy", "flask", "redis", "msgspec", "scipy", "requests", "asyncio", "pydantic"}

    assert not heavy & set(said.split())


def test_memory_does_not_grow(apps: Apps) -> None:
    """1e5 records, a collector that never answers: less than 20 MB."""
    with serving(server_fixtures.silent) as server:
        said, _ = apps.run("grow", server.url, 100_000)

    assert int(said) < 20_000_000


# -- signals and finalizers ------------------------------------------------------------------------


def test_a_signal_handler_may_record(apps: Apps, sink: Server) -> None:
    """Also while the main thread is inside record() itself."""
    said, _ = apps.run("record_in_a_signal_handler", sink.url)

    assert said == "recorded\n"


def test_a_closed_client_leaves_no_file_open(tmp_path: Path, sink: Server) -> None:
    """One after the other, as often as an app likes."""

    def open_here() -> list[str]:
        links = [path for path in Path("/proc/self/fd").iterdir() if path.is_symlink()]
        return [each for path in links if str(tmp_path) in (each := os.path.realpath(path))]

    for number in range(3):
        client = consenting(sink.url, tmp_path / str(number))
        client.record("event", True)
        client.close()

    assert not open_here()
    assert len(sink.seen) == 3


def test_logging_is_once_a_thing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A loop that records into nothing does not fill the log."""
    client = consenting("http://127.0.0.1:9", tmp_path, threaded=False)
    with caplog.at_level(logging.DEBUG, "veilcount"):
        for _ in range(100):
            client.record("unheard_of", MARKED)
    client.close()

    assert len(caplog.records) == 1
    assert MARKED not in caplog.text
    assert Running(START).now() >= START
