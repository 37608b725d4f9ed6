"""What sends over HTTP, imported when the first request leaves: as dear as all of the client.

Most runs of a program send nothing, and none waits for it in its own thread. A fork waits until an
import under way is over: its child would find the modules locked, for ever, by a thread that it
does not have.
"""

from __future__ import annotations

import os
from contextlib import suppress
from threading import RLock
from types import ModuleType

FORK_SECONDS = 5.0  # how long a fork waits: an import takes a tenth of a second

_importing = RLock()  # owned: a fork that waited in vain releases nothing


def http() -> ModuleType:
    """Return the module `deadline`."""
    with _importing:
        from . import deadline  # noqa: PLC0415 - requests
    return deadline


def _before_fork() -> None:
    _importing.acquire(timeout=FORK_SECONDS)


def _after_fork_in_parent() -> None:
    with suppress(RuntimeError):
        _importing.release()


def _after_fork_in_child() -> None:
    global _importing  # noqa: PLW0603 - whoever held it does not live here
    _importing = RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork,
        after_in_parent=_after_fork_in_parent,
        after_in_child=_after_fork_in_child,
    )
