"""Read-only mode: of the whole store until it is lifted, and of one shard for a short time.

A backup makes one shard read-only, so that its rows and counters are read as of one moment. That
lock ends by itself: a process that dies blocks nobody for longer than `HELD_MILLISECONDS`. It is
held under a token, renewed while the shard is read, and found to be lost if it ran out or somebody
else's took its place: then what was read is thrown away.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from ...errors import StoreReadOnly, StoreUnavailable
from .connections import Words
from .identity import RECORDS_BASE
from .shard_client import Command, ShardClient

HELD_MILLISECONDS = 10_000
RENEW_SECONDS = 2.0
KEY = b":read_only"

#: only its holder renews or lifts a lock: `store copy` may have made the store read-only meanwhile
_RENEW = "return redis.call('GET', KEYS[1]) == ARGV[1] and redis.call('PEXPIRE', KEYS[1], ARGV[2])"
_LIFT = "return redis.call('GET', KEYS[1]) == ARGV[1] and redis.call('DEL', KEYS[1])"

Item = TypeVar("Item")


def is_read_only(servers: ShardClient) -> bool:
    """Whether the store is closed for changes."""
    return bool(servers.execute_one(Command(RECORDS_BASE, ("EXISTS", RECORDS_BASE + KEY))))


class ShardReadOnlyLock:
    """The read-only mode of one shard, held by one process for a short time."""

    def __init__(self, servers: ShardClient, base: bytes) -> None:
        self._servers = servers
        self._base = base
        self._token = secrets.token_hex(16)
        self._renewed = 0.0

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold it; raise at the end if it was lost meanwhile."""
        words = ("SET", self._base + KEY, self._token, "NX", "PX", HELD_MILLISECONDS)
        if self._servers.execute_one(Command(self._base, words)) is None:
            raise StoreReadOnly(
                "a shard is read-only already, for a copy or another backup: wait for it"
            )
        self._renewed = time.monotonic()
        try:
            yield
            self._renew()
        finally:
            self._eval(_LIFT)

    def renewing(self, items: Iterable[Item]) -> Iterator[Item]:
        """Return items, and renew the lock between them."""
        for item in items:
            if time.monotonic() - self._renewed > RENEW_SECONDS:
                self._renew()
            yield item

    def _renew(self) -> None:
        if not self._eval(_RENEW, HELD_MILLISECONDS):
            raise StoreUnavailable(
                "a shard did not stay read-only while it was read: run the backup again"
            )
        self._renewed = time.monotonic()

    def _eval(self, script: str, *arguments: int) -> bool:
        words: Words = ("EVAL", script, 1, self._base + KEY, self._token, *arguments)
        return bool(self._servers.execute_one(Command(self._base, words)))
