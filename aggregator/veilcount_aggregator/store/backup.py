"""Backup of a store to one file while it serves, and restoring a store of any engine from it.

A backup of SQLite is one state of the store: all of a group or none. A backup of Redis is one state
of each shard, one shard after the other, each read-only while it is read; rows and their counters
are of one shard, so nothing is counted twice or half. Records are read last: no report of a series
comes without its definition, and what a release has spent is never older than its data.

What was acknowledged after a backup is not in it, and slots that were spent after it are free
again. Releases and tokens made after it would be forgotten, so a restored store releases and issues
none (`restore_lock`).
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from urllib.parse import urlsplit

from veilcount_serving.errors import SettingsError, system_reason

from ..errors import StoreUnfit
from .acknowledged import ENDING
from .durable_files import sync_path
from .factory import open_store
from .migrate import copy_store
from .records import update_records
from .restore_lock import UNCERTAIN_LEDGER, lock_releases
from .sqlite import SqliteStore
from .sqlite.connection import SqliteUrl, store_error
from .sqlite.database import SqliteDatabase
from .sqlite.height import renew_id
from .sqlite.records import set_read_only
from .sqlite.schema import APPLICATION, refuse_other_format
from .sqlite.transfer import absorb, merge
from .sqlite.wal_guard import remove_links
from .store_url import redact_url
from .target_lock import exclusive_file
from .transfer_format import read_spool, write_spool

WHY = "restored from a backup: enter again what was released since, from the release journal"

_MAGIC = b"SQLite format 3\0"  # sqlite.org/fileformat, 1.3
_FIX = "give a file that `veilcount store backup` has written"


def backup(url: str, to: Path) -> None:
    """Write a store's present state to a new file that only its owner may read."""
    to = to.absolute()
    with _exclusive(to, "to"):
        if to.exists():
            raise SettingsError("to", str(to), "the file exists: give a new name")
        with _temporary(to) as part:
            if _is_redis(url):
                _write_shards(url, part)
            else:
                _write(SqliteUrl.parse(url), part)


def restore(backed_up: Path, url: str) -> None:
    """Restore a backup to a new store, with its releases locked."""
    _require_backup(backed_up)
    if _is_redis(url):
        _restore_to_redis(backed_up, url)
        return
    target = SqliteUrl.parse(url).path
    with _exclusive(target, "store"):
        for path in (target, target.with_name(f"{target.name}-wal")):
            if path.exists():
                raise SettingsError("store", url, f"{path} exists: move it away first")
        with _temporary(target) as part:
            _write(SqliteUrl(backed_up.absolute()), part)
            _refuse_other_format(part, backed_up)
            _lock(part)
            remove_links(target)


def _require_backup(file: Path) -> None:
    """Refuse what is certainly no backup; what else it lacks shows as it is copied."""
    try:
        with file.open("rb") as opened:
            what = "" if opened.read(len(_MAGIC)) == _MAGIC else "not a backup"
    except OSError as error:
        what = system_reason(error)
    if what:
        raise SettingsError("FILE", str(file), f"{what}: {_FIX}")


def _refuse_other_format(part: Path, backed_up: Path) -> None:
    """Refuse a store of another version by the name of its backup."""
    with closing(sqlite3.connect(part)) as database:
        refuse_other_format(database, str(backed_up))


def _is_redis(url: str) -> bool:
    return urlsplit(url).scheme.startswith("redis")


def _write_shards(url: str, part: Path) -> None:
    """Merge the shards of a Redis store into a new file, one after the other."""
    from .redis.store import open_redis  # noqa: PLC0415 - who runs on SQLite never loads Redis

    file = SqliteDatabase(SqliteUrl(part, durable=False))  # one sync at the end
    with closing(open_redis(url, make=False)) as source, closing(file):
        file.open(make=True)
        for shard in range(source.identity.shards):
            with TemporaryFile(dir=part.parent) as spool:
                with source.read_only_shard(shard) as pieces:
                    write_spool(spool, pieces)
                with file.writing() as database:
                    merge(database, read_spool(spool))
        with file.writing() as database:
            absorb(database, source.export_records())
            set_read_only(database, on=source.health().read_only)
    _finish(part, url)


def _finish(part: Path, name: str) -> None:
    """Check a file, and leave it as one that can be moved."""
    with closing(sqlite3.connect(part)) as made:
        if made.execute("pragma application_id").fetchone()[0] != APPLICATION:
            raise StoreUnfit(f"{name} is neither a store nor a backup of one: give the path of one")
        if made.execute("pragma quick_check").fetchone()[0] != "ok":
            raise StoreUnfit(f"{name} is damaged: take an older backup")
        made.execute("pragma journal_mode = delete")


def _restore_to_redis(backed_up: Path, url: str) -> None:
    """Restore to a file first, which locks the releases, and copy that into an empty Redis."""
    with TemporaryDirectory(prefix="veilcount-restore-", dir=backed_up.parent) as folder:
        made = f"sqlite:///{Path(folder).absolute()}/restored.db"
        restore(backed_up, made)
        with closing(open_store(made)) as source, closing(open_store(url, make=True)) as target:
            read_only = source.health().read_only
            source.set_read_only(on=False)
            copy_store(source, target, where=redact_url(url))
            target.set_read_only(on=read_only)


@contextmanager
def _exclusive(target: Path, field: str) -> Iterator[None]:
    """Create a file under a lock; errors of its folder are errors of the store."""
    with ExitStack() as stack:
        try:
            stack.enter_context(exclusive_file(target, field))
        except OSError as error:
            raise store_error(error, target) from error
        yield


@contextmanager
def _temporary(to: Path) -> Iterator[Path]:
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


def _write(source: SqliteUrl, part: Path) -> None:
    """Copy one state of a store; writers go on meanwhile."""
    with (
        closing(SqliteDatabase(source)) as file,
        file.reading() as database,
        closing(sqlite3.connect(part)) as made,
    ):
        database.backup(made)
    _finish(part, str(source.path))


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
