"""What stores and servers need of their system: locks, and bytes that a power cut leaves.

Commands that open no store import this as well, and run where flock(2) is missing. On Windows
nothing could stand in for it: locks of byte ranges belong to a process, and servers fork besides.
`veilcount dev` alone runs there: one process, which has its store to itself.
"""

from __future__ import annotations

import os
import sys

from veilcount_shared.errors import VeilcountError

__all__ = [
    "IS_POSIX",
    "LOCK_EX",
    "LOCK_NB",
    "LOCK_SH",
    "LOCK_UN",
    "flock",
    "require_posix",
    "sync_file",
]

IS_POSIX = sys.platform != "win32"


class UnsupportedPlatform(VeilcountError):
    """Something that this platform cannot do, and where it can be done."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"{what} needs Linux or macOS, and this is {sys.platform}: run it there, in a"
            " container, or in the Windows Subsystem for Linux"
        )


def require_posix(what: str) -> None:
    """Raise where a store or a server cannot work: before anything is made."""
    if not IS_POSIX:
        raise UnsupportedPlatform(what)


if sys.platform == "win32":
    LOCK_SH, LOCK_EX, LOCK_NB, LOCK_UN = 1, 2, 4, 8

    def flock(_: int, __: int) -> None:
        """Lock nothing: there is no such lock."""
        raise UnsupportedPlatform("a store")
else:
    from fcntl import LOCK_EX, LOCK_NB, LOCK_SH, LOCK_UN, flock


def sync_file(descriptor: int, *, data_only: bool = False) -> None:
    """Wait until a file is on the disk; of data alone, its times may be older.

    On macOS fsync(2) leaves the data to the disk's own cache, so the disk is asked to write that
    too, on file systems that can [fcntl(2), F_FULLFSYNC; SQLite does the same].
    """
    if sys.platform == "darwin":
        from fcntl import F_FULLFSYNC, fcntl  # noqa: PLC0415 - of macOS alone

        try:
            fcntl(descriptor, F_FULLFSYNC)
        except OSError:
            os.fsync(descriptor)
    elif data_only:
        os.fdatasync(descriptor)
    else:
        os.fsync(descriptor)
