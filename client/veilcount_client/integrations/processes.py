"""What a server of many processes does at the beginning and at the end of each."""

from __future__ import annotations

from ..delivery.worker import _live_workers


def wake_all() -> None:
    """Start sending what earlier processes have stored, without waiting for a first record."""
    for worker in list(_live_workers):
        worker.wake()


def store_all() -> None:
    """Store what is queued: milliseconds, and nothing to do where nothing was recorded."""
    for worker in list(_live_workers):
        worker.store()


def finish_all() -> None:
    """Store what is queued and what is held: for processes that leave by `os._exit`."""
    for worker in list(_live_workers):
        worker.finish()
