"""The turn of a front: of several workers, one listens, and the others stand by.

Reports that one worker gathers cost less than those that two gather in halves. The workers share
the socket, so whoever connects while the turn passes on waits there. The turn is a lock on the
folder of their private sockets: the kernel passes it on, however a worker ends. Two fronts at once
would lose nothing, so a worker that drains need not keep it.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from .posix import LOCK_EX, flock


class FrontTurn:
    """The turn of one worker."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock: int | None = None
        self._is_over = False

    def wait(self, loop: asyncio.AbstractEventLoop, begin: Callable[[], object]) -> None:
        """Call `begin` on the loop once it is this worker's turn; a thread sleeps until then."""
        waiting = threading.Thread(
            target=self._wait, args=(loop, begin), name="veilcount-turn", daemon=True
        )
        waiting.start()

    def end(self) -> None:
        """Pass the turn on, or never begin it."""
        self._is_over = True
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _wait(self, loop: asyncio.AbstractEventLoop, begin: Callable[[], object]) -> None:
        lock = os.open(self._folder, os.O_RDONLY)
        flock(lock, LOCK_EX)
        with suppress(RuntimeError):  # the loop has ended, and soon this process, which unlocks
            loop.call_soon_threadsafe(self._begin, lock, begin)

    def _begin(self, lock: int, begin: Callable[[], object]) -> None:
        self._lock = lock
        if self._is_over:
            self.end()
        else:
            begin()
