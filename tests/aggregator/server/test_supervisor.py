"""The analysis process is replaced whatever ends it, and ends when it should."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

import pytest
from werkzeug.test import Client

from veilcount_aggregator.server.analysis_process import supervisor, worker
from veilcount_aggregator.server.analysis_process.forwarding import Forwarder
from veilcount_aggregator.server.analysis_process.supervisor import AnalysisProcess
from veilcount_aggregator.server.analysis_process.worker import NICE, run

from ...system.server import wait_until

HEADROOM = 200  # MB, over what this process takes


def application(environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
    acts: dict[str, Callable[[], object]] = {
        "/pid": os.getpid,
        "/nice": lambda: os.getpriority(os.PRIO_PROCESS, 0),
        "/die": lambda: os._exit(9),
        "/hang": lambda: time.sleep(60),
        "/eat": lambda: len(bytearray(4 * HEADROOM << 20)),
    }
    try:
        text = str(acts[environ["PATH_INFO"]]())
    except MemoryError:
        text = "MemoryError"
    start("200 OK", [])
    return [text.encode()]


@contextmanager
def supervised(megabytes: int = 0, answer: WSGIApplication = application) -> Iterator[Client]:
    kept = AnalysisProcess(lambda listener, parent: run(listener, answer, parent, megabytes))
    kept.start()
    try:
        yield Client(Forwarder(answer, kept.address))
    finally:
        kept.stop()
        assert not Path(kept.address).parent.exists()


def pid(client: Client) -> int:
    return int(client.get("/pid").get_data())


def test_it_is_a_process_of_its_own_and_is_replaced_when_it_dies() -> None:
    """It goes after the others. Only its own requests fail; killed while idle, none does."""
    with supervised() as client:
        first, nice = pid(client), int(client.get("/nice").get_data())
        named = Path(f"/proc/{first}/comm").read_text(encoding="ascii").strip()

        assert first != os.getpid()
        assert nice == min(19, os.getpriority(os.PRIO_PROCESS, 0) + NICE)
        assert named == worker.NAME

        assert client.get("/die").status_code == 503
        second = pid(client)
        os.kill(second, signal.SIGKILL)
        assert len({first, second, pid(client)}) == 3


def test_one_that_computes_for_too_long_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "MAX_COMPUTE_SECONDS", 0.5)
    with supervised() as client:
        before = pid(client)

        assert client.get("/hang").status_code == 503
        assert pid(client) != before


def test_memory_is_bounded_by_the_kernel() -> None:
    """An answer that takes too much fails by itself; the process and its parent live on."""
    with supervised(_data() + HEADROOM) as client:
        before = pid(client)

        assert client.get("/eat").get_data() == b"MemoryError"
        assert pid(client) == before
    with supervised(0) as client:
        assert client.get("/eat").get_data() == str(4 * HEADROOM << 20).encode()


def test_one_that_has_grown_is_replaced_once_it_is_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "GROWN", 0.001)
    with supervised(_data() + HEADROOM) as client:
        first = pid(client)
        wait_until(lambda: pid(client) != first)


def test_it_ends_with_a_parent_that_is_killed() -> None:
    """And takes its folder away, which nobody else does then."""
    reading, writing = os.pipe()
    if not (parent := os.fork()):
        kept = AnalysisProcess(lambda listener, parent: run(listener, application, parent, 0))
        kept.start()
        client = Client(Forwarder(application, kept.address))
        os.write(writing, f"{pid(client)} {kept.address}".encode())
        time.sleep(60)
        os._exit(0)
    child, address = os.read(reading, 1000).decode().split()
    os.kill(parent, signal.SIGKILL)
    os.waitpid(parent, 0)

    wait_until(lambda: not Path(address).parent.exists())
    wait_until(lambda: not Path(f"/proc/{child}").exists() or _is_zombie(int(child)))


@pytest.mark.full
def test_one_that_never_starts_is_tried_less_and_less_often() -> None:
    begun: list[float] = []

    class Counted(AnalysisProcess):
        def _run_once(self) -> int:
            begun.append(time.monotonic())
            return super()._run_once()

    kept = Counted(lambda *_: 7)
    kept.start()
    wait_until(lambda: len(begun) == 4)
    kept.stop()

    first, *_, last = [after - before for before, after in pairwise(begun)]
    assert last > first >= supervisor.MIN_DELAY


def _is_zombie(child: int) -> bool:
    return ") Z " in Path(f"/proc/{child}/stat").read_text(encoding="ascii")


def _data() -> int:
    """Return the MB of data that this process takes, as the limit counts them."""
    status = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    (line,) = [each for each in status if each.startswith("VmData:")]
    return int(line.split()[1]) // 1024
