"""What SQLite and the operating system call their troubles, in the words of the contract."""

from __future__ import annotations

import errno
import shutil
import sqlite3
from pathlib import Path

from ...errors import StoreError, StoreFull, StoreUnavailable, StoreUnfit

#: less than this is no room: SQLite tells of a full disk as of any failed write where a file is
#: mapped into memory (the WAL's index)
LEAST_ROOM = 1 << 16

_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_FULL = {errno.ENOSPC, errno.EDQUOT}


def store_error(error: sqlite3.Error | OSError, path: Path) -> StoreError:
    """Return what to raise for an error at a store's file. It carries no row and no message."""
    if isinstance(error, OSError):
        code, full, damaged = error.errno, error.errno in _FULL, False
    else:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        full = code == sqlite3.SQLITE_FULL or (code == sqlite3.SQLITE_IOERR and _no_room(path))
        damaged = code in _DAMAGED
    if full:
        return StoreFull(f"{path}: no room on the disk: make some")
    if damaged:
        return StoreUnfit(f"{path} is damaged ({error}): restore a backup")
    return StoreUnavailable(f"{path}: {error}")


def _no_room(path: Path) -> bool:
    try:
        return shutil.disk_usage(path.parent).free < LEAST_ROOM
    except OSError:
        return False
