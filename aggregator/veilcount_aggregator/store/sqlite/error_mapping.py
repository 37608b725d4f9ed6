"""Errors of SQLite and the operating system mapped to errors of the store."""

from __future__ import annotations

import errno
import shutil
import sqlite3
from pathlib import Path

from ...errors import StoreError, StoreFull, StoreUnavailable, StoreUnfit

#: a disk with less is full: where a file is mapped into memory (the WAL's index), SQLite reports a
#: full disk like any failed write
LEAST_FREE_BYTES = 1 << 16

_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_FULL = {errno.ENOSPC, errno.EDQUOT}


def store_error(error: sqlite3.Error | OSError, path: Path) -> StoreError:
    """Map an error at a store's file; the result has no row and no message."""
    if isinstance(error, OSError):
        code, full, damaged = error.errno, error.errno in _FULL, False
    else:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        full = code == sqlite3.SQLITE_FULL or (code == sqlite3.SQLITE_IOERR and _is_disk_full(path))
        damaged = code in _DAMAGED
    if full:
        return StoreFull(f"{path}: the disk is full: free some space")
    if damaged:
        return StoreUnfit(f"{path} is damaged ({error}): restore a backup")
    return StoreUnavailable(f"{path}: {error}")


def _is_disk_full(path: Path) -> bool:
    try:
        return shutil.disk_usage(path.parent).free < LEAST_FREE_BYTES
    except OSError:
        return False
