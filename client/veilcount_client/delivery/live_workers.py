"""The workers of this process: what is done with all of them at a fork and at the exit."""

from __future__ import annotations

import atexit
import os
import sys
from typing import Protocol
from weakref import WeakSet, ref


class LiveWorker(Protocol):
    """What is asked of a worker at a fork and at the exit."""

    def wake(self) -> None:
        """Start sending, without waiting for a first record."""

    def store(self) -> bool:
        """Store what is queued; return whether the state took it."""

    def finish(self) -> bool:
        """Store what is queued and what is held; return whether the state took it."""

    def leave(self) -> None:
        """Try to deliver what only memory has, and leave the rest."""

    def after_fork(self) -> None:
        """Begin anew in a child."""


_live: WeakSet[LiveWorker] = WeakSet()


def add(worker: LiveWorker) -> None:
    """Have a worker store everything when the process exits, and begin anew in its forks."""
    _live.add(worker)
    atexit.register(_at_exit, ref(worker))


def add_multiprocessing_exit(worker: LiveWorker) -> None:
    """Likewise in a child of multiprocessing, which leaves by os._exit: only finalizers run."""
    if "multiprocessing.util" in sys.modules:
        sys.modules["multiprocessing.util"].Finalize(
            None, _at_exit, (ref(worker),), exitpriority=100
        )


def remove(worker: LiveWorker) -> None:
    """Leave a worker alone: it is closed."""
    _live.discard(worker)


def wake_all() -> None:
    """Start sending what earlier processes have stored, without waiting for a first record."""
    for worker in list(_live):
        worker.wake()


def store_all() -> None:
    """Store what is queued: milliseconds, and nothing to do where nothing was recorded."""
    for worker in list(_live):
        worker.store()


def finish_all() -> None:
    """Store what is queued and what is held: for processes that leave by `os._exit`."""
    for worker in list(_live):
        worker.finish()


def _after_fork() -> None:
    for worker in list(_live):
        worker.after_fork()


def _at_exit(worker: ref[LiveWorker]) -> None:
    """Store everything; send for a second at most, and only what is in memory only."""
    live_worker = worker()
    if live_worker is not None and live_worker in _live:
        live_worker.finish()
        live_worker.leave()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
