"""How each shard of a store is: whether it answers, is whole, fit to keep reports, and how full.

A shard that does not answer, was emptied, or stands on a server that forgets takes no reports; the
others do. A probe's time-out applies here, and opens no breaker.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ...errors import StoreError, StoreUnavailable, StoreUnfit
from ..interface import ShardHealth, StoreHealth
from .connections import Host, RedisNode, Wait, execute_each
from .durability import DurabilityMonitor
from .identity import RECORDS_BASE, StoreIdentity
from .shard_client import Command, ShardClient

RECORDS = "records"
GONE = "a part of the store is gone: it was emptied or replaced"

AOF_STATUS = ("aof_last_write_status", "aof_last_bgrewrite_status")

Info = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ShardState:
    """One shard as it was found."""

    name: str
    server: RedisNode | None  # None: no server is known to have its slot
    error: StoreError | None
    fenced: bool = False
    info: Info | None = None

    def shard(self) -> ShardHealth:
        """Return what an operator wants to know of it."""
        state = self.server.breaker.state if self.server else "unknown"
        why = str(self.error or "")
        if self.info is None:
            return ShardHealth(self.name, self.error is None, state, why)
        return ShardHealth(
            self.name,
            self.error is None,
            state,
            why,
            memory_bytes=int(self.info.get("used_memory", 0)),
            memory_limit_bytes=int(self.info.get("maxmemory", 0)),
            aof_failing=any(self.info.get(name, "ok") != "ok" for name in AOF_STATUS),
            aof_delayed_fsyncs=int(self.info.get("aof_delayed_fsync", 0)),
            aof_rewriting=self.info.get("aof_rewrite_in_progress", "0") != "0",
        )


def read_shard_states(
    servers: ShardClient, root: StoreIdentity, monitor: DurabilityMonitor
) -> list[ShardState]:
    """Return how the records and each shard are."""
    bases = {RECORDS: RECORDS_BASE} | {str(shard): base for shard, base in enumerate(root.bases)}
    asked = [Command(base, ("MGET", base, base + b":fence")) for base in bases.values()]
    answers = servers.execute_each(asked, Wait.PROBE)
    owners = {name: _owner(servers, base) for name, base in bases.items()}
    found = [
        _found(name, owners[name], answer, root.store, monitor)
        for name, answer in zip(bases, answers, strict=True)
    ]
    up = {seen.server.host: seen.server for seen in found if seen.server and _answered(seen.error)}
    info = _info(list(up.values()))
    return [
        replace(seen, info=info.get(seen.server.host)) if seen.server else seen for seen in found
    ]


def store_health(
    servers: ShardClient, root: StoreIdentity, monitor: DurabilityMonitor
) -> StoreHealth:
    """Return how the store is; raise where no shard takes reports, unless it is not durable."""
    records, *shards = read_shard_states(servers, root, monitor)
    serving = [seen for seen in shards if seen.error is None]
    durability = monitor.found
    if not serving and not durability.blocked:
        raise next(seen.error for seen in shards if seen.error is not None)
    why = durability.why
    if serving and len(serving) < len(shards):
        why = f"{len(serving)} of {len(shards)} shards take reports; {why}"
    asked = [records] if records.error is None else serving
    return StoreHealth(
        "redis-cluster" if servers.address.cluster else "redis",
        durability.durable,
        why,
        any(seen.fenced for seen in asked),
        len(serving),
        len(shards),
        durability.weaknesses,
        durability.blocked,
    )


def answering(servers: ShardClient, root: StoreIdentity) -> tuple[bytes, ...]:
    """Return the bases of the shards that answer now; StoreUnavailable: none does."""
    answers = servers.execute_each(
        [Command(base, ("GET", base)) for base in root.bases], Wait.PROBE
    )
    found = tuple(
        base for base, answer in zip(root.bases, answers, strict=True) if answer == root.store
    )
    if not found:
        errors = [answer for answer in answers if isinstance(answer, StoreError)]
        raise errors[0] if errors else StoreUnfit(GONE)
    return found


def _found(
    name: str,
    server: RedisNode | None,
    answer: StoreError | Sequence[bytes | None],
    store: bytes,
    monitor: DurabilityMonitor,
) -> ShardState:
    """Return what is known of a shard by what it answered, and of its server's settings."""
    if isinstance(answer, StoreError):
        return ShardState(name, server, answer)
    if server is None:
        return ShardState(name, server, StoreUnavailable("no server has its slot at the moment"))
    kept, fence = answer
    if kept != store:
        return ShardState(name, server, StoreUnfit(GONE))
    weakness = monitor.blocking(server.host)
    error = StoreUnfit(str(weakness)) if weakness else None
    return ShardState(name, server, error, fence is not None)


def _answered(error: StoreError | None) -> bool:
    """Whether a shard's server answered, well or not."""
    return not isinstance(error, StoreUnavailable)


def _owner(servers: ShardClient, base: bytes) -> RedisNode | None:
    try:
        return servers.owner(base)
    except StoreUnavailable:
        return None


def _info(servers: Sequence[RedisNode]) -> Mapping[Host, Info]:
    """Return what each server says of its memory and its append-only file, where it says so."""
    sections = ("memory", "persistence")
    asked = [(server, ("INFO", section)) for server in servers for section in sections]
    found: dict[Host, dict[str, str]] = {}
    for (server, _), answer in zip(asked, execute_each(asked, Wait.PROBE), strict=True):
        if isinstance(answer, bytes):
            lines = (line.partition(":") for line in answer.decode().splitlines() if ":" in line)
            found.setdefault(server.host, {}).update({name: text for name, _, text in lines})
    return found
