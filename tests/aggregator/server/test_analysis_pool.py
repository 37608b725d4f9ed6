"""What the pool computes is what a view would respond; whatever ends a process, it is replaced."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from flask import Flask, Response, request
from werkzeug.test import Client

from veilcount_aggregator.server.analysis_pool import client as pool_client
from veilcount_aggregator.server.analysis_pool import process, supervisor
from veilcount_aggregator.server.analysis_pool.client import (
    BUSY,
    DOWN,
    MOST_WAITING,
    SLOW,
    PooledComputations,
)
from veilcount_aggregator.server.analysis_pool.places import PoolPlace
from veilcount_aggregator.server.analysis_pool.process import NICE, run
from veilcount_aggregator.server.analysis_pool.supervisor import AnalysisPool
from veilcount_aggregator.web.api.json_io import problem_response
from veilcount_aggregator.web.api.problems import problem_from_error
from veilcount_aggregator.web.api.request_metrics import COMPUTING
from veilcount_shared.problem_details import TYPE_PREFIX

from ...processes import family
from ...system.server import wait_until

HEADROOM = 200  # MB, over what this process takes
LONG = 5_000_000


def _breaking() -> Iterator[bytes]:
    yield b"x" * 200_000
    raise MemoryError


VIEWS: dict[str, Callable[[], Any]] = {
    "pid": lambda: str(os.getpid()),
    "nice": lambda: str(os.getpriority(os.PRIO_PROCESS, 0)),
    "die": lambda: os._exit(9),
    "hang": lambda: time.sleep(60),
    "stop": lambda: os.kill(os.getpid(), signal.SIGSTOP),
    "eat": lambda: str(len(bytearray(4 * HEADROOM << 20))),
    "echo": lambda: Response(request.get_data(), "299 Its Own", [("X-A", "1"), ("X-A", "2")]),
    "environ": lambda: repr(dict(request.environ)),
    "long": lambda: Response(bytes([n]) * 100_000 for n in range(LONG // 100_000)),
    "breaks": lambda: Response(_breaking()),
    "refuses": lambda: ("no", 403),
}


def application(bounded: Callable[[Any], Any] = lambda view: view) -> Flask:
    """Views that the pool computes, or this process; a full memory is a response."""
    app = Flask(__name__)
    methods = ["GET", "HEAD", "POST"]
    for name, view in VIEWS.items():
        app.add_url_rule(f"/{name}", name, bounded(view), methods=methods)
    app.add_url_rule("/light", "light", lambda: "light")
    app.register_error_handler(Exception, lambda error: problem_response(problem_from_error(error)))
    return app


class Pool:
    """A pool of so many places, and a worker that uses it."""

    def __init__(self, pool: AnalysisPool) -> None:
        self.others = pool_processes()  # of a pool that the module shares
        self.refused: list[str] = []
        self.changes: list[int] = []
        self.computations = PooledComputations(
            pool.address, changed=lambda: self.changes.append(1), refused=self.refused.append
        )
        self.worker = Client(application(self.computations.bounded))

    def processes(self) -> set[int]:
        return pool_processes() - self.others

    def pid(self) -> int:
        """Return the process that responds, when one has a place for it."""
        responses = iter(lambda: self.worker.get("/pid"), None)
        return next(int(each.get_data()) for each in responses if each.status_code == 200)

    @property
    def permits(self) -> int:
        return self.computations._permits._value


def serve_for(megabytes: int, listener: socket.socket, place: PoolPlace, parent: int) -> int:
    return run(listener, application(), place, megabytes, parent=parent)


@contextmanager
def pool_of(places: int, megabytes: int = 0) -> Iterator[Pool]:
    pool = AnalysisPool(partial(serve_for, megabytes), places)
    tested = Pool(pool)
    pool.start()
    try:
        yield tested
    finally:
        pool.stop()
        assert not Path(pool.address).parent.exists()


def pool_processes() -> set[int]:
    """Return the processes of pools that this process started."""
    names = {pid: Path(f"/proc/{pid}/comm") for pid in family(os.getpid())}
    return {pid for pid, name in names.items() if _text(name) == process.NAME}


def _text(file: Path) -> str:
    with suppress(OSError):  # it has ended
        return file.read_text(encoding="ascii").strip()
    return ""


@pytest.fixture(scope="module")
def shared_pool() -> Iterator[Pool]:
    with pool_of(1) as pool:
        yield pool


@pytest.fixture
def pool(shared_pool: Pool) -> Iterator[Pool]:
    shared_pool.refused.clear()
    shared_pool.changes.clear()
    yield shared_pool
    assert shared_pool.permits == MOST_WAITING


def test_a_request_arrives_as_it_came_and_so_does_its_response(pool: Pool) -> None:
    headers = {"X-Odd": "é", "X-Many": "a=b; c=d", "Authorization": "Bearer x"}
    body = bytes(range(256)) * 1_000
    echoed = pool.worker.post("/echo?a=%20b", data=body, headers=headers)
    seen = pool.worker.get("/environ?a=%20b&a=c", headers=headers).get_data(as_text=True)

    assert (echoed.status, echoed.get_data()) == ("299 Its Own", body)
    assert echoed.headers.getlist("X-A") == ["1", "2"]
    assert "'HTTP_X_MANY': 'a=b; c=d'" in seen
    assert "'HTTP_AUTHORIZATION': 'Bearer x'" in seen
    assert "'QUERY_STRING': 'a=%20b&a=c'" in seen
    assert pool.worker.get("/long", buffered=True).get_data() == b"".join(
        bytes([n]) * 100_000 for n in range(LONG // 100_000)
    )
    assert not pool.worker.head("/echo").get_data()


def test_no_address_and_no_variable_of_the_worker_is_passed_on(pool: Pool) -> None:
    ours = {"REMOTE_ADDR": "192.0.2.7", "VEILCOUNT_STORE": "redis://:secret@x/"}
    seen = pool.worker.get("/environ", environ_overrides=ours).get_data(as_text=True)

    assert "192.0.2.7" not in seen
    assert "secret" not in seen


def test_what_a_request_changed_is_read_before_its_response(pool: Pool) -> None:
    pool.worker.get("/echo")
    pool.worker.head("/echo")
    pool.worker.post("/refuses")
    reads = len(pool.changes)
    pool.worker.post("/echo")

    assert (reads, len(pool.changes)) == (0, 1)


def test_a_body_that_breaks_off_is_never_taken_for_a_whole_one(pool: Pool) -> None:
    assert pool.worker.get("/breaks").status_code == 503
    assert pool.refused == [DOWN]


def test_a_process_that_is_gone_is_503_and_keeps_no_permit() -> None:
    refused: list[str] = []
    nowhere = PooledComputations("/x", refused=refused.append)
    worker = Client(application(nowhere.bounded))
    for _ in range(MOST_WAITING + 1):
        assert worker.get("/pid").status_code == 503

    assert refused == [DOWN] * (MOST_WAITING + 1)


def test_a_worker_waits_for_a_bounded_number_of_responses() -> None:
    """A stopped pool: a dozen wait, the next is refused at once, what is light is answered."""
    with pool_of(1) as pool, ThreadPoolExecutor(MOST_WAITING) as threads:
        stopped = pool.pid()
        os.kill(stopped, signal.SIGSTOP)
        waiting = [threads.submit(pool.worker.get, "/pid") for _ in range(MOST_WAITING)]
        wait_until(lambda: not pool.permits)
        refused, light = pool.worker.get("/pid"), pool.worker.get("/light")
        reasons = list(pool.refused)
        os.kill(stopped, signal.SIGCONT)
        codes = {each.result().status_code for each in waiting}

    assert (refused.status_code, refused.headers["Retry-After"]) == (503, "2")
    assert refused.json is not None
    assert refused.json["type"] == TYPE_PREFIX + "busy"
    assert reasons == [BUSY]
    assert light.get_data() == b"light"
    assert codes <= {200, 503}


@pytest.mark.parametrize(
    ("limit", "reason"), [("ACCEPT_SECONDS", COMPUTING), ("ANSWER_SECONDS", SLOW)]
)
def test_whoever_waits_too_long_hears_why(
    limit: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For a place, and for the response."""
    with pool_of(1) as pool, ThreadPoolExecutor(1) as thread:
        pid = pool.pid()
        hung = thread.submit(pool.worker.get, "/hang")
        wait_until(lambda: pool.permits < MOST_WAITING)
        time.sleep(0.5)
        monkeypatch.setattr(pool_client, limit, 0.2)
        refusal = pool.worker.get("/hang" if limit == "ANSWER_SECONDS" else "/pid")
        os.kill(pid, signal.SIGKILL)
        hung.result()

    assert refusal.status_code == 503
    assert pool.refused[0] in {reason, COMPUTING}


