"""Patches of the client while a test harness is open. The client knows nothing of them."""

from __future__ import annotations

import functools
import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from veilcount_shared import RandomSource

from .. import session as session_module
from ..client import Client, Person
from ..delivery.worker import ClientWorker
from ..options import ClientOptions
from ..recording.recorder import RecordCall
from ..session import Session
from ..settings import KILL_SWITCHES, ClientSettings
from ..state import key_derivation
from ..state.factory import state_location

Replacement = AbstractContextManager[Any]


def sessions(make: Callable[[ClientOptions], Session]) -> Replacement:
    """Have `make` open the session of every client that the app constructs."""
    return patch.object(session_module, "Session", make)


def persons(observe: Callable[[Person], None]) -> Replacement:
    """Have `observe` see every person before the app does."""
    original = Client.person

    @functools.wraps(original)
    def person(client: Client, id: object, /) -> Person:  # noqa: A002 - as the original
        person = original(client, id)
        observe(person)
        return person

    return patch.object(Client, "person", person)


def records(observe: Callable[[ClientWorker, RecordCall], None]) -> Replacement:
    """Have `observe` see every record on its way into the queue."""
    original = ClientWorker.put

    def put(worker: ClientWorker, record: RecordCall) -> bool:
        observe(worker, record)
        return original(worker, record)

    return patch.object(ClientWorker, "put", put)


def state_locations(directory: str) -> Replacement:
    """Put every state under this directory, wherever the app wants it."""

    def location(settings: ClientSettings, app: str) -> Path:
        chosen = str(state_location(settings, app))
        return Path(directory) / hashlib.sha256(chosen.encode()).hexdigest()[:16]

    return patch.object(session_module, "state_location", location)


def secrets(randomness: RandomSource) -> Replacement:
    """Make every person's secret from this source: who answers when is the same in each run."""

    def drawn(size: int) -> bytes:
        return b"".join(randomness.word().to_bytes(8, "big") for _ in range(size // 8))

    return patch.object(key_derivation, "random_bytes", drawn)


def environment() -> Replacement:
    """Turn kill switches off: a build machine that sets one must not change what is tested."""
    variables = {name: value for name, value in os.environ.items() if name not in KILL_SWITCHES}
    return patch.dict(os.environ, variables, clear=True)


@contextmanager
def integrations() -> Iterator[None]:
    """Have integrations make their clients anew, now and again afterwards.

    Of a command somebody is there to decide, and the test's end is no end of a run.
    """
    package = "veilcount_client.integrations"
    with (
        patch.dict(f"{package}.app_client.clients", clear=True),
        patch(f"{package}.cli_kit.attendance.is_attended", lambda: True),
        patch(f"{package}.cli_kit.telemetry.Telemetry.end"),
    ):
        yield
