"""No server's reply to one row changes when another row of the device is sent.

Once, one thread delivered everything, so whoever dripped a reply to one row kept the device's other
rows waiting.
"""

from __future__ import annotations

import socket
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from veilcount_client import Client
from veilcount_client.delivery import delivery_pool
from veilcount_client.delivery.transport import HttpTransport, Later
from veilcount_client.delivery.uploader import Uploader
from veilcount_client.state.sqlite_database import FILE

from ..delivery import server_fixtures
from ..delivery.server_fixtures import Request, Server, serving
from ..device_fixtures import Device, at, clock_at, file

NAMES = ("one", "two", "three", "four", "five")
MORNING = at(0, 9)


# -- side by side ----------------------------------------------------------------------------------


class Drip:
    """Drips its reply to the first row until the other row's body is there, or it is over."""

    def __init__(self) -> None:
        self.others = threading.Event()
        self.over = threading.Event()
        self.first: bytes | None = None
        self.is_overtaken = False
        self._lock = threading.Lock()

    def __call__(self, server: Server, connection: socket.socket, request: Request) -> None:
        (report,) = request.batch().reports
        with self._lock:
            first = self.first is None
            if first:
                self.first = report.pseudonym
        if not first:
            self.others.set()
            server_fixtures.counting(server, connection, request)
            return
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 60000\r\n\r\n")
        while not (self.others.is_set() or self.over.is_set() or server.stopped.is_set()):
            connection.sendall(b" ")
            self.others.wait(0.02)
        self.is_overtaken = self.others.is_set()
        raise ConnectionAbortedError


def overtakes_a_dripped_reply(place: Path, drips: int) -> bool:
    """Whether a row's body arrives while the reply to another is dripping, at most so long."""
    drip = Drip()
    with serving(drip) as server:
        client = Client(
            server.url,
            collections=file(one={}, two={}),
            state_dir=place,
            jitter=0,
            clock=clock_at(MORNING),
        )
        client.consent(True)
        for name in ("one", "two"):
            client.record(name, True)
        client.flush(until="stored")
        for _ in range(drips):
            if drip.others.wait(0.02):
                break
        drip.over.set()
        server_fixtures.wait_until(lambda: drip.is_overtaken or drip.over.is_set())
        client.close(10)
    return drip.others.is_set() and drip.is_overtaken


def test_a_dripped_reply_holds_up_no_other_row(tmp_path: Path) -> None:
    """The other row's body arrives before the dripping exchange ends; planted, one thread: after.

    The drip of the first goes on until the other is there; that of the second, for 50 drips.
    """
    overtaken = overtakes_a_dripped_reply(tmp_path / "threads", 1000)
    with patch.object(delivery_pool, "MOST_THREADS", 1):
        planted = overtakes_a_dripped_reply(tmp_path / "one", 50)

    assert overtaken
    assert not planted


# -- what happens to one row moves no other --------------------------------------------------------


def resetting(server: Server, connection: socket.socket, request: Request) -> None:
    linger = b"\1\0\0\0\0\0\0\0"
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    raise ConnectionAbortedError


@contextmanager
def replies(what: str) -> Iterator[str]:
    """Yield the URL of what answers like this."""
    behaviours: dict[str, server_fixtures.Behaviour] = {
        "redirect": server_fixtures.answering(302, Location="http://127.0.0.1:1/"),
        "busy": server_fixtures.answering(503, Retry_After="7"),
        "busy for a day": server_fixtures.answering(503, Retry_After="86400"),
        "reset": resetting,
        "no TLS": server_fixtures.counting,
    }
    with serving(behaviours[what]) as server:
        yield server.url.replace("http:", "https:") if what == "no TLS" else server.url


class FirstFails:
    """Takes the first body to a server that fails it; no other leaves."""

    def __init__(self, url: str) -> None:
        self.http = HttpTransport(url, None, lambda: MORNING)
        self.failures = 0

    def send(self, body: bytes, reports: int) -> Any:
        outcome = self.http.send(body, reports)
        assert isinstance(outcome, Later)
        self.failures += 1
        return outcome

    def close_row(self, fingerprint: str, pseudonym: str) -> bool:
        return False


def stored_times(place: Path) -> dict[str, float]:
    """Return when each collection's report leaves, as the state says."""
    with closing(sqlite3.connect(place / FILE)) as database:
        rows = database.execute("select series, send_at, leased from report").fetchall()
    return {series.hex(): max(send_at, leased) for series, send_at, leased in rows}


def moved(place: Path, what: str) -> tuple[int, int]:
    """Return how many bodies failed, and how many series' times were moved by it."""
    with replies(what) as url:
        transport = FirstFails(url)
        device = Device(place, file(**{name: {} for name in NAMES}), MORNING, transport)
        device.record()
        before = stored_times(place)
        device.run_until(min(before.values()) + 0.01)
        after = stored_times(place)
        device.crash()
    return transport.failures, sum(before[each] != after[each] for each in before)


def silencing(
    each: Uploader, outbox: Any, queued_reports: Any, after: float = 0.0, **_: Any
) -> None:
    """Put the whole device off: the planted variant, and what an earlier version did."""
    due = each.now() + after + 5
    numbers = outbox.overdue(2e12, 2e12, 1000) + [report.number for report in queued_reports]
    outbox.reschedule(dict.fromkeys(numbers, due))


@pytest.mark.parametrize("what", ["redirect", "busy", "busy for a day", "reset", "no TLS"])
def test_a_failure_of_one_row_moves_no_other(tmp_path: Path, what: str) -> None:
    """Read from the state: of five rows one has another time afterwards."""
    found = moved(tmp_path / "by row", what)
    with patch.object(Uploader, "_put_back", silencing):
        planted = moved(tmp_path / "by device", what)

    assert found == (1, 1)
    assert planted == (1, len(NAMES))
