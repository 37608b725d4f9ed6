"""Every effect on the store's files, each one or two steps: a test ends the process at any of them.

A file is owner-only and appears whole. What is durable when a function returns, it says.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from veilcount_serving.posix import LOCK_EX, LOCK_SH, flock, require_posix, sync_file

PENDING = ".pending"


class Disk:
    """The files of a store, and its locks."""

    def __init__(self) -> None:
        """Refuse a platform without them."""
        require_posix("a shuffler")

    def step(self, what: str) -> None:
        """Pass between two effects: nothing happens here."""

    def make_folder(self, path: Path) -> None:
        """Make a folder durably, if there is none."""
        if not path.is_dir():
            self.step("make folder")
            path.mkdir(mode=0o700, exist_ok=True)
            self.sync_folder(path.parent)

    def replace(self, path: Path, content: bytes) -> None:
        """Write a file durably: the new content as a whole, or the old one."""
        pending = path.with_name(path.name + PENDING)
        self._write_new(pending, content)
        self.publish(pending, path)

    def create(self, path: Path, content: bytes) -> None:
        """Write a file durably, unless there is one: the first of several writers wins."""
        if path.exists():
            return
        pending = path.with_name(f"{path.name}.{os.getpid()}.{os.urandom(4).hex()}{PENDING}")
        self._write_new(pending, content)
        self.step("create")
        with suppress(FileExistsError):
            path.hardlink_to(pending)
        self.unlink(pending)
        self.sync_folder(path.parent)

    def publish(self, pending: Path, path: Path) -> None:
        """Give a synced file its name, durably."""
        self.step("rename")
        pending.replace(path)
        self.sync_folder(path.parent)

    def append(self, descriptor: int, content: bytes) -> None:
        """Append; not durable yet. What an error leaves of it is for the caller to cut off."""
        self.step("append")
        rest = memoryview(content)
        while rest:
            rest = rest[os.write(descriptor, rest) :]

    def sync(self, descriptor: int) -> None:
        """Make the bytes of a file durable."""
        self.step("sync")
        sync_file(descriptor, data_only=True)

    def unlink(self, path: Path) -> None:
        """Remove a file, if it is there."""
        self.step("unlink")
        path.unlink(missing_ok=True)

    def sync_folder(self, path: Path) -> None:
        """Make the names in a folder durable."""
        self.step("sync folder")
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            sync_file(descriptor)
        finally:
            os.close(descriptor)

    @contextmanager
    def lock(self, path: Path, *, exclusive: bool) -> Iterator[None]:
        """Have the lock of a file: alone, or with others that share it."""
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            self.take(descriptor, LOCK_EX if exclusive else LOCK_SH)
            yield
        finally:
            os.close(descriptor)

    def take(self, descriptor: int, kind: int) -> None:
        """Take a lock, once others let it go."""
        self.step("lock")
        flock(descriptor, kind)

    def _write_new(self, path: Path, content: bytes) -> None:
        path.unlink(missing_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        descriptor = os.open(path, flags, 0o600)
        try:
            self.append(descriptor, content)
            self.sync(descriptor)
        finally:
            os.close(descriptor)
