"""Processes that fork, are killed, end, and meet full disks: nothing is lost, nothing drawn twice.

Real processes, real signals, real servers.
"""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing, suppress
from pathlib import Path

import pytest

from . import server_fixtures
from .app_client import MARKED, PER_DAY, START
from .app_processes import Apps
from .server_fixtures import Behaviour, Server, serving

LEASE = 700.0  # after which another run may send what a killed one was sending
KILLED = -9  # by SIGKILL, which Windows does not have

pytestmark = pytest.mark.skipif(sys.platform.startswith("win"), reason="there is no fork")


def stored_answers(folder: Path) -> int:
    with closing(sqlite3.connect(folder / "state" / "veilcount.db")) as database:
        return int(database.execute("select sum(answers) from used").fetchone()[0])


# -- forks -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("script", "reports"),
    [
        ("fork_with_locks_held", 2),
        ("fork_by_multiprocessing", 3),
        ("pool_that_is_terminated", 3),
        ("pool_that_is_joined", 3),
    ],
)
def test_each_report_of_processes_that_fork_arrives_once(
    script: str, reports: int, apps: Apps, sink: Server
) -> None:
    """Those of parent and children; whoever still runs delivers what a child stored.

    What a terminated worker was just sending is delivered by whoever runs after its lease.
    """
    delivered = apps.run(script, sink.url) == "True\n"
    if not delivered:
        assert script == "pool_that_is_terminated"
        assert apps.run("deliver", sink.url, START + LEASE, "persons") == "True\n"

    assert len(sink.seen) == reports
    assert sink.is_consistent
    assert len(sink.reports) == reports or script == "pool_that_is_terminated"


@pytest.mark.parametrize(
    "rounds", [4, *(pytest.param(PER_DAY, marks=pytest.mark.full) for _ in range(5))]
)
def test_a_storm_of_forks(rounds: int, apps: Apps, sink: Server) -> None:
    """Two threads store without a pause while the process forks four children at a time."""
    assert apps.run("fork_storm", sink.url, rounds) == "True\n"
    assert len(sink.seen) == 1 + PER_DAY + 4 * rounds
    assert sink.is_consistent


# -- kill -9 ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("step", "stored", "sent"),
    [
        ("queued", 0, range(1)),
        ("commit", 0, range(1)),
        ("stored", 3, range(3, 4)),
        ("sent", 3, range(6, 10)),
        ("settling", 3, range(6, 10)),
    ],
)
def test_killed_at_a_step(step: str, stored: int, sent: range, apps: Apps, sink: Server) -> None:
    """No slot is drawn twice, nothing stored is lost, a retry has the same bytes.

    Whoever dies after sending has sent what earlier runs have stored, too: 1 + 2 + 3, and 3 again;
    or, where it is sent while the new one is being stored, without that: 1 + 1 + 1, and 3 again.
    """
    output = ""
    for run in range(3):
        output += apps.run("die", sink.url, START + run * LEASE, step, code=KILLED)
    apps.run("deliver", sink.url, START + 3 * LEASE)

    assert output.count("stored") <= stored
    assert len(sink.seen) == stored
    assert len(sink.reports) in sent
    assert sink.is_consistent


@pytest.mark.parametrize(
    ("times", "seed"),
    [(6, 1), *(pytest.param(40, seed, marks=pytest.mark.full) for seed in range(2, 8))],
)
def test_killed_at_any_moment(times: int, seed: int, apps: Apps, sink: Server) -> None:
    """Never two messages for one slot, never more than the cap, everything stored arrives."""
    draw = random.Random(seed)
    stored = 0
    for run in range(times):
        apps.run_until("ready", "record_until_killed", sink.url, START + run * LEASE)
        time.sleep(draw.uniform(0, 0.1))
        apps.kill()
        assert apps.wait() == KILLED
        assert "Traceback" not in apps.log
        stored += apps.output.count("stored")

    assert apps.run("deliver", sink.url, START + times * LEASE) == "True\n"
    assert min(stored, PER_DAY) <= len(sink.seen) <= PER_DAY
    assert len(sink.seen) == stored_answers(apps.folder)
    assert sink.is_consistent


CODES = {"by sys.exit": 3, "by an exception": 1}


@pytest.mark.parametrize(
    "how", ["normally", "closed", "in a request", "with a daemon thread", *CODES]
)
def test_an_end_waits_for_no_reply_and_stores_everything(
    how: str, apps: Apps, sink: Server
) -> None:
    """The aggregator never replies, and the next run delivers."""
    with serving(server_fixtures.silent) as silent:
        apps.run("end", silent.url, START, how, code=CODES.get(how, 0))
    assert apps.log.count("Traceback") == (how == "by an exception")

    assert apps.run("deliver", sink.url, START + 1) == "True\n"
    if not sink.seen:  # a busy machine: the end had no time to give back what was being sent
        apps.run("deliver", sink.url, START + 1 + LEASE)

    assert len(sink.seen) == len(sink.reports) == stored_answers(apps.folder) >= 3


