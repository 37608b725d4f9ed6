"""A small write to each shard: it shows what reading does not, no memory and a log that fails.

Redis answers reads while it refuses writes: out of memory under `noeviction` (OOM), when it cannot
append to its log or save (MISCONF), or as a replica (READONLY).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from ...errors import StoreError, StoreFull
from .root import SHELF, Root
from .servers import Command, Servers

SECONDS = 5.0
KEY = b":probe"
FULL = "no memory left: raise maxmemory, or free some"


class WriteProbe:
    """Writes one small key of each shard, once in some seconds, whoever asks."""

    def __init__(
        self, servers: Servers, root: Root, seconds: Callable[[], float] = time.monotonic
    ) -> None:
        """`seconds` is a clock that never goes back."""
        self._servers = servers
        self._root = root
        self._seconds = seconds
        self._lock = threading.Lock()
        self._due = seconds()
        self._trouble = ""

    def trouble(self) -> str:
        """Return why a shard cannot be written, or "", as of the last write."""
        with self._lock:
            if self._seconds() >= self._due:
                self._trouble = self._write()
                self._due = self._seconds() + SECONDS
            return self._trouble

    def _write(self) -> str:
        bases = (SHELF, *self._root.bases)
        try:
            self._servers.ask([Command(base, ("SET", base + KEY, "1")) for base in bases])
        except StoreFull:
            return FULL
        except StoreError as error:
            return f"a write failed: {_name(error)}"
        return ""


def _name(error: StoreError) -> str:
    """Return the first word of Redis's answer, or the cause's class: never an address."""
    cause = error.__cause__ or error
    word = str(cause).partition(" ")[0]
    return word if word.isalpha() and word.isupper() else type(cause).__name__
