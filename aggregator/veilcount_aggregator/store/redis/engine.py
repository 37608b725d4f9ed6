"""Redis as an engine. Its library is imported on first use: on SQLite, it is never loaded."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path

from veilcount_serving.findings import CheckResult, Finding, warn

from ..acknowledged import AcknowledgedHeights
from ..engine import Engine
from ..interface import Store


class RedisEngine(Engine):
    """The engine of any number of hosts."""

    schemes = frozenset({"redis", "rediss", "redis-cluster"})
    form = "redis://host:port/0 or redis-cluster://host:port"
    magic = b"REDIS"

    def open(self, url: str, *, make: bool, heights: Path | None) -> Store:
        from .store import open_redis  # noqa: PLC0415

        return open_redis(url, make=make, acknowledged=AcknowledgedHeights(heights))

    def back_up(self, url: str, part: Path) -> None:
        from .shard_merge import merge_shards  # noqa: PLC0415

        merge_shards(url, part)

    def verify_backup(self, path: Path) -> Iterator[CheckResult]:
        """Refer to Redis's own program: it alone can verify its file format."""
        yield warn(f"{path.name} is a Redis file", f"verify it with redis-check-rdb {path}")

    def examine_servers(self, url: str, clock: Callable[[], datetime]) -> Iterator[Finding]:
        from .server_checks import examine_redis  # noqa: PLC0415

        return examine_redis(url, clock)
