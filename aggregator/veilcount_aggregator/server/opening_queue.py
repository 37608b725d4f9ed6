"""Encapsulated requests that wait to be opened, and the turns of the event loop that open some.

Whether a body opens shows only once it is opened, which costs the same either way: some 50
microseconds of computing. So what waits is bounded, and a turn opens for a millisecond at most;
between two turns the loop does all its other work, direct reports first of all.

A connection has one request here at a time, since HTTP/1.1 answers them in order: whoever sends
garbage needs a connection for each place. There are at least 2,048 places for bodies as devices
send them, more than the shipped proxy lets a relay have connections. Larger bodies wait apart, and
never take a place of theirs.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from veilcount_serving.errors import Overloaded
from veilcount_serving.group_commit import RETRY_SECONDS

from ..web.api.gateway import OpenedRequest

SMALL_BYTES = 4 << 10  # a device's body, encapsulated: multiples of 1,280 bytes and 55
LANE_BYTES = 8 << 20
TURN_SECONDS = 0.001

Open = Callable[[bytes], OpenedRequest]


@dataclass(frozen=True, slots=True, eq=False)
class SealedRequest:
    """A request that waits: what opens it, its bytes, and where it is delivered once it is open."""

    open: Open
    sealed: bytes
    pending: asyncio.Future[OpenedRequest]

    def settle(self) -> None:
        """Open it, unless nobody waits any more: a body that does not open is tried once."""
        if self.pending.done():
            return
        try:
            opened = self.open(self.sealed)
        except Exception as error:  # noqa: BLE001 - answered where the request waits
            self.pending.set_exception(error)
        else:
            self.pending.set_result(opened)


class Lane:
    """Requests of one size class, first come, first served, within a budget of bytes."""

    def __init__(self, most: int = LANE_BYTES) -> None:
        self._most = most
        self._bytes = 0
        self._requests: deque[SealedRequest] = deque()

    def __bool__(self) -> bool:
        return bool(self._requests)

    def append(self, request: SealedRequest) -> None:
        """Add a request; Overloaded: there is no room for it."""
        size = len(request.sealed)
        if self._bytes + size > self._most:
            why = f"{len(self._requests):,} encapsulated requests wait to be opened already"
            raise Overloaded(RETRY_SECONDS, why)
        self._bytes += size
        self._requests.append(request)

    def settle_next(self) -> None:
        """Open the request that has waited for the longest."""
        request = self._requests.popleft()
        self._bytes -= len(request.sealed)
        request.settle()


class OpeningQueue:
    """The encapsulated requests of one worker that wait to be opened."""

    def __init__(
        self,
        call_soon: Callable[[Callable[[], None]], object],
        seconds: Callable[[], float],
        lane_bytes: int = LANE_BYTES,
    ) -> None:
        """`call_soon` has the event loop call a function in its next round."""
        self._call_soon = call_soon
        self._seconds = seconds
        self._small, self._large = Lane(lane_bytes), Lane(lane_bytes)
        self._has_turn = False

    def submit(self, request: SealedRequest) -> None:
        """Have a request opened; Overloaded: too many of its size wait already."""
        lane = self._small if len(request.sealed) <= SMALL_BYTES else self._large
        lane.append(request)
        self._schedule()

    def _schedule(self) -> None:
        if not self._has_turn and (self._small or self._large):
            self._has_turn = True
            self._call_soon(self._take_turn)

    def _take_turn(self) -> None:
        """Open small requests until the time is up, and then one large one."""
        ends = self._seconds() + TURN_SECONDS
        while self._small:
            self._small.settle_next()
            if self._seconds() >= ends:
                break
        if self._large:
            self._large.settle_next()
        self._has_turn = False
        self._schedule()
