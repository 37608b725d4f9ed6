"""The intake of an event loop: the loop gathers groups, a thread takes them, and may hang."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any

import pytest

from veilcount_aggregator.errors import StoreUnavailable
from veilcount_aggregator.intake.decode import RequestBody
from veilcount_aggregator.intake.group_intake import IntakeRequest, LoopIntake
from veilcount_aggregator.intake.pipeline import Outcome
from veilcount_aggregator.records.service_counters import ServiceCounters
from veilcount_serving.group_commit import ANSWER_SECONDS
from veilcount_serving.loop_groups import GATHER_SECONDS, SLEEP_SECONDS

PATIENCE = 60.0


class Desk:
    """A store that takes groups while it is open, and an intake in front of it."""

    def __init__(self) -> None:
        self.groups: list[list[bytes]] = []
        self.threads: set[str] = set()
        self.opened = threading.Event()
        self.now = 0.0
        counters = ServiceCounters(lambda: 0.0)
        self.intake = LoopIntake(self.process, counters, seconds=lambda: self.now)

    def process(self, requests: Sequence[IntakeRequest]) -> list[Outcome]:
        """Answer each body with itself, so that mixed-up answers would show."""
        assert self.opened.wait(PATIENCE)
        self.threads.add(threading.current_thread().name)
        self.groups.append([request.body.raw for request in requests])
        return [ValueError(request.body.raw) for request in requests]

    def submit(self, raw: bytes) -> asyncio.Future[Any]:
        pending = asyncio.get_running_loop().create_future()
        self.intake.submit(IntakeRequest(RequestBody("", "", raw), "", "", pending))
        return pending


@pytest.fixture
def sleeps(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The sleeps of the loop before a group."""
    slept: list[float] = []
    monkeypatch.setattr("veilcount_serving.loop_groups.time.sleep", slept.append)
    return slept


async def outcomes(waiting: Sequence[asyncio.Future[Any]]) -> list[bytes]:
    return [error.args[0] for error in await asyncio.wait_for(asyncio.gather(*waiting), PATIENCE)]


def test_what_arrives_in_one_turn_is_one_group_and_each_gets_its_own(sleeps: list[float]) -> None:
    desk = Desk()
    desk.opened.set()
    bodies = [b"%d" % number for number in range(9)]

    async def run() -> None:
        assert await outcomes([desk.submit(raw) for raw in bodies]) == bodies
        assert await outcomes([desk.submit(raw) for raw in bodies]) == bodies

    asyncio.run(run())

    assert desk.groups == [bodies, bodies]
    assert desk.threads == {"veilcount-intake"}
    assert sleeps == [GATHER_SECONDS]  # the first group had none before it


def test_a_lone_device_waits_for_nobody(sleeps: list[float]) -> None:
    desk = Desk()
    desk.opened.set()

    async def run() -> None:
        for number in range(5):
            assert await outcomes([desk.submit(b"%d" % number)]) == [b"%d" % number]

    asyncio.run(run())

    assert len(desk.groups) == 5
    assert sleeps == []


def test_a_store_that_hangs_stops_the_loop_for_a_moment_only() -> None:
    """The loop goes on; what arrives meanwhile is the next group; too late, it is refused."""
    desk = Desk()

    async def run() -> None:
        first = desk.submit(b"first")
        begun = asyncio.get_running_loop().time()
        turns = 0
        while asyncio.get_running_loop().time() < begun + 10 * SLEEP_SECONDS:
            await asyncio.sleep(0)
            turns += 1
        assert turns > 10
        others = [desk.submit(b"second"), desk.submit(b"third")]
        desk.now = ANSWER_SECONDS + 1
        with pytest.raises(StoreUnavailable):
            desk.submit(b"fourth")
        assert not first.done()
        desk.opened.set()
        assert await outcomes([first, *others]) == [b"first", b"second", b"third"]

    asyncio.run(run())

    assert desk.groups == [[b"first"], [b"second", b"third"]]


def test_nothing_is_written_for_whoever_waits_no_more() -> None:
    desk = Desk()

    async def run() -> None:
        first, second = desk.submit(b"first"), desk.submit(b"second")
        second.cancel()
        desk.opened.set()
        assert await outcomes([first]) == [b"first"]

    asyncio.run(run())

    assert desk.groups == [[b"first"]]


def test_a_future_of_a_thread_may_wait_too() -> None:
    """Whatever takes the outcome: the loop delivers it."""
    desk, pending = Desk(), Future[Outcome]()
    desk.opened.set()

    async def run() -> None:
        desk.intake.submit(IntakeRequest(RequestBody("", "", b"x"), "", "", pending))
        await outcomes([desk.submit(b"y")])

    asyncio.run(run())

    assert isinstance(pending.result(0), ValueError)
