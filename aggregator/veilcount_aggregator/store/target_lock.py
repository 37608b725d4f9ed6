"""A lock on a file that is being created: the second process is refused, with the first's name.

It is an flock on `.NAME.lock`: a process that died holds none, so no lock is stale. The file names
its holder, and is removed with the lock.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from veilcount_serving.durable_files import file_identity
from veilcount_serving.errors import SettingsError
from veilcount_serving.posix import LOCK_EX, LOCK_NB, flock


@contextmanager
def exclusive_file(target: Path, field: str) -> Iterator[None]:
    """Hold the lock while a file is created, or raise with the holder's name."""
    path = target.with_name(f".{target.name}.lock")
    descriptor = _acquire(path)
    if descriptor is None:
        raise SettingsError(
            field, str(target), f"{_holder(path)}: wait for it, or give another name"
        )
    try:
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, json.dumps(this_process()).encode(), 0)
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(descriptor)


def this_process() -> dict[str, str | int]:
    """Return process, host and time, for operators."""
    since = datetime.now(UTC).isoformat(timespec="seconds")
    return {"process": os.getpid(), "host": socket.gethostname(), "since": since}


def _acquire(path: Path) -> int | None:
    """Return a descriptor that holds the lock, or None: somebody else does."""
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        try:
            flock(descriptor, LOCK_EX | LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        if file_identity(descriptor) == file_identity(path):
            return descriptor
        os.close(descriptor)  # the one before has removed it meanwhile


def _holder(path: Path) -> str:
    try:
        holder = json.loads(path.read_text("utf-8"))
        return f"process {holder['process']} on {holder['host']} writes it since {holder['since']}"
    except (OSError, ValueError, KeyError):
        return "another process writes it"
