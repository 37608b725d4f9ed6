"""The stores a run may be against: each real, durable, and gone with its folder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.redis_server import RedisServer

from veilcount_aggregator.store import open_store


@dataclass(frozen=True, slots=True)
class Engine:
    """Where a store is, and the processes that are its own."""

    url: str
    pids: tuple[int, ...] = ()


@contextmanager
def sqlite(folder: Path) -> Iterator[Engine]:
    """A file."""
    yield Engine(f"sqlite:///{folder}/load.db")


@contextmanager
def redis(folder: Path) -> Iterator[Engine]:
    """A redis-server of our own that syncs its file before every reply."""
    server = RedisServer(folder)
    try:
        yield Engine(server.url, (server._process.pid,))
    finally:
        server.kill()


ENGINES = {"sqlite": sqlite, "redis": redis}


@contextmanager
def made(name: str, folder: Path) -> Iterator[Engine]:
    """An empty store of this engine."""
    with ENGINES[name](folder) as engine:
        open_store(engine.url, make=True).close()
        yield engine
