"""A backup of a store on Redis: its shards, merged into one file."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from tempfile import TemporaryFile

from ..sqlite import backup_file
from ..transfer_format import read_spool, write_spool
from .store import open_redis


def merge_shards(url: str, part: Path) -> None:
    """Merge the shards of a store into a new file, one after the other."""
    with closing(open_redis(url, make=False)) as source, backup_file.merging(part, url) as file:
        for shard in range(source.identity.shards):
            with TemporaryFile(dir=part.parent) as spool:
                with source.read_only_shard(shard) as pieces:
                    write_spool(spool, pieces)
                file.merge(read_spool(spool))
        file.finish(source.export_records(), read_only=source.health().read_only)
