"""No server's dripped reply to one row keeps another row of the device waiting.

Once, one thread delivered everything. What else a server may reply moves no other row either: see
`test_active_joiner`.
"""

from __future__ import annotations

import socket
import threading
from pathlib import Path
from unittest.mock import patch

from veilcount_client import Client
from veilcount_client.delivery import delivery_pool

from ..delivery import server_fixtures
from ..delivery.server_fixtures import Request, Server, serving
from ..device_fixtures import at, clock_at, file


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
            clock=clock_at(at(0, 9)),
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
