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

from contextlib import closing
from pathlib import Path

from veilcount_serving.errors import SettingsError

from .factory import engine_for, open_store, store_file
from .migrate import copy_store
from .sqlite import backup_file
from .store_url import redact_url


def backup(url: str, to: Path) -> None:
    """Write a store's present state to a new file that only its owner may read."""
    to = to.absolute()
    with backup_file.exclusive(to, "to"):
        if to.exists():
            raise SettingsError("to", str(to), "the file exists: give a new name")
        with backup_file.temporary(to) as part:
            engine_for(url).back_up(url, part)


def restore(backed_up: Path, url: str) -> None:
    """Restore a backup to a new store, with its releases locked."""
    backup_file.require_backup(backed_up)
    target = store_file(url)
    if target is None:
        _restore_to_servers(backed_up, url)
    else:
        backup_file.restore(backed_up, target, url)


def _restore_to_servers(backed_up: Path, url: str) -> None:
    """Restore to a file first, which locks the releases, and copy that into an empty store."""
    with (
        backup_file.restored(backed_up) as source,
        closing(open_store(url, make=True)) as target,
    ):
        read_only = source.health().read_only
        source.set_read_only(on=False)
        copy_store(source, target, where=redact_url(url))
        target.set_read_only(on=read_only)
