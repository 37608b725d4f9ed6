"""The limit on what all counters of a shard may take: an operator's, or a share of `maxmemory`.

`maxmemory` may be changed while Redis runs, and a shard may move to another server: it is read
again every minute. A server that hides it sets no limit here; its own refuses writes when it is
reached. One that has not answered yet is read again within seconds: when it is back, a flood must
not find it without a limit.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ...errors import StoreError
from ..memory_limit import SHARE, UNLIMITED, series_cap, share
from .connections import Host, Wait, execute_each, parse_info
from .identity import StoreIdentity
from .shard_client import ShardClient

SECONDS = 60.0
UNKNOWN_SECONDS = 2.0  # while a server has not said yet what it has


class ShardLimits(NamedTuple):
    """Bytes that counters may take in one shard."""

    total: int
    series: int  # of each series, whatever its own limit is


class RedisMemoryLimits:
    """The limits of one store, as this process knows them."""

    def __init__(
        self,
        servers: ShardClient,
        identity: StoreIdentity,
        seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        self._servers = servers
        self._identity = identity
        self._seconds = seconds
        self._memory: dict[Host, int] = {}  # what each server reported last
        self._found: Sequence[int] = [UNLIMITED] * identity.shards
        self._until = float("-inf")

    def by_shard(self, operator_limit: int | None) -> Sequence[ShardLimits]:
        """Return each shard's limits: its share of an operator's, or of what its server has."""
        if operator_limit is not None:
            shards = self._identity.shards
            return [ShardLimits(share(operator_limit, shards), UNLIMITED)] * shards
        return [ShardLimits(each, series_cap(each)) for each in self._by_server()]

    def total(self) -> int | None:
        """Return the limit of the whole store that its servers set; None: one sets none."""
        found = self._by_server()
        return None if UNLIMITED in found else sum(found)

    def _by_server(self) -> Sequence[int]:
        if self._seconds() >= self._until:
            self._until = self._seconds() + SECONDS  # first, so that one thread alone asks
            self._found = self._ask()
        return self._found

    def _ask(self) -> Sequence[int]:
        try:
            owners = [self._servers.owner(base) for base in self._identity.bases]
        except StoreError:  # nobody has the slots at the moment
            self._until = self._seconds() + UNKNOWN_SECONDS
            return self._found
        shards = Counter(owner.host for owner in owners)
        by_host = {owner.host: owner for owner in owners}
        requests = [(owner, ("INFO", "memory")) for owner in by_host.values()]
        for host, answer in zip(by_host, execute_each(requests, Wait.PROBE), strict=True):
            if isinstance(answer, bytes):
                self._memory[host] = int(parse_info(answer).get("maxmemory", "0"))
        if not self._memory.keys() >= by_host.keys():
            self._until = self._seconds() + UNKNOWN_SECONDS
        limits = {
            host: int(SHARE * memory) // shards[host] if memory else UNLIMITED
            for host, memory in self._memory.items()
        }
        return [limits.get(owner.host, UNLIMITED) for owner in owners]