# -- disks and folders -----------------------------------------------------------------------------


def test_a_full_disk_blocks_nothing_and_loses_nothing(apps: Apps, sink: Server) -> None:
    """The app goes on, the reason is reported, and later all of it is stored; no value is logged.

    Not even in SQLite's messages.
    """
    output = apps.run("fill_the_disk", sink.url).splitlines()

    assert output[:2] + output[3:] == ["False", "False", "True", "True"]
    assert "disk" in output[2]
    assert len(sink.seen) == 21
    assert "disk" in apps.log
    assert MARKED not in apps.log
    assert "Traceback" not in apps.log


def test_an_end_on_a_full_disk_is_quiet(apps: Apps, sink: Server) -> None:
    assert apps.run("end_on_a_full_disk", sink.url) == "ended\n"
    assert "Traceback" not in apps.log


# -- what is kept, logged and imported -------------------------------------------------------------


@pytest.mark.parametrize(
    ("how", "behaviour"),
    [
        ("close", server_fixtures.counting),
        ("kill", server_fixtures.counting),
        ("close", server_fixtures.problem(400)),
        ("close", server_fixtures.answering(500)),
    ],
    ids=["closed", "killed", "rejected", "failed"],
)
def test_nothing_unrandomized_is_kept_or_logged(how: str, behaviour: Behaviour, apps: Apps) -> None:
    """No value, no undeclared segment, no person's id: on no disk, in no log."""
    with serving(behaviour) as server:
        apps.run("record_marked", server.url, how, code=KILLED if how == "kill" else 0)

    files = [path for path in apps.folder.rglob("*") if path.is_file()]
    assert {path.name for path in files} >= {"veilcount.db"}
    assert not [path for path in files if MARKED.encode() in path.read_bytes()]
    assert not [request for request in server.requests if MARKED.encode() in request.body]
    assert "veilcount" in apps.log
    assert MARKED not in apps.log
    assert "Traceback" not in apps.log


def modules_after(code: str) -> set[str]:
    """Return the modules that an app has imported."""
    code = f"import sys\n{code}\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return set(done.stdout.split())


def test_the_client_imports_little(tmp_path: Path) -> None:
    """Nothing of the server's; definitions with a client; requests once something leaves."""
    with_client = (
        "from veilcount import Client; from veilcount_client.delivery.late_http import http\n"
        "client = Client('https://stats.example.org', collections='docs/collections.toml',"
        f" state_dir={str(tmp_path)!r})\n"
        "client.record('theme', 'dark'); client.flush(until='stored')"
    )
    imported, used = modules_after("from veilcount import Client"), modules_after(with_client)
    heavy = {"numpy", "flask", "redis", "msgspec", "scipy", "requests", "asyncio", "pydantic"}

    assert not heavy & used
    assert not {"sqlite3", "veilcount_client.session", "veilcount_shared.collection"} & imported
    assert {"sqlite3", "veilcount_client.session", "veilcount_shared.collection"} <= used
    assert "requests" in modules_after(f"{with_client}\nhttp()")


HUNG = "hung"
FORK_DURING_IMPORT = """
import os, sys, threading
from veilcount_client.delivery import late_http
importing, proceed = threading.Event(), threading.Event()

class Slow:  # where a thread of the client is, when the app forks
    def find_spec(self, name, path=None, target=None):
        if name == "requests" and threading.current_thread() is not threading.main_thread():
            importing.set()
            proceed.wait(10)

sys.meta_path.insert(0, Slow())
threading.Thread(target=late_http.http, daemon=True).start()
importing.wait(10)
threading.Timer(0.2, proceed.set).start()
if not {is_guarded}:
    late_http._before_fork.__code__ = (lambda: None).__code__
if child := os.fork():
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
else:
    late_http.http()
    os._exit(0)
"""


def output_of_group(code: str, seconds: float) -> str:
    """Run code in a process, and return its output; kill it and its children if one hangs."""
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True) as process:
        try:
            return process.communicate(timeout=seconds)[0].decode().strip()
        except subprocess.TimeoutExpired:
            return HUNG
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


@pytest.mark.parametrize(("guarded", "seconds", "ended"), [("True", 300, "0"), ("False", 8, HUNG)])
def test_a_fork_waits_for_an_import_under_way(guarded: str, seconds: float, ended: str) -> None:
    """Else its child would wait for a module that a thread of the parent has locked."""
    code = FORK_DURING_IMPORT.replace("{is_guarded}", guarded)

    assert output_of_group(code, seconds) == ended


def test_memory_does_not_grow(apps: Apps) -> None:
    """1e5 records, an aggregator that never replies: less than 20 MB."""
    with serving(server_fixtures.silent) as server:
        assert int(apps.run("grow", server.url, 100_000)) < 20_000_000


def test_a_signal_handler_may_record(apps: Apps, sink: Server) -> None:
    """Also while the main thread is inside record() itself."""
    assert apps.run("record_in_a_signal_handler", sink.url, 1000) == "recorded\n"
