"""A copy of a SQLite store in one file, made while it serves; and a store made of such a file.

A backup is one state of the store: all of a group or none. What was acknowledged after it is not in
it, and slots that were spent after it are free again. Releases made after it would be forgotten, so
a store that came back has them locked.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from ..errors import SettingsError, StoreUnfit
from .lock import lock
from .sqlite import SqliteStore
from .sqlite.faults import fault
from .sqlite.file import SqliteFile
from .sqlite.place import Place
from .sqlite.schema import APPLICATION
from .sqlite.wal_guard import remove_links
from .target_lock import exclusive

WHY = "restored from a backup: enter again what was released since, from the release journal"


def backup(url: str, to: Path) -> None:
    """Write a store's present state to a new file that only its owner may read."""
    file = SqliteFile(Place.of(url))
    with _exclusive(to, "to"):
        if to.exists():
            raise SettingsError("to", str(to), "there is such a file already: give a new name")
        with _beside(to) as part:
            _write(file, part)
    file.close()


def restore(backed_up: Path, url: str) -> None:
    """Make a store of a backup, where there is none; its releases are locked."""
    place, file = Place.of(url), SqliteFile(Place(backed_up))
    with _exclusive(place.path, "store"):
        for path in (place.path, place.path.with_name(f"{place.path.name}-wal")):
            if path.exists():
                raise SettingsError("store", url, f"{path} is there already: move it away first")
        with _beside(place.path) as part:
            _write(file, part)
            _lock(part)
            remove_links(place.path)
    file.close()


@contextmanager
def _exclusive(target: Path, field: str) -> Iterator[None]:
    """Make a file alone; a folder that is missing or full is the disk's fault, as everywhere."""
    with ExitStack() as stack:
        try:
            stack.enter_context(exclusive(target, field))
        except OSError as error:
            raise fault(error, target) from error
        yield


@contextmanager
def _beside(to: Path) -> Iterator[Path]:
    """Have a file made under another name, and give it its own when it is whole."""
    part = to.with_name(f"{to.name}.part")
    try:
        part.unlink(missing_ok=True)
        os.close(os.open(part, os.O_CREAT | os.O_EXCL, 0o600))
        yield part
        _settle(part)
        part.replace(to)
        _settle(to.parent)
    except (OSError, sqlite3.Error) as error:
        raise fault(error, part) from error
    finally:
        for left in (part, part.with_name(f"{part.name}-lock")):
            left.unlink(missing_ok=True)
        if part.parent.is_dir():
            remove_links(part)


def _write(file: SqliteFile, part: Path) -> None:
    """Copy one state of a store; writers go on meanwhile."""
    with file.reading() as database, closing(sqlite3.connect(part)) as copy:
        database.backup(copy)
        if copy.execute("pragma application_id").fetchone()[0] != APPLICATION:
            raise StoreUnfit(f"{file.place.path} is no store of veilcount")
        if copy.execute("pragma quick_check").fetchone()[0] != "ok":
            raise StoreUnfit(f"{file.place.path} is damaged: take an older backup")
        copy.execute("pragma journal_mode = delete")  # one file, that can be moved as it is


def _lock(part: Path) -> None:
    """Lock the releases of a store that nobody has opened yet, fenced or not."""
    file = SqliteFile(Place(part))
    file.open(make=False)
    store = SqliteStore(file)
    fenced = store.health().fenced
    store.fence(on=False)
    lock(store, WHY)
    store.fence(on=fenced)
    store.close()


def _settle(path: Path) -> None:
    """Wait until a file, or a directory's list of names, is on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)