def test_a_process_goes_after_the_workers_and_is_replaced_when_it_dies() -> None:
    """Only its own request fails; killed while idle, none does."""
    with pool_of(1) as pool:
        first, nice = pool.pid(), int(pool.worker.get("/nice").get_data())
        name = Path(f"/proc/{first}/comm").read_text(encoding="ascii").strip()

        assert first != os.getpid()
        assert nice == min(19, os.getpriority(os.PRIO_PROCESS, 0) + NICE)
        assert name == process.NAME

        assert pool.worker.get("/die").status_code == 503
        second = pool.pid()
        os.kill(second, signal.SIGKILL)
        assert len({first, second, pool.pid()}) == 3


def test_a_hung_process_is_killed_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The other process responds all the time, and stays."""
    monkeypatch.setattr(supervisor, "MAX_COMPUTE_SECONDS", 1.0)
    with pool_of(2) as pool, ThreadPoolExecutor(1) as thread:
        wait_until(lambda: len(pool.processes()) == 2)
        before = pool.processes()
        hung = thread.submit(pool.worker.get, "/hang")
        wait_until(lambda: pool.permits < MOST_WAITING)
        responses = set[int]()
        while not hung.done():
            responses.add(pool.pid())

        assert hung.result().status_code == 503
        assert responses & before
        wait_until(lambda: len(pool.processes() - before) == 1 == len(pool.processes() & before))
        assert DOWN in pool.refused


def test_the_kernel_bounds_the_memory_of_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """A response that takes too much fails by itself; the process and its parent live on."""
    monkeypatch.setattr(process, "GROWN", 2.0)  # what this process takes is no growth
    with pool_of(1, _data() + HEADROOM) as pool:
        before = pool.pid()
        refused = pool.worker.get("/eat")

        assert refused.status_code == 503
        assert "fewer values" in refused.get_data(as_text=True)
        assert pool.pid() == before
    with pool_of(1) as pool:
        assert pool.worker.get("/eat").get_data(as_text=True) == str(4 * HEADROOM << 20)


def test_a_process_that_has_grown_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before it takes a request: so none is answered."""
    monkeypatch.setattr(process, "GROWN", 0.001)
    with pool_of(1, _data() + HEADROOM) as pool:
        seen = set[int]()

        def replaced() -> bool:
            seen.update(pool.processes())
            return len(seen) > 1

        wait_until(replaced)
        assert pool.worker.get("/pid").status_code == 503


