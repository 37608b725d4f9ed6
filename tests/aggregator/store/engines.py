"""The engines that the battery runs over: each serves empty stores, as often as it is called."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from itertools import count
from pathlib import Path

from ...redis_cluster import RedisCluster
from ...redis_server import REDIS, VALKEY, RedisServer

#: gives the URL of an empty store; the one before may be gone by then
Empty = Callable[[], str]


@contextmanager
def sqlite(folder: Path) -> Iterator[Empty]:
    numbers = count()
    yield lambda: f"sqlite:///{folder}/{next(numbers)}.db"


@contextmanager
def memory(folder: Path) -> Iterator[Empty]:
    numbers = count()
    yield lambda: f"memory:{folder}/{next(numbers)}"


@contextmanager
def one_server(program: str, folder: Path) -> Iterator[Empty]:
    server = RedisServer(folder, program=program)

    def empty() -> str:
        server.ask("FLUSHALL")
        return server.url

    try:
        yield empty
    finally:
        server.kill()


@contextmanager
def three_masters(program: str, folder: Path) -> Iterator[Empty]:
    """A cluster, likewise. One shard: several divide a period's limit between them.

    What is true of several is in redis/test_shards.py.
    """
    cluster = RedisCluster(folder, program=program)

    def empty() -> str:
        for node in cluster.nodes:
            node.ask("FLUSHALL")
        return f"{cluster.url}?shards=1"

    try:
        yield empty
    finally:
        cluster.close()


#: by name: started once for a run, in a folder of its own
ENGINES: dict[str, Callable[[Path], AbstractContextManager[Empty]]] = {
    "memory": memory,
    "sqlite": sqlite,
    "redis": partial(one_server, REDIS),
    "redis-cluster": partial(three_masters, REDIS),
    "valkey": partial(one_server, VALKEY),
    "valkey-cluster": partial(three_masters, VALKEY),
}
