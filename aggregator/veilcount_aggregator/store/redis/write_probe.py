"""A small write to each shard: it shows what reading does not, no memory and a log that fails.

Redis answers reads while it refuses writes: out of memory under `noeviction` (OOM), when it cannot
append to its log or save (MISCONF), or as a replica (READONLY).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from redis.exceptions import ResponseError

from ...errors import StoreError, StoreFull
from .connections import Wait
from .identity import StoreIdentity
from .shard_client import Command, ShardClient

SECONDS = 5.0
KEY = b":probe"
FULL = "no memory left: raise maxmemory, or free some"


class WriteProbe:
    """Writes one small key of each shard, once in some seconds, whoever asks."""

    def __init__(
        self,
        servers: ShardClient,
        root: StoreIdentity,
        seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        """`seconds` is a clock that never goes back."""
        self._servers = servers
        self._root = root
        self._seconds = seconds
        self._lock = threading.Lock()
        self._due = seconds()
        self._trouble = ""

    def trouble(self) -> str:
        """Return why no shard can be written, or "", as of the last write."""
        with self._lock:
            if self._seconds() >= self._due:
                self._trouble = self._write()
                self._due = self._seconds() + SECONDS
            return self._trouble

    def _write(self) -> str:
        """Return why no shard that answers takes writes; "": one does, or none answers at all."""
        asked = [Command(base, ("SET", base + KEY, "1")) for base in self._root.bases]
        answers = self._servers.execute_each(asked, Wait.PROBE)
        if not all(isinstance(answer, StoreError) for answer in answers):
            return ""
        troubles = (_trouble(answer) for answer in answers)
        return next((trouble for trouble in troubles if trouble), "")


def _trouble(error: StoreError) -> str:
    """Return what a refused write means; "" where the server did not answer."""
    if isinstance(error, StoreFull):
        return FULL
    return f"a write failed: {_name(error)}" if isinstance(error.__cause__, ResponseError) else ""


def _name(error: StoreError) -> str:
    """Return the first word of Redis's answer, or the cause's class: never an address."""
    cause = error.__cause__ or error
    word = str(cause).partition(" ")[0]
    return word if word.isalpha() and word.isupper() else type(cause).__name__
