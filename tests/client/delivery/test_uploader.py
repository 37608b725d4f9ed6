"""The uploader when it is late, when nothing replies, when the server is full."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import Mock, patch

import pytest

from veilcount_client.delivery import worker
from veilcount_client.delivery.delivery_pool import MOST_THREADS
from veilcount_client.delivery.transport import Delivered, Later, Outcome
from veilcount_client.delivery.uploader import LEASE, OVERDUE, Uploader
from veilcount_client.state.losses import Loss
from veilcount_client.state.sqlite import SqliteState
from veilcount_shared.problem_details import UNKNOWN_VERSION
from veilcount_shared.verdict import UNKNOWN_VERDICT, Verdict

from ..device_fixtures import DAY, Device, Wire, at, clock_at, one_collection, pass_time, set_clock

MANY: dict[str, object] = {"unit": "event", "per_day": 200, "linkage": "none"}


def home(place: Path, **keys: object) -> Device:
    clock = clock_at(at(0, 9))
    return Device(place, one_collection("it", **keys), clock, Wire(clock))


LATE = 5.0  # seconds


@pytest.mark.parametrize("grace", [OVERDUE, 1.0])
def test_a_thread_that_is_always_late_delivers(tmp_path: Path, grace: float) -> None:
    """A busy app wakes it some seconds late: that is no reason to put everything off again.

    With a grace of one second, as once, most of it was put off for ever.
    """
    device = home(tmp_path, unit="event", per_day=20)
    device.worker.uploader.grace = grace
    for _ in range(20):
        device.client.record("it", True)
    device.work()
    while (due := device.due()) is not None and due < at(0, 12):
        set_clock(device.clock, max(due, device.clock.now()) + LATE)
        device.work()

    assert (len(device.wire.reports) == 20) == (grace > LATE)


def rounds_of_a_day(device: Device) -> int:
    """Return how often the thread of an app wakes in a day in which it records nothing."""
    rounds, ends = 0, device.clock.now() + DAY
    while (now := device.clock.now() + device.worker._pause()) < ends:
        set_clock(device.clock, now)
        device.worker.work()
        rounds += 1
    return rounds


@pytest.mark.parametrize("presence", ["public", "hidden"])
def test_an_idle_thread_sleeps_until_something_is_due(tmp_path: Path, presence: str) -> None:
    """Once an hour it looks for losses; then there are the instants of the questions."""
    device = home(tmp_path, presence=presence)
    device.client.record("it", True)
    device.work()

    assert 24 <= rounds_of_a_day(device) <= 29
    with patch.object(worker, "LONG", 60.0):  # as once
        assert rounds_of_a_day(device) > 1400


def hung(place: Path) -> Device:
    """Return a device with 200 reports for a server that accepts connections and never replies."""
    device = home(place, **MANY)
    device.worker.uploader.pool = Mock(is_busy=True)  # its threads wait for ever
    for _ in range(200):
        device.client.record("it", True)
    device.work()
    return device


def test_what_is_under_way_does_not_grow_while_nothing_replies(tmp_path: Path) -> None:
    """What cannot be sent soon is not leased; once, four bodies a report were under way."""
    device = hung(tmp_path)
    for _ in range(100):
        set_clock(device.clock, device.clock.now() + LEASE + 1)
        device.work()

    assert MOST_THREADS < len(device.worker.uploader.in_flight._bodies) <= 2 * MOST_THREADS
    assert len(device.worker.uploader.in_flight._bodies) < 200


def test_what_waited_for_a_thread_longer_than_its_lease_is_not_sent(tmp_path: Path) -> None:
    """Another process, or round, has it by then."""
    device = hung(tmp_path)
    set_clock(device.clock, device.clock.now() + DAY)
    device.work()
    set_clock(device.clock, device.clock.now() + LEASE)
    for body in list(device.worker.uploader.in_flight._bodies):
        device.worker.uploader._attempt(body)

    assert device.wire.attempts == []


def test_everything_is_returned_in_one_step(tmp_path: Path) -> None:
    """One transaction however much is under way: once, one a body, and close() took seconds."""
    device = hung(tmp_path)
    device.worker.uploader.run(hurry=True)
    with patch.object(device.worker.state, "reschedule") as reschedule:
        device.worker.let_go()

    [call] = reschedule.call_args_list
    assert len(call.args[0]) == 200


def test_a_reply_after_the_client_was_closed_opens_no_file(tmp_path: Path) -> None:
    """The report was given back, and is sent again: whoever opens the file next has it."""
    device = hung(tmp_path)
    device.worker.uploader.run(hurry=True)
    state, body = device.worker.state, device.worker.uploader.in_flight._bodies[0]

    def close(_: object) -> None:
        device.worker.let_go()
        state.close()

    device.wire.verdict = close
    device.worker.uploader._attempt(body)

    assert isinstance(state, SqliteState)
    assert state._connection is None
    assert len(device.wire.attempts) == 1
    assert state.waiting(device.clock.now() + DAY) == 200


@pytest.mark.parametrize(
    "outcome",
    [
        Delivered((Verdict.FULL,)),
        Delivered((UNKNOWN_VERDICT,)),
        Later(UNKNOWN_VERSION.name),
        Later("415"),
    ],
)
def test_what_is_not_taken_yet_is_kept_and_tried_again_a_few_times_a_week(
    tmp_path: Path, outcome: Outcome
) -> None:
    """An hour's limit ends with the hour; an app may be updated before its server is.

    For a day nothing is accepted: the report stays, and no attempt follows the other at once.
    """
    device = home(tmp_path, unit="week", late=21)
    device.wire.mood = lambda: outcome
    device.client.record("it", True)
    pass_time(device.clock, at(1, 9), device)
    refused = len(device.wire.attempts)
    device.wire.mood = lambda: None
    pass_time(device.clock, at(12, 9), device)

    assert 1 <= refused <= 6
    assert len(device.wire.counted) == 1
    assert device.worker.state.losses() == {}
    assert device.worker.uploader.refused == 0


@pytest.mark.parametrize("outcome", [Later("415"), Delivered((UNKNOWN_VERDICT,))])
def test_what_is_never_taken_is_kept_until_its_age_limit(tmp_path: Path, outcome: Outcome) -> None:
    device = home(tmp_path, late=7)
    device.wire.mood = lambda: outcome
    device.client.record("it", True)
    pass_time(device.clock, at(7, 23), device)
    kept = device.worker.state.losses()
    pass_time(device.clock, at(9), device)

    assert kept == {}
    assert device.losses() == {Loss.AGED: 1}


def test_a_bug_of_ours_is_named_and_loses_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The report whose delivery failed is sent once its lease has ended."""
    device = home(tmp_path)
    device.client.record("it", True)
    with patch.object(Uploader, "_deliver", side_effect=ZeroDivisionError):
        pass_time(device.clock, at(1, 9), device)
    assert device.wire.attempts == []
    pass_time(device.clock, at(3, 9), device)

    assert len(device.wire.counted) == 1
    assert "ZeroDivisionError in the uploader" in caplog.text
