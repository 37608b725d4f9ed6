"""Encapsulated requests wait in a bounded queue, and some are opened in each turn of the loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

import pytest

from veilcount_aggregator.server import opening_queue
from veilcount_aggregator.server.opening_queue import (
    LANE_BYTES,
    SMALL_BYTES,
    TURN_SECONDS,
    OpeningQueue,
    SealedRequest,
)
from veilcount_serving.errors import Overloaded
from veilcount_shared.wire import MAX_BODY

RELAY_CONNECTIONS = 2000  # that deploy/nginx.conf lets a relay have
DEVICE_BYTES = 7 + 32 + 1280 + 16  # of a body of one report, encapsulated
OPEN_SECONDS = TURN_SECONDS / 2.5


@dataclass
class Desk:
    """A queue whose turns the test takes, and a clock that each opening moves on."""

    opened: list[bytes] = field(default_factory=list)
    turns: list[Callable[[], None]] = field(default_factory=list)
    now: float = 0.0

    def __post_init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.queue = OpeningQueue(self.turns.append, lambda: self.now)

    def open(self, sealed: bytes) -> Any:
        self.opened.append(sealed)
        self.now += OPEN_SECONDS
        if sealed.startswith(b"garbage"):
            raise ValueError(sealed)
        return sealed

    def submit(self, sealed: bytes) -> asyncio.Future[Any]:
        pending = self.loop.create_future()
        self.queue.submit(SealedRequest(self.open, sealed, pending))
        return pending

    def take_turns(self) -> int:
        """Take turns until none is due; return how many there were."""
        number = 0
        while self.turns:
            self.turns.pop(0)()
            number += 1
        return number


@pytest.fixture
def desk() -> Any:
    made = Desk()
    yield made
    made.loop.close()


def accepts_devices_during_garbage(desk: Desk) -> bool:
    """Whether a device's request has a place while every connection of a relay sends garbage."""
    try:
        for _ in range(LANE_BYTES // MAX_BODY):
            desk.submit(b"garbage".ljust(MAX_BODY, b"."))
    except Overloaded:
        pytest.fail("the first large bodies have a place")
    with pytest.raises(Overloaded):
        desk.submit(b"garbage".ljust(MAX_BODY, b"."))
    try:
        for _ in range(RELAY_CONNECTIONS):
            desk.submit(b"garbage".ljust(SMALL_BYTES, b"."))
        desk.submit(b"device".ljust(DEVICE_BYTES, b"."))
    except Overloaded:
        return False
    return True


@pytest.mark.parametrize(
    ("planted", "accepts"),
    [
        (nullcontext(), True),
        (patch.object(opening_queue, "SMALL_BYTES", MAX_BODY), False),  # one lane for all
    ],
)
def test_garbage_on_every_connection_of_a_relay_leaves_places_to_devices(
    desk: Desk, planted: AbstractContextManager[object], *, accepts: bool
) -> None:
    with planted:
        assert accepts_devices_during_garbage(desk) is accepts


def test_a_full_lane_refuses_for_some_seconds_and_takes_more_once_it_is_opened(
    desk: Desk,
) -> None:
    waiting = [desk.submit(b"x" * SMALL_BYTES) for _ in range(LANE_BYTES // SMALL_BYTES)]
    with pytest.raises(Overloaded) as refused:
        desk.submit(b"x")
    desk.take_turns()

    assert refused.value.seconds > 0
    assert all(pending.done() for pending in waiting)
    assert not desk.submit(b"x").done()


def opened_in_a_turn(desk: Desk) -> int:
    for place in range(10):
        desk.submit(b"%d" % place)
    desk.turns.pop(0)()
    return len(desk.opened)


@pytest.mark.parametrize(
    ("planted", "most"),
    [(nullcontext(), 3), (patch.object(opening_queue, "TURN_SECONDS", 60.0), 10)],
)
def test_a_turn_opens_for_a_millisecond_and_leaves_the_rest_to_the_next(
    desk: Desk, planted: AbstractContextManager[object], most: int
) -> None:
    with planted:
        assert opened_in_a_turn(desk) == most
    assert desk.take_turns() == (10 - most + 2) // 3
    assert desk.opened == [b"%d" % place for place in range(10)]


def test_a_turn_opens_at_most_one_large_body_after_the_small_ones(desk: Desk) -> None:
    for name in (b"first", b"second"):
        desk.submit(name.ljust(MAX_BODY, b"."))
    desk.submit(b"small")
    desk.turns.pop(0)()

    assert [sealed.rstrip(b".") for sealed in desk.opened] == [b"small", b"first"]


def test_what_nobody_waits_for_any_more_is_not_opened(desk: Desk) -> None:
    desk.submit(b"gone").cancel()
    desk.take_turns()

    assert desk.opened == []
