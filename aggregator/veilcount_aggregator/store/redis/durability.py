"""Monitor of the settings on which durability rests, at the masters and at their replicas.

It runs at the start, each second in each worker's ticker, and after a commit that finds something
wrong. While a weakness blocks at a server, nothing is written to it and nothing acknowledged; other
servers go on, and the first request after the weakness is gone finds that out by itself.

An append-only file is complete only when the rewrite that began it has ended, although Redis
answers `appendonly yes` at once; a crash before that takes everything. Such a rewrite runs after
the file was turned on, and in a server that was synchronized by another: a replica, also one that
was promoted since. So a rewrite is waited for that runs when a server is first seen, or first seen
with another identity, or after a setting was changed. A rewrite of any other origin is not. Every
acknowledgement names the identity that its server has then (`durable_writes`).

A replica confirms a write by its word as soon as it has it in memory, also in such a rewrite. So
replicas are examined likewise, again after each synchronization, and those that are not complete
are not counted.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from ...errors import StoreUnfit
from ..health import Durability, DurabilityState, Weakness
from .config_check import (
    IS_DURABLE,
    NodeConfig,
    ServerIdentity,
    hidden_settings_hint,
    read_configs,
    weak_settings,
)
from .connections import Host, RedisNode
from .shard_client import ShardClient

AGAIN_SECONDS = 0.5  # between two looks for requests that are refused
MOST_REPLICAS_AT_ONCE = 64
REPLICA_SECONDS = 10.0  # between two looks at replicas: one that is away costs a timeout
VOUCHED = "durable=managed: not examined, its operator vouches for the service"
INCOMPLETE_REPLICA = (
    "a replica's append-only file is not complete, or cannot be examined: once it is promoted, a"
    " restart takes reports"
)
SEE_REPLICA = (
    "No report is acknowledged until its rewrite has ended, by itself; this host must be able to"
    " reach the address that the master's INFO replication has of it"
)
NEXT_REWRITE = "no report is acknowledged until that rewrite has ended, by itself"


class AppendOnlyFile(NamedTuple):
    """Whether a server's append-only file is complete, as of the last look."""

    whole: bool
    changes: str
    server: ServerIdentity


