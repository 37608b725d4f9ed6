"""The engines, and the stores that they open by URL."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

from veilcount_serving.errors import SettingsError
from veilcount_serving.posix import require_posix

from .engine import Engine
from .interface import Store
from .memory import MemoryEngine
from .redis import RedisEngine
from .sqlite import SqliteEngine
from .store_url import redact_url

#: those with a form are offered to operators; the store in memory is for tests alone
ENGINES: tuple[Engine, ...] = (SqliteEngine(), RedisEngine(), MemoryEngine())


def engine_for(url: str) -> Engine:
    """Return the engine of the store at a URL."""
    scheme = urlsplit(url).scheme
    for engine in ENGINES:
        if scheme in engine.schemes:
            return engine
    forms = ", ".join(engine.form for engine in ENGINES if engine.form)
    raise SettingsError("store", redact_url(url), f"give {forms}")


def open_store(
    url: str, *, make: bool = False, heights: Path | None = None, alone: bool = False
) -> Store:
    """Open the store at a URL, see `Engine.open`.

    `alone`: a file may be opened where there is no flock(2), which keeps other processes out.
    """
    if not (alone and store_file(url)):
        require_posix("a store")
    return engine_for(url).open(url, make=make, heights=heights)


def store_file(url: str) -> Path | None:
    """Return the file that is the store, for one host; None: a server shares it with all."""
    return engine_for(url).file(url)
