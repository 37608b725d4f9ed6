"""Discovery of the slots of a cluster while some of its nodes hang or are down.

The node that is likely to answer is queried first, the next one as soon as that has failed or has
not answered for a moment, and the first answer wins. So a node that hangs costs a moment.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from queue import Empty, SimpleQueue
from typing import Any

from redis.crc import key_slot

from ...errors import StoreError, StoreUnavailable, StoreUnfit
from .circuit_breaker import BreakerState
from .connections import TIMEOUTS, Host, RedisNode, Wait

NEXT_SECONDS = 0.2  # after which another node is queried too
LONGEST_SECONDS = sum(TIMEOUTS[Wait.PROBE]) * 2 + NEXT_SECONDS  # until the last node has answered

Slots = list[tuple[tuple[int, int], Host]]


@dataclass(frozen=True, slots=True)
class Topology:
    """The owners of slots, as reported by one node."""

    slots: Sequence[tuple[int, int, RedisNode]] = ()

    def owner(self, base: bytes) -> RedisNode | None:
        """Return the server that has a base's keys, if any has."""
        slot = _slot_of(base)
        having = (server for first, last, server in self.slots if first <= slot <= last)
        return next(having, None)

    def servers(self) -> list[RedisNode]:
        """Return every server that has slots."""
        return list({server.host: server for _, _, server in self.slots}.values())


@cache  # of a few dozen base keys
def _slot_of(base: bytes) -> int:
    return key_slot(base)


def fetch_slots(candidates: Sequence[RedisNode]) -> tuple[RedisNode, Slots]:
    """Return the first answer that comes, and the node that gave it.

    StoreUnfit: none came, since a node is of no cluster or refuses us; StoreUnavailable: none came.
    """
    answers: SimpleQueue[tuple[RedisNode, Slots | StoreError]] = SimpleQueue()
    left, waiting = list(candidates), 0
    why = StoreError("none has slots")
    while left or waiting:
        if left:
            server = left.pop(0)
            threading.Thread(target=_ask, args=(server, answers), daemon=True).start()
            waiting += 1
        try:
            node, slots = answers.get(timeout=NEXT_SECONDS if left else LONGEST_SECONDS)
        except Empty:
            if not left:
                break
            continue
        waiting -= 1
        if isinstance(slots, StoreError):
            why = why if isinstance(why, StoreUnfit) else slots
        elif slots:
            return node, slots
    if isinstance(why, StoreUnfit):
        raise why
    raise StoreUnavailable(f"no server of the cluster answers: {why}")


def likely_first(servers: Sequence[RedisNode], last: RedisNode | None) -> list[RedisNode]:
    """Return servers in the order to ask them in: the last that answered, then those not away."""
    return sorted(
        servers,
        key=lambda server: (server.breaker.state != BreakerState.CLOSED, server is not last),
    )


def _ask(server: RedisNode, answers: SimpleQueue[tuple[RedisNode, Slots | StoreError]]) -> None:
    try:
        ranges = server.ask("CLUSTER", "SLOTS", wait=Wait.PROBE)
        answers.put((server, list(_ranges(server, ranges))))
    except StoreError as error:
        answers.put((server, error))


def _ranges(server: RedisNode, answer: Sequence[Any]) -> Iterator[tuple[tuple[int, int], Host]]:
    """Yield each range of slots and its host. A server without a name is the one that answered."""
    for first, last, master, *_ in answer:
        yield (first, last), ((master[0] or b"").decode() or server.host[0], master[1])
