"""A second name for the write-ahead log of an open store, so that removing the first loses nothing.

SQLite goes on writing to a log that was removed: commits look durable, and are gone with the last
process. So each process that writes holds hard links, `.store.db-INODE-wal` and `-shm`, to the log
and the index that its connection uses, and a shared lock on the log. Before a commit is
acknowledged two stat calls compare the public names with them; a name that is missing, or another
file's, is put back. All processes keep the files that they have open, so nothing else changes.
Nothing simpler is enough: what was acknowledged right before the removal is in this log alone, so a
check at the next commit comes too late if the process is killed first. The height (`acknowledged`)
then tells that commits are missing, but cannot bring them back.

The database's inode in the name keeps a log from a database that was put in its place: while a
process uses the log of the earlier database, SQLite would apply it to the new one, so the log loses
its public name before the new database is opened. A log that nobody has locked was left by a crash:
usually it is the public one, which SQLite recovers. If it is not, and the database may lack what is
in it, an operator decides: no program can tell a log that was removed from a database that was
replaced.

Windows neither removes nor renames a file that SQLite has open, so a store there has no second
names.
"""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from veilcount_serving.durable_files import FileIdentity, file_identity, sync_path
from veilcount_serving.posix import IS_POSIX, LOCK_EX, LOCK_NB, LOCK_SH, flock

from ...errors import StoreWentBack

ENDS = ("wal", "shm")

#: the index [sqlite.org/walformat, 2.1]: whether it was initialized, how many frames the log has,
#: and how many of them are written to the database
INDEX = struct.Struct("=12x?3xI76xI")


