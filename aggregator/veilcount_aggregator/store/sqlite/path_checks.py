"""Checks that nobody has led a store's files elsewhere.

SQLite follows links, and whoever may write to the directory can put one where it makes a file: the
store would then write over somebody's file, with the rights of the service. The directory's own
mode is not judged: a volume of a container is often writable by all, and by nobody else in fact.
"""

from __future__ import annotations

from pathlib import Path

from ...errors import StoreUnfit

_MADE = ("-wal", "-shm", "-journal", "-lock")


def refuse_links(path: Path) -> None:
    """Raise StoreUnfit if a file that SQLite makes, or the lock, is a link."""
    for each in (path.with_name(path.name + end) for end in _MADE):
        if each.is_symlink():
            raise StoreUnfit(f"{each} is a link: remove it")
