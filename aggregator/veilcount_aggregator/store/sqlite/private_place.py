"""Checks that nobody else can lead a store's files elsewhere.

SQLite follows links, and whoever may write to the directory can put one where it makes a file: the
store would then write over somebody's file, with the rights of the service.
"""

from __future__ import annotations

import stat
from pathlib import Path

from ...errors import StoreUnfit

_MADE = ("-wal", "-shm", "-journal", "-lock")


def refuse_shared(path: Path) -> None:
    """Raise StoreUnfit if any user may write to a store's directory, or a file of its is a link."""
    directory = path.parent
    if directory.stat().st_mode & stat.S_IWOTH:
        raise StoreUnfit(
            f"{directory}: any user may write there: `chmod o-w {directory}`, or give the store a"
            " directory of its own"
        )
    for each in (path.with_name(path.name + end) for end in _MADE):
        if each.is_symlink():
            raise StoreUnfit(f"{each} is a link: remove it")
