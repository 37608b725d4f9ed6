"""The client of an app: its definitions, its clock, and access to its parts."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from veilcount_client import Client
from veilcount_client.delivery.transport import Outcome
from veilcount_client.delivery.worker import ClientWorker

from ..device_fixtures import file

START = 1_796_299_200.0  # 2026-12-03 12:00 UTC
PER_DAY = 64
MARKED = "MARKED"
COLLECTIONS = file(
    "acme-editor",
    theme={
        "values": ["light", f"{MARKED} dark", "system"],
        "other": "another",
        "segments": {"arm": ["A", "B"]},
        "until": "2027-12-01",
    },
    event={"unit": "event", "per_day": PER_DAY, "until": "2027-12-01"},
    minutes={"range": [0, 240], "measure": "mean", "takes": "sum", "until": "2027-12-01"},
)
NOBODY = "http://127.0.0.1:9"  # nobody listens there
PERSONS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


class Running:
    """A clock that was set to a time and runs on from there."""

    def __init__(self, start: float) -> None:
        self._ahead = start - time.time()

    def now(self) -> float:
        return time.time() + self._ahead


def client_of(url: str, folder: str | Path, start: float = START, **options: Any) -> Client:
    """Return a client without jitter, on the third day of the campaign."""
    defaults: dict[str, Any] = {
        "clock": Running(start),
        "jitter": 0,
        "state_dir": Path(folder) / "state",
    }
    return Client(url, collections=COLLECTIONS, **(defaults | options))


def consenting(url: str, folder: str | Path, start: float = START, **options: Any) -> Client:
    """Return a client whose persons "one" to "nine" (or whose one person) have consented."""
    client = client_of(url, folder, start, **options)
    persons = [client.person(name) for name in PERSONS] if client.settings.persons else [client]
    for person in persons:
        person.consent(True)
    return client


def worker_of(client: Client) -> ClientWorker:
    assert client._session.worker is not None
    return client._session.worker


def around_sending(
    client: Client,
    before: Callable[[], object] = lambda: None,
    after: Callable[[], object] = lambda: None,
) -> None:
    """Call functions when the uploader is about to send, and when the reply is here."""
    uploader = worker_of(client).uploader
    inner = uploader.transport

    class Watched:
        def send(self, body: bytes, reports: int) -> Outcome:
            before()
            outcome = inner.send(body, reports)
            after()
            return outcome

    uploader.transport = Watched()


def emit(what: object) -> None:
    print(what, flush=True)
