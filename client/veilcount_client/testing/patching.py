"""What stands in for parts of the client while a kit is open. The client knows nothing of it."""

from __future__ import annotations

import functools
import hashlib
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from veilcount_shared import RandomSource

from .. import client as made_here
from ..client import Client, Person
from ..delivery.worker import Worker
from ..recording.recorder import RecordCall
from ..settings import KILL_SWITCHES, Settings
from ..state import key_derivation as state_secrets
from ..state.location import place_of

Replacement = AbstractContextManager[Any]


def constructor(make: Callable[..., None]) -> Replacement:
    """Have `make` open whatever client the app constructs."""
    return patch.object(Client, "__init__", functools.wraps(Client.__init__)(make))


def persons(meet: Callable[[Person], None]) -> Replacement:
    """Have `meet` see every person before the app does."""
    original = Client.person

    @functools.wraps(original)
    def person(client: Client, id: object, /) -> Person:  # noqa: A002 - as the original
        found = original(client, id)
        meet(found)
        return found

    return patch.object(Client, "person", person)


def records(see: Callable[[Worker, RecordCall], None]) -> Replacement:
    """Have `see` look at every record on its way into the queue."""
    original = Worker.put

    @functools.wraps(original)
    def put(worker: Worker, record: RecordCall) -> bool:
        see(worker, record)
        return original(worker, record)

    return patch.object(Worker, "put", put)


def places(directory: str) -> Replacement:
    """Put each state that the app asks for, wherever it wants it, under this directory."""
    original = place_of

    def place(settings: Settings, app: str) -> Path:
        asked = str(original(settings, app))
        return Path(directory) / hashlib.sha256(asked.encode()).hexdigest()[:16]

    return patch.object(made_here, "place_of", place)


@contextmanager
def secrets(randomness: RandomSource) -> Iterator[None]:
    """Make every person's secret from these coins: who answers when is the same in each run."""

    def drawn(size: int) -> bytes:
        return b"".join(randomness.word().to_bytes(8, "big") for _ in range(size // 8))

    with patch.object(state_secrets, "random_bytes", drawn):
        yield


@contextmanager
def environment() -> Iterator[None]:
    """Turn kill switches off: a build machine that sets one must not change what is tested."""
    with patch.dict(os.environ):
        for switch in KILL_SWITCHES:
            os.environ.pop(switch, None)
        yield


@contextmanager
def integrations() -> Iterator[None]:
    """Have integrations make their clients anew, now and again afterwards."""
    made = getattr(sys.modules.get("veilcount_client.integrations.app_client"), "made", {})
    before = dict(made)
    made.clear()
    try:
        yield
    finally:
        made.clear()
        made.update(before)