class WalGuard:
    """The second names of one store's log and index, for one writing connection."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._names = [path.with_name(f"{path.name}-{end}") for end in ENDS]
        self._texts = [str(name) for name in self._names]  # which stat reads faster
        self._links: list[Path] = []
        self._identities: list[FileIdentity | None] = []
        self._lock: int | None = None

    def prepare(self, is_complete: Callable[[], bool]) -> None:
        """Before SQLite opens the log: put back what others use, refuse to lose what a crash left.

        `is_complete` tells whether the database has all that this host has acknowledged.
        """
        if not IS_POSIX:
            return
        self._detach_log_of_replaced()
        log, index = links = self._own_links()
        # gone: whoever had it open has just closed, and with it SQLite removed the log
        with suppress(FileNotFoundError):
            if _is_locked(log):
                _link_back(links, self._names)
            elif file_identity(log) != file_identity(self._names[0]):
                self._refuse_loss(log, index, is_complete)

    def hold(self) -> None:
        """Right after SQLite opened the log: link log and index, and lock the log."""
        if not IS_POSIX:
            return
        self._links = self._own_links()
        self._identities = [file_identity(name) for name in self._names]
        for name, link in zip(self._names, self._links, strict=True):
            with suppress(OSError):  # a file system without links: a removed log is noticed only
                _link(name, link)
        log = self._links[0] if self._links[0].exists() else self._names[0]
        self._lock = os.open(log, os.O_RDONLY)
        flock(self._lock, LOCK_SH)

    def intact(self) -> bool:
        """Whether log and index are still found under their names."""
        if self._lock is None:
            return self._intact_for_others()
        return [file_identity(name) for name in self._texts] == self._identities

    def restore(self) -> bool:
        """Put the held log and index back under their names; False: the second names are gone."""
        if [file_identity(link) for link in self._links] != self._identities:
            return False
        _link_back(self._links, self._names)
        return True

    def detach(self, *, saved: bool) -> None:
        """After the database was replaced: take the public names from the log that is held.

        Its last user drops the second names too, if all of it is written back to the earlier
        database.
        """
        if self._lock is None:
            return
        if file_identity(self._names[0]) == self._identities[0]:
            self._remove_names()
        if saved and _locks(self._lock, LOCK_EX):
            for link in self._links:
                link.unlink(missing_ok=True)
        self.abandon()

    def release(self) -> None:
        """After the connection was closed: drop the links if SQLite has removed the log."""
        if self._lock is None:
            return
        alone = _locks(self._lock, LOCK_EX)
        if (
            alone
            and not self._names[0].exists()
            and self._identities[0] == file_identity(self._links[0])
        ):
            for link in self._links:
                link.unlink(missing_ok=True)
        self.abandon()

    def abandon(self) -> None:
        """In a forked child: forget what the parent holds, and leave it to the parent."""
        if self._lock is not None:
            os.close(self._lock)
        self._lock = None

    def _detach_log_of_replaced(self) -> None:
        """Take the public names from the log of another database, if a process uses it."""
        log, foreign_names = self._names[0], set(_second_names(self._path)) - set(self._own_links())
        public = file_identity(log)
        if public is not None and public in map(file_identity, foreign_names) and _is_locked(log):
            self._remove_names()

    def _remove_names(self) -> None:
        for name in self._names:
            name.unlink(missing_ok=True)

    def _own_links(self) -> list[Path]:
        inode = self._path.stat().st_ino
        return [self._path.with_name(f".{self._path.name}-{inode}-{end}") for end in ENDS]

    def _intact_for_others(self) -> bool:
        """Whether the log is the one that writing processes use, for one that only reads."""
        try:
            log_identity = file_identity(self._own_links()[0])
        except FileNotFoundError:
            return True  # no database: opening it says so
        return log_identity is None or log_identity == file_identity(self._names[0])

    def _refuse_loss(self, log: Path, index: Path, is_complete: Callable[[], bool]) -> None:
        """Refuse to go on without a log that lost its name, unless the database has all of it.

        The height alone does not show that where no other log took its place: a checkpoint that was
        killed may have written the page of the height, and not yet the others.
        """
        replaced = self._names[0].exists() and self._names[0].stat().st_size > 0
        if (replaced or _is_written_back(index)) and is_complete():
            return
        raise StoreWentBack(
            f"{self._names[0]} was removed while processes wrote to it, and they were killed: what"
            f" they acknowledged last is in {log}. If {self._path} is the file that they had:"
            f" mv {log} {self._names[0]}. If it was replaced or restored since: rm {log}"
        )


def remove_links(path: Path) -> None:
    """Remove what an earlier store of this name has left; no process may have that open."""
    for link in _second_names(path):
        link.unlink(missing_ok=True)


def _second_names(path: Path) -> list[Path]:
    """Return the second names of all logs and indexes that a store of this name has had."""
    named = re.compile(rf"\.{re.escape(path.name)}-\d+-({'|'.join(ENDS)})")
    return [file for file in path.parent.iterdir() if named.fullmatch(file.name)]


def _link(name: Path, link: Path) -> None:
    """Have a link to a file; one to another file, which nobody uses any more, is replaced."""
    if file_identity(link) == file_identity(name):
        return
    temporary = link.with_name(f"{link.name}.{os.getpid()}")
    temporary.unlink(missing_ok=True)
    os.link(name, temporary)
    temporary.replace(link)


def _link_back(links: list[Path], names: list[Path]) -> None:
    """Give files their public names again, and see that the names last."""
    for name, link in zip(names, links, strict=True):
        if link.exists():
            _link(link, name)
    sync_path(names[0].parent)


def _locks(descriptor: int, how: int) -> bool:
    try:
        flock(descriptor, how | LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_locked(log: Path) -> bool:
    """Whether a process uses a log."""
    descriptor = os.open(log, os.O_RDONLY)
    try:
        return not _locks(descriptor, LOCK_EX)
    finally:
        os.close(descriptor)


def _is_written_back(index: Path) -> bool:
    """Whether an index says that the database has all frames of its log."""
    try:
        initialized, logged, saved = INDEX.unpack_from(index.read_bytes())
    except (FileNotFoundError, struct.error):
        return False
    return bool(initialized and logged == saved)
