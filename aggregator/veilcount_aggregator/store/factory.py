"""Open a store by its URL."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

from veilcount_serving.errors import SettingsError

from .acknowledged import AcknowledgedHeights
from .interface import Store
from .store_url import redact_url

ENGINES = "sqlite:///path/to/file.db, redis://host:port/0 or redis-cluster://host:port"


def open_store(url: str, *, make: bool = False, heights: Path | None = None) -> Store:
    """Open the store at a URL; with `make`, create it if it is missing.

    `heights` is the file in which this host keeps how far it has acknowledged a store on Redis;
    without it, this process alone remembers. SQLite has its own, next to the store.

    An engine is imported on first use: on SQLite, Redis is never loaded.
    """
    scheme = urlsplit(url).scheme
    if scheme == "sqlite":
        from .sqlite import open_sqlite  # noqa: PLC0415

        return open_sqlite(url, make=make)
    if scheme in {"redis", "rediss", "redis-cluster"}:
        from .redis import open_redis  # noqa: PLC0415

        return open_redis(url, make=make, acknowledged=AcknowledgedHeights(heights))
    raise SettingsError("store", redact_url(url), f"give {ENGINES}")
