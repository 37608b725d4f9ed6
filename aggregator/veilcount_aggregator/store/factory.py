"""The engines, and the stores that they open by URL."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

from veilcount_serving.errors import SettingsError

from .engine import Engine
from .interface import Store
from .redis import RedisEngine
from .sqlite import SqliteEngine
from .store_url import redact_url

ENGINES: tuple[Engine, ...] = (SqliteEngine(), RedisEngine())


def engine_for(url: str) -> Engine:
    """Return the engine of the store at a URL."""
    scheme = urlsplit(url).scheme
    for engine in ENGINES:
        if scheme in engine.schemes:
            return engine
    forms = ", ".join(engine.form for engine in ENGINES)
    raise SettingsError("store", redact_url(url), f"give {forms}")


def open_store(url: str, *, make: bool = False, heights: Path | None = None) -> Store:
    """Open the store at a URL, see `Engine.open`."""
    return engine_for(url).open(url, make=make, heights=heights)


def store_file(url: str) -> Path | None:
    """Return the file that is the store, for one host; None: a server shares it with all."""
    return engine_for(url).file(url)
