"""A short fence around one shard, so that its rows and counters can be read as of one moment.

It is the store's own fence with an end: a process that dies leaves nobody fenced for longer than
`HELD_MILLISECONDS`. It is held under a token, renewed while the shard is read, and found to be
lost if it ran out or somebody else's fence took its place: then what was read is thrown away.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from ...errors import StoreReadOnly, StoreUnavailable
from .connections import Words
from .shard_client import Command, ShardClient

HELD_MILLISECONDS = 10_000
RENEW_SECONDS = 2.0

#: only whoever holds it renews or lifts it: a fence of `store copy` may have come meanwhile
_RENEW = "return redis.call('GET', KEYS[1]) == ARGV[1] and redis.call('PEXPIRE', KEYS[1], ARGV[2])"
_LIFT = "return redis.call('GET', KEYS[1]) == ARGV[1] and redis.call('DEL', KEYS[1])"

Item = TypeVar("Item")


class ShardReadOnlyLock:
    """The fence of one shard, held by one process for a short time."""

    def __init__(self, servers: ShardClient, base: bytes) -> None:
        """Name the shard."""
        self._servers = servers
        self._base = base
        self._key = base + b":fence"
        self._token = secrets.token_hex(16)
        self._renewed = 0.0

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold it; raise at the end if it was lost meanwhile."""
        words = ("SET", self._key, self._token, "NX", "PX", HELD_MILLISECONDS)
        if self._servers.execute_one(Command(self._base, words)) is None:
            raise StoreReadOnly(
                "a shard is fenced already, by a copy or another backup: wait for it"
            )
        self._renewed = time.monotonic()
        try:
            yield
            self._renew()
        finally:
            self._eval(_LIFT)

    def renewing(self, items: Iterable[Item]) -> Iterator[Item]:
        """Return items, and renew the fence between them."""
        for item in items:
            if time.monotonic() - self._renewed > RENEW_SECONDS:
                self._renew()
            yield item

    def _renew(self) -> None:
        if not self._eval(_RENEW, HELD_MILLISECONDS):
            raise StoreUnavailable(
                "a shard's fence was lost while it was read: the backup is given up; make it again"
            )
        self._renewed = time.monotonic()

    def _eval(self, script: str, *given: int) -> bool:
        words: Words = ("EVAL", script, 1, self._key, self._token, *given)
        return bool(self._servers.execute_one(Command(self._base, words)))