@pytest.mark.parametrize("thread", ["in time", "late"])
def test_a_pool_ends_with_a_parent_that_is_killed(
    thread: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And takes its folder away, which nobody else does then, whichever of its threads is first."""
    if thread == "late":
        monkeypatch.setattr(AnalysisPool, "_give_signs", lambda _, place, __: place.beat())

    def begin(listener: socket.socket, place: PoolPlace, parent: int) -> int:
        time.sleep(0.5 * (thread == "late"))  # the parent is killed meanwhile
        return serve_for(0, listener, place, parent)

    reading, writing = os.pipe()
    if not (parent := os.fork()):
        pool = AnalysisPool(begin)
        pool.start()
        os.write(writing, " ".join([pool.address, *map(str, pool._pids.values())]).encode())
        time.sleep(60)
        os._exit(0)
    address, *children = os.read(reading, 1000).decode().split()
    os.kill(parent, signal.SIGKILL)
    os.waitpid(parent, 0)

    wait_until(lambda: not Path(address).parent.exists())
    for child in children:
        wait_until(lambda: not Path(f"/proc/{child}").exists() or _is_zombie(int(child)))  # noqa: B023


def test_a_pool_is_up_while_one_of_its_processes_gives_signs_of_life() -> None:
    pool = AnalysisPool(partial(serve_for, 0))
    down_before = not pool.is_up()
    pool.start()
    try:
        wait_until(pool.is_up)
        pids = list(pool._pids.values())
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        wait_until(lambda: not pool.is_up())
        os.kill(pids[0], signal.SIGCONT)
        wait_until(pool.is_up)
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
        pool.stop()

    assert down_before


@pytest.mark.full
def test_a_process_that_never_starts_is_tried_less_and_less_often() -> None:
    begun: list[float] = []

    class Counted(AnalysisPool):
        def _run_once(self, place: Any) -> int:
            begun.append(time.monotonic())
            return super()._run_once(place)

    pool = Counted(lambda *_: 7, places=1)
    pool.start()
    wait_until(lambda: len(begun) == 4)
    pool.stop()

    first, *_, last = [after - before for before, after in pairwise(begun)]
    assert last > first >= supervisor.MIN_DELAY


def _is_zombie(child: int) -> bool:
    return ") Z " in Path(f"/proc/{child}/stat").read_text(encoding="ascii")


def _data() -> int:
    """Return the MB of data that this process takes, as the limit counts them."""
    status = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    (line,) = [each for each in status if each.startswith("VmData:")]
    return int(line.split()[1]) // 1024
