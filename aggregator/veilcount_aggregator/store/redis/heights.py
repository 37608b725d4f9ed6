"""The heights of the shards, compared with what this host has acknowledged (`acknowledged`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ...errors import StoreError, StoreUnavailable, StoreWentBack
from ..acknowledged import FIX, AcknowledgedHeight, AcknowledgedHeights, ShardHeight
from .connections import Wait, pairs
from .identity import RECORDS_BASE, StoreIdentity
from .shard_client import Command, ShardClient

KEY = b":height"
ENDED = "ended:"


class Raised(NamedTuple):
    """The reply to a call that raises the height."""

    height: int
    life: bytes
    result: Any


class RedisHeights:
    """Compares the shards of one store with what this host has acknowledged. For any thread."""

    def __init__(
        self, servers: ShardClient, identity: StoreIdentity, acknowledged: AcknowledgedHeights
    ) -> None:
        self._servers = servers
        self._store = identity.store.decode()
        self._acknowledged = acknowledged
        self._places = {base: at for at, base in enumerate((RECORDS_BASE, *identity.bases))}
        self._losses: dict[bytes, str] = {}
        self._accepted: dict[bytes, int] = {}
        servers.heights = self

    def compare(self, bases: Sequence[bytes]) -> None:
        """Compare some shards; let this process write to those that lack nothing."""
        self._compare(bases, Wait.COMMIT)

    def refusal(self, base: bytes) -> StoreError | None:
        """Return why nothing is written to a shard; None: it lacks nothing, as far as is known."""
        loss = self._losses.get(base)
        return StoreWentBack(f"{self._name(base)}: {loss}. {FIX}") if loss else None

    def look(self) -> None:
        """Compare every shard that answers."""
        self._compare(list(self._places), Wait.PROBE)
        self._acknowledged.sync()

    def keep(self, base: bytes, raised: Raised) -> None:
        """Keep the height of something that is about to be acknowledged."""
        accepted = self._accepted.get(base, 0)
        height = ShardHeight(self._store, raised.life.decode(), raised.height, accepted)
        self._acknowledged.keep(self._places[base], height)

    def losses(self) -> list[str]:
        """Return what each shard lacks that lacks anything."""
        return [f"{self._name(base)}: {loss}" for base, loss in sorted(self._losses.items())]

    def _compare(self, bases: Sequence[bytes], wait: Wait) -> None:
        # What was acknowledged first: the shards have not gone down since.
        last = [self._acknowledged.read(self._places[base]) for base in bases]
        commands = [Command(base, ("HGETALL", base + KEY)) for base in bases]
        answers = self._servers.execute_each(commands, wait)
        for base, height, answer in zip(bases, last, answers, strict=True):
            if not isinstance(answer, StoreError):
                self._learn(base, height, parse_height(self._store, answer))

    def _learn(self, base: bytes, last: AcknowledgedHeight | None, height: ShardHeight) -> None:
        if loss := height.loss(last):
            self._losses[base] = loss
            self._servers.lives.pop(base, None)
            return
        self._losses.pop(base, None)
        if height.life:
            self._acknowledged.keep(self._places[base], height)
            self._accepted[base] = height.accepted
            self._servers.lives[base] = height.life.encode()

    def _name(self, base: bytes) -> str:
        try:
            server = f", Redis at {self._servers.owner(base)}"
        except StoreUnavailable:
            server = ""
        place = self._places[base]
        return f"{f'shard {place - 1}' if place else 'records'}{server}"


def parse_height(store: str, answer: Sequence[bytes]) -> ShardHeight:
    """Parse what a shard keeps of its height."""
    fields = {name.decode(): value for name, value in pairs(answer).items()}
    ended = {
        name.removeprefix(ENDED): int(value)
        for name, value in fields.items()
        if name.startswith(ENDED)
    }
    return ShardHeight(
        store,
        fields.get("life", b"").decode(),
        int(fields.get("height", 0)),
        int(fields.get("accepted", 0)),
        ended,
    )
