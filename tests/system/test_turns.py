"""Two workers on one SQLite file: one takes all reports, and the other one whatever else comes."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import requests

from veilcount_shared.wire import BINARY_TYPE

from ..processes import stopped
from .server import Server, wait_until
from .test_serving import body, collection, counted, send, store

__all__ = ["store"]

DEVICES, TURNS, BETWEEN = 6, 3, 40
RATE = 5
BURST = 2 * RATE
SENT = 30


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder whose path is short enough for that of a socket in it."""
    with TemporaryDirectory() as name:
        yield Path(name)


@contextmanager
def served(store: str, folder: Path, **environ: str) -> Iterator[Server]:
    with Server(
        store, folder, "--workers", "2", environ={"TMPDIR": str(folder), **environ}
    ) as server:
        server.wait_until_open()
        wait_until(lambda: len([*folder.glob("veilcount-*/[12]")]) == len(server.workers()) == 2)
        wait_until(lambda: all(map(accepts, folder.glob("veilcount-*/[12]"))))
        yield server


def accepts(path: Path) -> bool:
    """Whether a private socket is listened at: its file is there before."""
    with socket.socket(socket.AF_UNIX) as connection, suppress(OSError):
        connection.connect(str(path))
        return True
    return False


def get(url: str) -> requests.Response:
    """Ask on a connection of its own."""
    with requests.Session() as session:
        session.trust_env = False
        return session.get(url, timeout=30)


def owner(folder: Path) -> int:
    """Return the worker whose turn it is; 0: none's.

    The kernel's list is not read at one moment: a lock that changes hands may stand there twice.
    """
    (first,) = folder.glob("veilcount-*/1")
    while len(owners := _lock_owners(first.parent.stat().st_ino)) > 1:
        time.sleep(0.01)
    return next(iter(owners), 0)


def _lock_owners(inode: int) -> set[int]:
    """Return the processes that lock a file, by the kernel's list of locks [proc(5)]."""
    lines = map(str.split, Path("/proc/locks").read_text(encoding="ascii").splitlines())
    return {
        int(fields[4])
        for fields in lines
        if fields[1] == "FLOCK" and fields[5].endswith(f":{inode}")
    }


class Devices:
    """Devices that each send new reports, one again and again until it is answered."""

    def __init__(self, url: str) -> None:
        self._url, self._ends = url, threading.Event()
        self.verdicts: list[str] = []

    @contextmanager
    def sending(self) -> Iterator[None]:
        with ThreadPoolExecutor(DEVICES) as threads:
            living = [threads.submit(self._live) for _ in range(DEVICES)]
            try:
                yield
            finally:
                self._ends.set()
        for each in living:
            each.result()

    def wait_for_more(self) -> None:
        begun = len(self.verdicts)
        wait_until(lambda: len(self.verdicts) > begun + BETWEEN)

    def _live(self) -> None:
        while not self._ends.is_set():
            self.verdicts.append(self._deliver(body(collection())))

    def _deliver(self, raw: bytes) -> str:
        while True:
            try:
                answer = send(self._url, raw)
            except requests.ConnectionError:  # its worker has ended
                continue
            if answer.ok:
                return str(answer.json()["verdicts"][0])


def take_over(server: Server, folder: Path, how: signal.Signals) -> bool:
    """End the worker whose turn it is; return whether the next one had stood by, and not begun."""
    wait_until(lambda: len(server.workers()) == 2)
    ended, before = owner(folder), server.workers()
    os.kill(ended, how)
    wait_until(lambda: owner(folder) not in {0, ended})
    had_stood_by = owner(folder) in before
    wait_until(lambda: ended not in server.workers())
    return had_stood_by


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_whose_turn_it_is_may_end_at_any_time(
    store: str, folder: Path, how: signal.Signals
) -> None:
    """The worker that stands by goes on: nothing is lost, and nothing counts twice.

    What was committed has been answered, too, unless the worker was killed.
    """
    with served(store, folder) as server:
        devices = Devices(server.url)
        with devices.sending():
            for _ in range(TURNS):
                devices.wait_for_more()
                assert take_over(server, folder, how)
            devices.wait_for_more()

    assert counted(store) == len(devices.verdicts)
    assert {*devices.verdicts} <= {"counted"} | ({"duplicate"} if how is signal.SIGKILL else set())


def test_what_is_answered_while_the_server_ends_was_counted_and_nothing_else(
    store: str, folder: Path
) -> None:
    outcomes: Counter[object] = Counter()

    def live() -> None:
        try:
            while True:
                outcomes[send(server.url, body(collection())).status_code] += 1
        except requests.ConnectionError:  # refused: it has ended
            outcomes["ended"] += 1

    with served(store, folder) as server, ThreadPoolExecutor(DEVICES) as threads:
        living = [threads.submit(live) for _ in range(DEVICES)]
        wait_until(lambda: outcomes[200] > BETWEEN)

        assert server.stop() == 0
        for each in living:
            each.result()

    assert outcomes == {200: counted(store), "ended": DEVICES}


def test_the_other_worker_answers_pages(store: str, folder: Path) -> None:
    """Stopped in its tracks it answers none, and holds up neither reports nor probes."""
    with served(store, folder) as server, ThreadPoolExecutor(1) as browser:
        others = {*server.workers()} - {owner(folder)}
        with stopped(others):
            page = browser.submit(get, f"{server.url}/docs")
            reports = [send(server.url, body(collection())).status_code for _ in range(BETWEEN)]
            probes = [get(server.url + path).status_code for path in ("/healthz", "/readyz")]
            waits = not page.done()

        assert waits
        assert {*reports, *probes} == {200}
        assert page.result().status_code < 400


def test_a_rate_limit_is_that_of_the_server(store: str, folder: Path) -> None:
    """Not half of it for the worker that takes reports, nor more behind a page."""
    headers = {"Content-Type": BINARY_TYPE}
    with (
        served(store, folder, VEILCOUNT_RATE_LIMIT=str(RATE)) as server,
        ThreadPoolExecutor(BURST) as devices,
        requests.Session() as browser,
    ):
        browser.trust_env = False

        def status(_: int) -> int:
            return send(server.url, body(collection())).status_code

        def status_after_a_page() -> int:
            url = f"{server.url}/v1/reports"
            return browser.post(url, body(collection()), headers=headers, timeout=30).status_code

        begun = time.monotonic()
        at_once = [*devices.map(status, range(BURST))]
        browser.get(f"{server.url}/docs", timeout=30)
        later = [each for _ in range(SENT) for each in (status(0), status_after_a_page())]
        most = BURST + RATE * (time.monotonic() - begun) + 1

    assert at_once == [200] * BURST
    assert [*at_once, *later].count(200) <= most
    assert {*later} <= {200, 429}
