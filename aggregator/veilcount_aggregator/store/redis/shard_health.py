"""The health of each shard: whether it answers, is complete, durable, writable, and how full it is.

A shard that does not answer, was emptied, or stands on a server that forgets takes no reports; the
others do. A probe's time-out applies here, and opens no breaker.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from redis.exceptions import ResponseError

from ...errors import StoreError, StoreFull, StoreUnavailable, StoreUnfit, StoreWentBack
from ..health import ShardHealth, StoreHealth
from .connections import Host, RedisNode, Wait, execute_each, parse_info, require_all
from .durability import DurabilityMonitor
from .heights import RedisHeights
from .identity import RECORDS_BASE, StoreIdentity
from .read_only import KEY
from .shard_client import Command, ShardClient

RECORDS = "records"
GONE = "a part of the store is gone: it was emptied or replaced"

PROBE_SECONDS = 5.0
PROBE_KEY = b":probe"
FULL = "no memory left: raise maxmemory, or free some"

AOF_STATUS = ("aof_last_write_status", "aof_last_bgrewrite_status")

Info = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ShardState:
    """The state of one shard."""

    name: str
    server: RedisNode | None  # None: no server is known to have its slot
    error: StoreError | None
    read_only: bool = False
    info: Info | None = None

    def health(self) -> ShardHealth:
        """Return its health, for operators."""
        state = self.server.breaker.state if self.server else "unknown"
        health = ShardHealth(self.name, self.error is None, state, str(self.error or ""))
        if self.info is None:
            return health
        return replace(
            health,
            memory_bytes=int(self.info.get("used_memory", 0)),
            memory_limit_bytes=int(self.info.get("maxmemory", 0)),
            aof_failing=any(self.info.get(name, "ok") != "ok" for name in AOF_STATUS),
            aof_delayed_fsyncs=int(self.info.get("aof_delayed_fsync", 0)),
            went_back=isinstance(self.error, StoreWentBack),
            aof_rewriting=self.info.get("aof_rewrite_in_progress", "0") != "0",
        )


class RedisHealth:
    """The health of one store: of each shard, and as a whole."""

    def __init__(
        self,
        servers: ShardClient,
        identity: StoreIdentity,
        monitor: DurabilityMonitor,
        heights: RedisHeights,
    ) -> None:
        self._servers = servers
        self._identity = identity
        self._monitor = monitor
        self._heights = heights

    def shards(self) -> list[ShardState]:
        """Return how the records and each shard are."""
        bases = {RECORDS: RECORDS_BASE} | {
            str(shard): base for shard, base in enumerate(self._identity.bases)
        }
        commands = [Command(base, ("MGET", base, base + KEY)) for base in bases.values()]
        answers = self._servers.execute_each(commands, Wait.PROBE)
        states = [self._shard(*shard) for shard in zip(bases.items(), answers, strict=True)]
        up = {
            seen.server.host: seen.server
            for seen in states
            if seen.server and not isinstance(seen.error, StoreUnavailable)
        }
        info = _info(list(up.values()))
        return [
            replace(seen, info=info.get(seen.server.host)) if seen.server else seen
            for seen in states
        ]

    def store(self) -> StoreHealth:
        """Return how the store is; raise where no shard takes reports, unless it is not durable."""
        records, *shards = self.shards()
        serving = [seen for seen in shards if seen.error is None]
        durability = self._monitor.found
        if not serving and not durability.blocked:
            raise next(seen.error for seen in shards if seen.error is not None)
        why = durability.why
        if serving and len(serving) < len(shards):
            why = f"{len(serving)} of {len(shards)} shards take reports; {why}"
        consulted = [records] if records.error is None else serving
        return StoreHealth(
            "redis-cluster" if self._servers.address.cluster else "redis",
            durability.durable,
            why,
            any(seen.read_only for seen in consulted),
            len(serving),
            len(shards),
            durability.weaknesses,
            durability.blocked,
        )

    def answering(self) -> tuple[bytes, ...]:
        """Return the bases of the shards that answer now; StoreUnavailable: none does."""
        commands = [Command(base, ("GET", base)) for base in self._identity.bases]
        answers = self._servers.execute_each(commands, Wait.PROBE)
        paired = zip(self._identity.bases, answers, strict=True)
        bases = tuple(base for base, answer in paired if answer == self._identity.store)
        if not bases:
            require_all(answers)
            raise StoreUnfit(GONE)
        return bases

    def _shard(
        self, place: tuple[str, bytes], answer: StoreError | Sequence[bytes | None]
    ) -> ShardState:
        """Return what is known of a shard by its answer, and of its server's settings."""
        name, base = place
        server: RedisNode | None
        try:
            server = self._servers.owner(base)
        except StoreUnavailable:
            server = None
        if isinstance(answer, StoreError):
            return ShardState(name, server, answer)
        if server is None:
            why = StoreUnavailable("no server has its slot at the moment")
            return ShardState(name, server, why)
        stored_base, mark = answer
        if stored_base != self._identity.store:
            return ShardState(name, server, StoreUnfit(GONE))
        weakness = self._monitor.blocking(server.host)
        error = StoreUnfit(str(weakness)) if weakness else self._heights.refusal(base)
        return ShardState(name, server, error, mark is not None)


def _info(servers: Sequence[RedisNode]) -> Mapping[Host, Info]:
    """Return each server's INFO on its memory and its append-only file, where it answers."""
    sections = ("memory", "persistence")
    requests = [(server, ("INFO", section)) for server in servers for section in sections]
    info_by_host: dict[Host, dict[str, str]] = {}
    for (server, _), answer in zip(requests, execute_each(requests, Wait.PROBE), strict=True):
        if isinstance(answer, bytes):
            info_by_host.setdefault(server.host, {}).update(parse_info(answer))
    return info_by_host


class WriteProbe:
    """Writes one small key of each shard, once in some seconds, whoever asks."""

    def __init__(
        self,
        servers: ShardClient,
        identity: StoreIdentity,
        seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        self._servers = servers
        self._identity = identity
        self._seconds = seconds
        self._lock = threading.Lock()
        self._due = seconds()
        self._trouble = ""

    def trouble(self) -> str:
        """Return why no shard can be written, or "", as of the last write."""
        with self._lock:
            if self._seconds() >= self._due:
                self._trouble = self._write()
                self._due = self._seconds() + PROBE_SECONDS
            return self._trouble

    def _write(self) -> str:
        """Return why no shard that answers takes writes; "": one does, or none answers at all."""
        commands = [Command(base, ("SET", base + PROBE_KEY, "1")) for base in self._identity.bases]
        answers = self._servers.execute_each(commands, Wait.PROBE)
        if not all(isinstance(answer, StoreError) for answer in answers):
            return ""
        troubles = (_trouble(answer) for answer in answers)
        return next((trouble for trouble in troubles if trouble), "")


def _trouble(error: StoreError) -> str:
    """Return what a refused write means; "" where the server did not answer."""
    if isinstance(error, StoreFull):
        return FULL
    return f"a write failed: {_name(error)}" if isinstance(error.__cause__, ResponseError) else ""


def _name(error: StoreError) -> str:
    """Return the first word of Redis's answer, or the cause's class: never an address."""
    cause = error.__cause__ or error
    word = str(cause).partition(" ")[0]
    return word if word.isalpha() and word.isupper() else type(cause).__name__
