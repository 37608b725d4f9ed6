"""The limit on what counters may need in Redis: a share of each server's `maxmemory`."""

from __future__ import annotations

from collections import Counter

from .connections import Wait, execute_all, parse_info
from .identity import StoreIdentity
from .shard_client import ShardClient

#: what counters may take of `maxmemory`; the rest is for rows and records
SHARE = 0.6


def counter_limit(servers: ShardClient, identity: StoreIdentity) -> int | None:
    """Return the bytes that the counters of all shards may need; None: no server sets a limit.

    Any device may report to any shard, so each shard is reckoned to have what the tightest has.
    """
    owners = [servers.owner(base) for base in identity.bases]
    shards = Counter(owner.host for owner in owners)
    nodes = {owner.host: owner for owner in owners}
    answers = execute_all([(node, ("INFO", "memory")) for node in nodes.values()], Wait.PROBE)
    maxmemory = {
        host: int(parse_info(answer).get("maxmemory", "0"))
        for host, answer in zip(nodes, answers, strict=True)
    }
    by_shard = [int(SHARE * size) // shards[host] for host, size in maxmemory.items() if size]
    return min(by_shard) * identity.shards if by_shard else None
