"""The stores of a deployment, each empty, real and durable, with the servers that hold it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from veilcount_aggregator.store import open_store

from .redis_cluster import RedisCluster
from .redis_server import RedisServer

SQLITE, REDIS, CLUSTER = ENGINES = "sqlite", "redis", "redis-cluster"


@dataclass(frozen=True, slots=True)
class Engine:
    """A store's URL, and the Redis servers that hold it: masters, if there are several."""

    url: str
    nodes: tuple[RedisServer, ...] = ()
    cluster: RedisCluster | None = None

    def pids(self) -> list[int]:
        """Return the processes of its servers."""
        return [node.pid for node in self.nodes]

    def wait(self) -> None:
        """Wait until all masters work together."""
        if self.cluster is not None:
            self.cluster.wait()

    def fail_over(self) -> None:
        """Kill the last master, and promote its replica."""
        assert self.cluster is not None
        self.cluster.nodes[-1].kill()
        self.cluster.replicas[-1][0].ask("CLUSTER", "FAILOVER", "TAKEOVER")


@contextmanager
def engine(kind: str, folder: Path, query: str = "", *, replicas: int = 0) -> Iterator[Engine]:
    """Make a store in a new folder, its URL with a query; a cluster's masters with replicas."""
    folder.mkdir()
    with _started(kind, folder, replicas) as servers:
        nodes: tuple[RedisServer, ...] = ()
        if servers is not None:
            nodes = (servers,) if isinstance(servers, RedisServer) else tuple(servers.nodes)
        url = (servers.url if servers else f"sqlite:///{folder}/store.db") + query
        open_store(url, make=True).close()
        yield Engine(url, nodes, servers if isinstance(servers, RedisCluster) else None)


def _started(
    kind: str, folder: Path, replicas: int
) -> closing[RedisServer] | closing[RedisCluster] | nullcontext[None]:
    if kind == SQLITE:
        return nullcontext()
    if kind == REDIS:
        return closing(RedisServer(folder))
    return closing(RedisCluster(folder, replicas=replicas))
