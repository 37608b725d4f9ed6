"""The stores a run may be against: each real, durable, and gone with its folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from tests.redis_cluster import RedisCluster
from tests.redis_server import RedisServer

from veilcount_aggregator.store import open_store


@dataclass(frozen=True, slots=True)
class Engine:
    """Where a store is, and the servers that are its own."""

    url: str
    nodes: tuple[RedisServer, ...] = ()
    whole: Callable[[], None] = lambda: None  # returns once all nodes work together
    fail_over: Callable[[], None] = lambda: None  # ends a master, promotes its replica

    def pids(self) -> list[int]:
        """Return the processes of those servers."""
        return [node._process.pid for node in self.nodes]


@contextmanager
def sqlite(folder: Path) -> Iterator[Engine]:
    """A file."""
    yield Engine(f"sqlite:///{folder}/load.db")


@contextmanager
def redis(folder: Path) -> Iterator[Engine]:
    """A redis-server of our own that syncs its file before every reply."""
    place = folder / "redis"
    place.mkdir()
    server = RedisServer(place)
    try:
        yield Engine(server.url, (server,))
    finally:
        server.kill()


@contextmanager
def cluster(folder: Path) -> Iterator[Engine]:
    """Three masters."""
    servers = RedisCluster(folder / "cluster")
    try:
        yield Engine(servers.url, tuple(servers.nodes), servers.wait)
    finally:
        servers.close()


@contextmanager
def replicated(folder: Path) -> Iterator[Engine]:
    """Three masters with a replica each."""
    servers = RedisCluster(folder / "cluster", replicas=1)

    def fail_over() -> None:
        servers.nodes[-1].kill()
        servers.replicas[-1][0].ask("CLUSTER", "FAILOVER", "TAKEOVER")

    try:
        yield Engine(servers.url, tuple(servers.nodes), fail_over=fail_over)
    finally:
        servers.close()


ENGINES = {"sqlite": sqlite, "redis": redis, "redis-cluster": cluster}


@contextmanager
def made(name: str, folder: Path, *, fails_over: bool, replicas: int) -> Iterator[Engine]:
    """An empty store of this engine, whose replies wait for so many replicas."""
    with (replicated if fails_over else ENGINES[name])(folder) as engine:
        url = f"{engine.url}?replicas={replicas}" if replicas else engine.url
        open_store(url, make=True).close()
        yield replace(engine, url=url)
