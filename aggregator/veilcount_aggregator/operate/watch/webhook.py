"""Delivery of events to a webhook: in order, each once, repeated until it is accepted."""

from __future__ import annotations

import json
import socket
import threading
from collections import deque
from collections.abc import Callable
from contextlib import closing, suppress
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from urllib.parse import urlsplit

from .watcher import WatchEvent

SECONDS = 10.0  # for one attempt, however slowly the receiver answers
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0
MOST_EVENTS = 1000
OK, REDIRECT, SERVER_ERROR = 200, 300, 500
RETRIED = frozenset({408, 425, 429})


class Webhook:
    """A receiver of events, and those that it has not accepted yet."""

    def __init__(self, url: str, say: Callable[[str], object], seconds: float = SECONDS) -> None:
        """Send nothing yet; `say` takes a line for each trouble, without the address."""
        self._url, self._say, self._seconds = url, say, seconds
        self._waiting: deque[WatchEvent] = deque(maxlen=MOST_EVENTS)
        self._pause, self._next = 0.0, 0.0

    @property
    def waiting(self) -> int:
        """How many events it has not accepted."""
        return len(self._waiting)

    def add(self, event: WatchEvent) -> None:
        """Have an event delivered; of too many the oldest is dropped."""
        self._waiting.append(event)

    def deliver(self, now: float) -> None:
        """Send what waits, unless the last attempt failed a moment ago."""
        while self._waiting and now >= self._next:
            event = self._waiting[0]
            problem, final = self._attempt(event)
            if problem and not final:
                self._pause = min(max(FIRST_PAUSE, 2 * self._pause), LONGEST_PAUSE)
                self._next = now + self._pause
                waiting = f"{len(self._waiting)} events wait, again in {self._pause:.0f} s"
                self._say(f"the webhook does not accept: {problem}; {waiting}")
                return
            if problem:
                self._say(f"the webhook refuses {event.rule!r}: {problem}; it is not sent again")
            self._waiting.popleft()
            self._pause, self._next = 0.0, 0.0

    def _attempt(self, event: WatchEvent) -> tuple[str, bool]:
        """Return what went wrong, empty if nothing, and whether it always will."""
        try:
            status = post(self._url, json.dumps(event.as_json()).encode(), self._seconds)
        except (OSError, HTTPException) as error:
            return type(error).__name__, False
        if OK <= status < REDIRECT:
            return "", True
        return f"HTTP {status}", status < SERVER_ERROR and status not in RETRIED


def post(url: str, body: bytes, seconds: float) -> int:
    """Post JSON, and return the status; at the deadline the connection is shut down."""
    parts = urlsplit(url)
    kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
    path = parts.path + (f"?{parts.query}" if parts.query else "")
    with closing(kind(parts.hostname or "", parts.port, timeout=seconds)) as connection:
        connection.connect()
        timer = threading.Timer(seconds, _shut, [connection.sock])
        timer.start()
        try:
            headers = {"Content-Type": "application/json", "Connection": "close"}
            connection.request("POST", path or "/", body, headers)
            return connection.getresponse().status
        finally:
            timer.cancel()


def _shut(connected: socket.socket) -> None:
    with suppress(OSError):
        connected.shutdown(socket.SHUT_RDWR)
