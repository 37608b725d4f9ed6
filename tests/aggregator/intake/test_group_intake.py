"""The intake's thread: what arrives meanwhile is the next group, bounded in size and in time."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future, InvalidStateError
from typing import Any

import pytest

from veilcount_aggregator.errors import StoreUnavailable
from veilcount_aggregator.intake.decode import RequestBody
from veilcount_aggregator.intake.group_intake import GROUP, GroupIntake, IntakeRequest
from veilcount_aggregator.intake.pipeline import IntakeFailed, Outcome
from veilcount_aggregator.records.service_counters import ServiceCounters
from veilcount_aggregator.store import ServiceCounter
from veilcount_serving import group_commit
from veilcount_serving.errors import Overloaded
from veilcount_serving.group_commit import ANSWER_SECONDS, MAX_GROUP_BYTES, MAX_GROUP_CONTENT

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


def test_an_intake_without_work_keeps_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_commit, "IDLE_SECONDS", 0)
    desk, before = Desk(), set(threading.enumerate())
    for number in range(20):
        assert desk.let_go(desk.submit(b"%d" % number)) == [b"%d" % number]

    for thread in set(threading.enumerate()) - before:
        thread.join(PATIENCE)
        assert not thread.is_alive()


def test_a_request_that_arrives_as_the_thread_is_about_to_end_is_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(group_commit, "IDLE_SECONDS", 0)
    desk = Desk()
    late: list[Future[Outcome]] = []
    wait = desk.intake._wait_for

    def wait_and_submit(requests: int, seconds: float) -> None:
        wait(requests, seconds)
        if desk.groups and not late:
            late.append(desk.submit(b"late"))

    desk.intake._wait_for = wait_and_submit  # type: ignore[method-assign]
    assert desk.let_go(desk.submit(b"first")) == [b"first"]
    assert desk.begun.acquire(timeout=PATIENCE)
    assert desk.begun.acquire(timeout=PATIENCE)
    assert desk.let_go(*late) == [b"late"]


@pytest.mark.parametrize(
    "large",
    [bytes(MAX_GROUP_BYTES // 2), b"x" * (MAX_GROUP_CONTENT // 2)],
    ids=["padding", "content"],
)
def test_a_group_has_a_largest_size_and_none_is_left_out(large: bytes) -> None:
    desk = Desk()
    answered = desk.let_go(desk.hold_first(), *(desk.submit(large) for _ in range(5)))

    assert answered == [b"first", *[large] * 5]
    assert [len(group) for group in desk.groups] == [1, 2, 2, 1]


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


def test_nothing_is_done_for_a_request_for_which_nobody_waits_any_more() -> None:
    """Else a queue that is longer than anyone waits would be worked on for nobody."""
    desk = Desk(most_waiting=14)
    first = desk.hold_first()
    late, other = desk.submit(b"late"), desk.submit(b"other")
    late.cancel()

    assert desk.let_go(first, other) == [b"first", b"other"]
    assert desk.groups == [[b"first"], [b"other"]]
    assert desk.let_go(desk.submit(bytes(14))) == [bytes(14)]  # its bytes wait no longer


def test_an_intake_outlives_whatever_fails() -> None:
    def fails(requests: Sequence[IntakeRequest]) -> list[Outcome]:
        raise ZeroDivisionError(len(requests))

    intake = GroupIntake(fails, ServiceCounters(lambda: 0.0))
    for _ in range(2):
        pending: Future[Outcome] = Future()
        intake.submit(IntakeRequest(RequestBody("", "", b""), "", "", pending))
        outcome = pending.result(PATIENCE)

        assert isinstance(outcome, IntakeFailed)
        assert isinstance(outcome.error, ZeroDivisionError)


def test_a_thread_that_gives_up_as_its_outcome_comes_harms_nobody() -> None:
    class GivesUp(Future[Outcome]):
        def set_result(self, outcome: Outcome) -> None:
            raise InvalidStateError(outcome)

    IntakeRequest(RequestBody("", "", b""), "", "", GivesUp()).settle(ValueError())
