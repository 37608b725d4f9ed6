"""The intake's thread: what arrives meanwhile is the next group, bounded in size and in time."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any

import pytest

from veilcount_aggregator.errors import Overloaded, StoreUnavailable
from veilcount_aggregator.ingest.decode import RequestBody
from veilcount_aggregator.ingest.group_intake import (
    ANSWER_SECONDS,
    GROUP,
    MAX_GROUP_BYTES,
    GroupIntake,
    IntakeRequest,
)
from veilcount_aggregator.ingest.pipeline import Outcome
from veilcount_aggregator.ingest.service_counters import ServiceCounters
from veilcount_aggregator.store import ServiceCounter

PATIENCE = 60.0


class Desk:
    """A store that takes a group when the test lets it, and an intake in front of it."""

    def __init__(self, **limits: Any) -> None:
        self.groups: list[list[bytes]] = []
        self.begun, self.go = threading.Semaphore(0), threading.Semaphore(0)
        self.now = 0.0
        self.service_counters = ServiceCounters(lambda: 0.0)
        self.intake = GroupIntake(
            self.process, self.service_counters, seconds=lambda: self.now, **limits
        )

    def process(self, requests: Sequence[IntakeRequest]) -> list[Outcome]:
        """Answer each body with itself, so that mixed-up answers would show."""
        self.begun.release()
        assert self.go.acquire(timeout=PATIENCE)
        self.groups.append([request.body.raw for request in requests])
        return [ValueError(request.body.raw) for request in requests]

    def submit(self, raw: bytes) -> Future[Outcome]:
        pending: Future[Outcome] = Future()
        self.intake.submit(IntakeRequest(RequestBody("", "", raw), "", "", pending))
        return pending

    def hold_first(self) -> Future[Outcome]:
        """Submit a first request, and keep its group under way."""
        first = self.submit(b"first")
        assert self.begun.acquire(timeout=PATIENCE)
        return first

    def let_go(self, *pending: Future[Outcome]) -> list[bytes]:
        """Take all groups, and return what each request was answered."""
        for _ in pending:
            self.go.release()
        return [each.result(PATIENCE).args[0] for each in pending]  # type: ignore[union-attr]


def test_what_arrives_meanwhile_is_the_next_group_and_each_gets_its_own_answer() -> None:
    """No timer: a slow store gets few large groups. The sizes of groups are counted."""
    desk = Desk()
    first = desk.hold_first()
    bodies = [b"%d" % number for number in range(8)]
    others = [desk.submit(raw) for raw in bodies]
    assert desk.intake.waiting == 8

    assert desk.let_go(first, *others) == [b"first", *bodies]
    assert desk.groups == [[b"first"], bodies]
    assert desk.intake.waiting == 0
    assert desk.service_counters.take(now=True) == {
        ServiceCounter(GROUP, "", -1, "1"): 1,
        ServiceCounter(GROUP, "", -1, "8"): 1,
    }


def test_an_intake_that_has_slept_takes_the_next_request() -> None:
    desk = Desk()
    for number in range(20):
        assert desk.let_go(desk.submit(b"%d" % number)) == [b"%d" % number]


def test_a_group_has_a_largest_size_and_none_is_left_out() -> None:
    desk, large = Desk(), bytes(MAX_GROUP_BYTES // 2)
    answered = desk.let_go(desk.hold_first(), *(desk.submit(large) for _ in range(5)))

    assert answered == [b"first", *[large] * 5]
    assert [len(group) for group in desk.groups] == [1, 3, 2]


def test_what_waits_is_bounded() -> None:
    """A request beyond it gets Retry-After; an empty queue accepts any request."""
    desk = Desk(most_waiting=10)
    first, fits = desk.hold_first(), desk.submit(b"12345")

    with pytest.raises(Overloaded) as caught:
        desk.submit(b"1")
    assert caught.value.seconds > 0
    assert desk.let_go(first, fits) == [b"first", b"12345"]
    assert desk.let_go(desk.submit(bytes(50))) == [bytes(50)]


def test_a_store_that_hangs_is_waited_for_by_nobody_new() -> None:
    """And again by everybody as soon as it answers."""
    desk = Desk()
    first = desk.hold_first()
    desk.now = ANSWER_SECONDS + 1

    with pytest.raises(StoreUnavailable, match="has waited"):
        desk.submit(b"late")
    assert desk.let_go(first) == [b"first"]
    while desk.intake._begun is not None:
        time.sleep(0.001)
    assert desk.let_go(desk.submit(b"next")) == [b"next"]


def test_an_outcome_that_comes_too_late_is_dropped() -> None:
    """The request was answered already; the others of its group get theirs."""
    desk = Desk()
    first = desk.hold_first()
    late, other = desk.submit(b"late"), desk.submit(b"other")
    late.cancel()

    assert desk.let_go(first, other) == [b"first", b"other"]
    assert late.cancelled()
