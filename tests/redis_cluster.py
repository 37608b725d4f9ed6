"""A real Redis Cluster of three masters on the loopback, with replicas if asked for, made without
redis-cli.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from redis.crc import key_slot
from redis.exceptions import ConnectionError as NoConnection

from .processes import HOST, free_port, wait_until
from .redis_server import REDIS, PortTaken, RedisServer

SLOTS = 16384
TRIES = 5
MIGRATE_MILLISECONDS = 5_000
BUS = 10_000  # a node's bus listens on its port plus this: a port is below 55,535


class RedisCluster:
    """Three masters with a third of the slots each, and the replicas of each."""

    def __init__(
        self,
        folder: Path,
        nodes: int = 3,
        *,
        replicas: int = 0,
        program: str = REDIS,
        **settings: str,
    ) -> None:
        """Start it, and wait until all agree who has what."""
        self._folder, self._settings, self._program = folder, settings, program
        self.nodes = [self._node(folder / str(number), settings) for number in range(nodes)]
        self.replicas = [
            [self._node(folder / f"{number}-{each}", settings) for each in range(replicas)]
            for number in range(nodes)
        ]
        for number, node in enumerate(self.nodes):
            first, end = SLOTS * number // nodes, SLOTS * (number + 1) // nodes
            node.ask("CLUSTER", "SET-CONFIG-EPOCH", str(number + 1))
            node.ask("CLUSTER", "ADDSLOTSRANGE", str(first), str(end - 1))
            node.ask("CLUSTER", "MEET", HOST, str(self.nodes[0].port))
        for replica in self._all[nodes:]:
            replica.ask("CLUSTER", "MEET", HOST, str(self.nodes[0].port))
        self.wait()
        for node, followers in zip(self.nodes, self.replicas, strict=True):
            self._have_followed(node, followers)

    @property
    def url(self) -> str:
        return "redis-cluster://" + ",".join(f"{HOST}:{node.port}" for node in self.nodes)

    def master_of(self, key: bytes) -> RedisServer:
        """Return the master that a key's slot was given to at the start."""
        ends = [SLOTS * (number + 1) // len(self.nodes) for number in range(len(self.nodes))]
        return next(node for node, end in zip(self.nodes, ends, strict=True) if key_slot(key) < end)

    def wait(self) -> None:
        """Wait until it takes writes."""
        wait_until(lambda: all(self._agrees(node) for node in self._all), 30)

    def grow(self, nodes: int) -> list[RedisServer]:
        """Start more masters and have them known; they have no slots yet."""
        known, first = len(self.nodes), self.nodes[0]
        more = [self._node(self._folder / str(known + n), self._settings) for n in range(nodes)]
        for node in more:
            node.ask("CLUSTER", "MEET", HOST, str(first.port))
        self.nodes += more
        self.wait()
        return more

    def move(self, slot: int, source: RedisServer, target: RedisServer, keys: int = 100) -> None:
        """Move a slot with its keys, so many at a time, while clients go on; as redis-cli does."""
        names = {node.port: _name(node) for node in (source, target)}
        target.ask("CLUSTER", "SETSLOT", str(slot), "IMPORTING", names[source.port])
        source.ask("CLUSTER", "SETSLOT", str(slot), "MIGRATING", names[target.port])
        with source.connection() as connection:
            while found := connection.execute_command("CLUSTER", "GETKEYSINSLOT", slot, keys):
                connection.migrate(HOST, target.port, found, 0, MIGRATE_MILLISECONDS)
        others = [node for node in self.nodes if node.port not in names]
        for node in (target, source, *others):
            node.ask("CLUSTER", "SETSLOT", str(slot), "NODE", names[target.port])

    def holder(self, slot: int) -> RedisServer:
        """Return who has a slot."""
        ranges = self.nodes[0].ask("CLUSTER", "SLOTS")
        assert isinstance(ranges, list)
        port = next(master[1] for first, last, master, *_ in ranges if first <= slot <= last)
        return next(node for node in self.nodes if node.port == port)

    def close(self) -> None:
        for node in self._all:
            node.kill()

    @property
    def _all(self) -> list[RedisServer]:
        return [*self.nodes, *(follower for followers in self.replicas for follower in followers)]

    def _have_followed(self, node: RedisServer, followers: list[RedisServer]) -> None:
        name = node.ask("CLUSTER", "MYID")
        assert isinstance(name, bytes)
        for follower in followers:
            follower.ask("CLUSTER", "REPLICATE", name.decode())
        wait_until(lambda: node.replicas() >= len(followers), 30)

    def _agrees(self, node: RedisServer) -> bool:
        reply = node.ask("CLUSTER", "INFO")
        assert isinstance(reply, bytes)
        lines = dict(line.split(":") for line in reply.decode().split())
        known = int(lines["cluster_known_nodes"])

        return lines["cluster_state"] == "ok" and known == len(self._all)

    def _node(self, folder: Path, settings: dict[str, str]) -> RedisServer:
        folder.mkdir(parents=True, exist_ok=True)
        cluster = {
            "cluster_enabled": "yes",
            "cluster_node_timeout": "2000",
            "cluster_require_full_coverage": "no",
        }
        for _ in range(TRIES):
            with suppress(PortTaken, NoConnection):
                return RedisServer(
                    folder, port=free_port(BUS), program=self._program, **cluster | settings
                )
        raise OSError("no port is free")


def _name(node: RedisServer) -> str:
    reply = node.ask("CLUSTER", "MYID")
    assert isinstance(reply, bytes)
    return reply.decode()
