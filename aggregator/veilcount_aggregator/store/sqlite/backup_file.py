"""The file that a backup is, of whatever engine: a SQLite store that nobody has opened."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote

from veilcount_serving.durable_files import sync_path
from veilcount_serving.errors import SettingsError, system_reason
from veilcount_serving.findings import CheckResult, ok, wrong

from ...errors import StoreUnfit
from ..acknowledged import ENDING
from ..engine import MAKE_BACKUP
from ..interface import TransferPiece
from ..records import update_records
from ..restore_lock import UNCERTAIN_LEDGER, lock_releases
from ..sql.records import set_read_only
from ..sql.transfer import absorb, merge
from ..target_lock import exclusive_file
from .connection import SqliteUrl, store_error
from .database import SqliteDatabase
from .height import renew_id
from .schema import APPLICATION, FORMAT, format_of, refuse_other_format
from .store import SqliteStore
from .wal_guard import remove_links

WHY = "restored from a backup: enter again what was released since, from the release journal"

MAGIC = b"SQLite format 3\0"  # sqlite.org/fileformat, 1.3
_FIX = "give a file that `veilcount store backup` has written"


class MergedBackup:
    """A backup that shards are merged into, one after the other."""

    def __init__(self, file: SqliteDatabase) -> None:
        self._file = file

    def merge(self, pieces: Iterable[TransferPiece]) -> None:
        """Add what one shard has counted."""
        with self._file.writing() as database:
            merge(database, pieces)

    def finish(self, records: Iterable[TransferPiece], *, read_only: bool) -> None:
        """Write the records, and whether the store is read-only."""
        with self._file.writing() as database:
            absorb(database, records)
            set_read_only(database, on=read_only)


@contextmanager
def merging(part: Path, name: str) -> Iterator[MergedBackup]:
    """Make an empty file a backup that is merged; `name` is its source's."""
    with closing(SqliteDatabase(SqliteUrl(part, durable=False))) as file:  # one sync at the end
        file.open(make=True)
        yield MergedBackup(file)
    _finish(part, name)


def copy(source: SqliteUrl, part: Path) -> None:
    """Copy one state of a store; writers go on meanwhile."""
    with (
        closing(SqliteDatabase(source)) as file,
        file.reading() as database,
        closing(sqlite3.connect(part)) as target,
    ):
        database.backup(target)
    _finish(part, str(source.path))


def restore(backed_up: Path, target: Path, url: str) -> None:
    """Restore a backup to the new store of a URL, with its releases locked."""
    with exclusive(target, "store"):
        for path in (target, target.with_name(f"{target.name}-wal")):
            if path.exists():
                raise SettingsError("store", url, f"{path} exists: move it away first")
        with temporary(target) as part:
            copy(SqliteUrl(backed_up.absolute()), part)
            _refuse_other_format(part, backed_up)
            _lock(part)
            remove_links(target)


@contextmanager
def restored(backed_up: Path) -> Iterator[SqliteStore]:
    """Restore a backup to a temporary file, with its releases locked, and open that."""
    with TemporaryDirectory(prefix="veilcount-restore-", dir=backed_up.parent) as folder:
        target = Path(folder).absolute() / "restored.db"
        restore(backed_up, target, str(target))
        with closing(SqliteDatabase(SqliteUrl(target))) as file:
            yield SqliteStore(file)


def require_backup(file: Path) -> None:
    """Refuse what is certainly no backup; what else it lacks shows as it is copied."""
    try:
        with file.open("rb") as opened:
            what = "" if opened.read(len(MAGIC)) == MAGIC else "not a backup"
    except OSError as error:
        what = system_reason(error)
    if what:
        raise SettingsError("FILE", str(file), f"{what}: {_FIX}")


def _refuse_other_format(part: Path, backed_up: Path) -> None:
    """Refuse a store of another version by the name of its backup."""
    with closing(sqlite3.connect(part)) as database:
        refuse_other_format(database, str(backed_up))


def _finish(part: Path, name: str) -> None:
    """Check a file, and leave it as one that can be moved."""
    with closing(sqlite3.connect(part)) as database:
        if database.execute("pragma application_id").fetchone()[0] != APPLICATION:
            raise StoreUnfit(f"{name} is neither a store nor a backup of one: give the path of one")
        if database.execute("pragma quick_check").fetchone()[0] != "ok":
            raise StoreUnfit(f"{name} is damaged: take an older backup")
        database.execute("pragma journal_mode = delete")


@contextmanager
def exclusive(target: Path, field: str) -> Iterator[None]:
    """Create a file under a lock; errors of its folder are errors of the store."""
    with ExitStack() as stack:
        try:
            stack.enter_context(exclusive_file(target, field))
        except OSError as error:
            raise store_error(error, target) from error
        yield


@contextmanager
def temporary(to: Path) -> Iterator[Path]:
    """Create a file under a temporary name, and rename it when it is complete."""
    part = to.with_name(f"{to.name}.part")
    try:
        part.unlink(missing_ok=True)
        os.close(os.open(part, os.O_CREAT | os.O_EXCL, 0o600))
        yield part
        sync_path(part)
        part.replace(to)
        sync_path(to.parent)
    except (OSError, sqlite3.Error) as error:
        raise store_error(error, part) from error
    finally:
        for ending in ("", "-lock", ENDING):
            part.with_name(part.name + ending).unlink(missing_ok=True)
        if part.parent.is_dir():
            remove_links(part)


def _lock(part: Path) -> None:
    """Lock the releases of a new store, read-only or not."""
    with closing(SqliteDatabase(SqliteUrl(part))) as file:
        file.open(make=False)
        store = SqliteStore(file)
        read_only = store.health().read_only
        store.set_read_only(on=False)
        lock_releases(store, WHY)
        update_records(store, lambda: ([UNCERTAIN_LEDGER], None))
        with file.writing() as database:
            renew_id(database)  # it lacks what was acknowledged since: no host takes it for whole
        store.set_read_only(on=read_only)


def verify(path: Path) -> Iterator[CheckResult]:
    """Read the whole backup, as a restore would."""
    try:
        yield _read(path)
    except sqlite3.Error as error:
        yield wrong(f"{path.name} cannot be read: {error}", MAKE_BACKUP)


def _read(path: Path) -> CheckResult:
    url = f"file:{quote(str(path.absolute()))}?mode=ro&immutable=1"
    with closing(sqlite3.connect(url, uri=True)) as database:
        (application,) = database.execute("pragma application_id").fetchone()
        number = format_of(database)
        (sound,) = database.execute("pragma quick_check(1)").fetchone()
    if application != APPLICATION:
        return wrong(f"{path.name} is not a veilcount store", MAKE_BACKUP)
    if number != FORMAT:
        return wrong(
            f"{path.name} has format {number}; this version reads {FORMAT}",
            "restore it with the version that wrote it",
        )
    if sound != "ok":
        return wrong(f"{path.name} is damaged: {sound}", MAKE_BACKUP)
    return ok(f"{path.name} is intact and can be restored")