class DurabilityMonitor:
    """Whether what these servers acknowledge is durable. For any thread."""

    def __init__(self, servers: ShardClient, seconds: Callable[[], float] = time.monotonic) -> None:
        self.found = Durability(DurabilityState.UNKNOWN, "not examined yet")
        self.settings_are_seen = False
        self.identities_are_seen = False
        self.has_waitaof = False
        self._servers = servers
        self._seconds = seconds
        self._lock = threading.Lock()
        self._looked = seconds()
        self._suspected = False
        self._files: dict[Host, AppendOnlyFile] = {}
        self._identities: dict[Host, ServerIdentity] = {}
        self._replicas: dict[Host, RedisNode] = {}
        self._complete_replicas: dict[Host, ServerIdentity] = {}  # by their master's, as of then
        self._incomplete: dict[Host, int] = {}  # replicas of each master
        self._replicas_looked = -REPLICA_SECONDS
        self._of_replicas: dict[Host, tuple[Weakness, ...]] = {}
        self._blocking: dict[Host, Weakness] = {}

    def start(self) -> None:
        """Examine the servers that answer; refuse those whose settings are wrong."""
        with self._lock:
            self._judge(read_configs(self._servers.reachable()))
        for weakness in self.found.weaknesses:
            if weakness.blocks and not weakness.passing:
                raise StoreUnfit(str(weakness))

    def look(self) -> Durability:
        """Examine the servers that answer; return what is known of all."""
        with self._lock:
            self._look()
            return self.found

    def suspect(self) -> None:
        """Have the next request look first: a commit found something wrong."""
        self._suspected = True

    def is_examined(self, host: Host, identity: ServerIdentity) -> bool:
        """Whether the server that answered a write is the one that was found to be fit.

        A server that has another identity by now is examined at once: what it had written before is
        durable if it is fit then, and each of its replicas.
        """
        if self._identities.get(host) == identity:
            return host not in self._blocking
        if not self._lock.acquire(blocking=False):
            return False
        try:
            self._look()
        finally:
            self._lock.release()
        is_fit = host not in self._blocking and not self.incomplete_replicas(host)
        return is_fit and self._identities.get(host) == identity

    def incomplete_replicas(self, host: Host) -> int:
        """Return how many replicas of a master confirm what a kill would take."""
        return self._incomplete.get(host, 0)

    def blocking(self, host: Host) -> Weakness | None:
        """Return why nothing is acknowledged at a server."""
        return self._blocking.get(host)

    @property
    def doubts(self) -> bool:
        """Whether any server may be unfit: if not, nobody needs to be admitted."""
        return self._suspected or bool(self._blocking)

    def admit(self, hosts: Collection[Host]) -> None:
        """Refuse what would be written to one of these and not be durable there."""
        if self._lock.acquire(blocking=False):  # one looks, the others are refused meanwhile
            try:
                if self._suspected or self._seconds() - self._looked >= AGAIN_SECONDS:
                    self._look()
            finally:
                self._lock.release()
        for host, weakness in self._blocking.items():
            if host in hosts:
                raise StoreUnfit(str(weakness))

    # -- inside, with the lock held ------------------------------------------------------------

    def _look(self) -> None:
        nodes = read_configs(self._servers.all())  # one that is away acknowledges nothing now
        if nodes:
            self._judge(nodes)

    def _judge(self, nodes: list[NodeConfig]) -> None:
        address = self._servers.address
        self._looked, self._suspected = self._seconds(), False
        self.settings_are_seen = all(node.settings is not None for node in nodes)
        self.identities_are_seen = all(node.identity.run for node in nodes)
        self.has_waitaof = address.durable and all(node.has_waitaof for node in nodes)
        self._look_at_replicas(nodes)
        self._count_incomplete(nodes)
        findings = [
            (node.server.host, weakness) for node in nodes for weakness in self._weaknesses(node)
        ]
        blocking: dict[Host, Weakness] = {}
        for host, finding in findings:
            if finding.blocks:
                blocking.setdefault(host, finding)
        self._blocking = blocking
        self._identities |= {node.server.host: node.identity for node in nodes}
        durable, why = self._state(nodes)
        weaknesses = tuple(weakness for _, weakness in findings)
        self.found = Durability(durable, why, weaknesses, len(blocking) == len(nodes))

    def _state(self, nodes: list[NodeConfig]) -> tuple[DurabilityState, str]:
        address = self._servers.address
        for weakness in self._blocking.values():
            return DurabilityState.NO, weakness.what
        if address.managed:
            return DurabilityState.MANAGED, VOUCHED
        if not address.durable:
            return DurabilityState.NO, "durability=relaxed: whatever Redis is set to"
        if why := hidden_settings_hint(nodes):
            return DurabilityState.UNKNOWN, why
        replicas = f", {address.replicas} replicas confirm" if address.replicas else ""
        return DurabilityState.YES, IS_DURABLE + replicas

    def _weaknesses(self, node: NodeConfig) -> Iterator[Weakness]:
        address = self._servers.address
        if node.settings is not None:
            yield from weak_settings(node.server, node.settings, durable=address.durable)
        if address.durable and not self._is_whole(node):
            what = "appendonly was turned on, and its file is not complete: a restart takes reports"
            yield Weakness(what, f"Redis at {node.server}", NEXT_REWRITE, passing=True)
        if len(node.replicas) < address.replicas:
            what = f"{len(node.replicas)} of {address.replicas} replicas are connected to a master"
            fix = f"Start them, or lower replicas={address.replicas} in the store's URL"
            yield Weakness(what, f"Redis at {node.server}", fix, passing=True)
        elif len(node.replicas) - self.incomplete_replicas(node.server.host) < address.replicas:
            yield Weakness(INCOMPLETE_REPLICA, f"Redis at {node.server}", SEE_REPLICA, passing=True)
        for host in node.replicas:
            yield from self._of_replicas.get(host, ())

    def _is_whole(self, node: NodeConfig) -> bool:
        last = self._files.get(node.server.host)
        is_same_server = last is not None and last.server[:2] == node.identity[:2]
        whole = not node.rewriting or (
            is_same_server and last is not None and last.whole and last.changes == node.changes
        )
        self._files[node.server.host] = AppendOnlyFile(whole, node.changes, node.identity)
        return whole

    def _count_incomplete(self, nodes: list[NodeConfig]) -> None:
        """Count each master's replicas that would lose what they confirm."""
        if not (self._servers.address.replicas and self._servers.address.durable):
            return
        doubted = [
            (node, host)
            for node in nodes
            for host in node.replicas
            if self._complete_replicas.get(host) != node.identity
        ]
        self._incomplete = {}
        if doubted:
            with ThreadPoolExecutor(MOST_REPLICAS_AT_ONCE) as pool:
                complete = pool.map(lambda pair: self._is_replica_complete(*pair), doubted)
                masters = zip(doubted, complete, strict=True)
                hosts = [
                    master.server.host for (master, _), is_complete in masters if not is_complete
                ]
            self._incomplete = {host: hosts.count(host) for host in hosts}

    def _is_replica_complete(self, master: NodeConfig, host: Host) -> bool:
        """Whether a replica's file has all that the master sends; it has until the next copy."""
        server = self._replicas.setdefault(host, RedisNode.at(host, self._servers.address))
        replicas = read_configs([server])
        complete = any(
            replica.follows == master.identity.history and not replica.rewriting
            for replica in replicas
        )
        if complete:
            self._complete_replicas[host] = master.identity
        return complete or (self.has_waitaof and not replicas)  # it waits for the replica's disk

    def _look_at_replicas(self, nodes: list[NodeConfig]) -> None:
        if self._seconds() - self._replicas_looked < REPLICA_SECONDS:
            return
        hosts = [host for node in nodes for host in node.replicas]
        for host in self._replicas.keys() - set(hosts):
            self._replicas.pop(host).disconnect(idle=False)
        if hosts:
            # Side by side: health waits for this, and replicas that hang would add up.
            with ThreadPoolExecutor(MOST_REPLICAS_AT_ONCE) as pool:
                weaknesses_by_host = pool.map(
                    lambda host: tuple(self._replica_weaknesses(host)), hosts
                )
                self._of_replicas = dict(zip(hosts, weaknesses_by_host, strict=True))
        else:
            self._of_replicas = {}
        self._replicas_looked = self._seconds()

    def _replica_weaknesses(self, host: Host) -> Iterator[Weakness]:
        """Yield what is wrong with a replica. Where its word is waited for, it has to be good."""
        address = self._servers.address
        server = self._replicas.setdefault(host, RedisNode.at(host, address))
        for node in read_configs([server]):  # none: not to be reached from here, or by this user
            if node.settings is None:
                return
            for weak_setting in weak_settings(server, node.settings, durable=address.durable):
                yield Weakness(
                    f"a replica has {weak_setting.what} once it is promoted",
                    weak_setting.where,
                    weak_setting.fix,
                    blocks=address.replicas > 0,
                )
