"""A store's URL to its engine."""

from __future__ import annotations

from urllib.parse import urlsplit

from ..errors import SettingsError
from .interface import Store

ENGINES = "sqlite:///path/to/file.db, redis://host:port/0 or redis-cluster://host:port"


def open_store(url: str, *, make: bool = False) -> Store:
    """Open the store at a URL; make it where there is none, if asked to.

    An engine is imported when it is first wanted: who runs on SQLite never loads Redis.
    """
    scheme = urlsplit(url).scheme
    if scheme == "sqlite":
        from .sqlite import open_sqlite  # noqa: PLC0415

        return open_sqlite(url, make=make)
    if scheme in {"redis", "rediss", "redis-cluster"}:
        from .redis import open_redis  # noqa: PLC0415

        return open_redis(url, make=make)
    raise SettingsError("store", url, f"give {ENGINES}")
