"""What both engines promise of the outbox: leases, times, settlement, age and limits."""

from __future__ import annotations

from dataclasses import replace

import pytest

from veilcount_client.state import KEPT, ClientState, DrawOutcome, OutboxLimits, ReportDraw
from veilcount_client.state.losses import Loss

from .conftest import Engine
from .state_fixtures import (
    ANN,
    BEN,
    LATE,
    NOW,
    OTHER,
    SERIES,
    agree,
    draw,
    held,
    lease_all,
    lease_numbers,
    statuses,
)


@pytest.fixture
def state(state: ClientState) -> ClientState:
    """A state in which two persons consent."""
    agree(state, ANN, BEN)
    return state


# -- leases ----------------------------------------------------------------------------------------


def test_due_reports_are_leased_longest_due_first_until_a_lease_ends(state: ClientState) -> None:
    assert state.next_due() is None
    state.commit([draw(at, send_at=NOW + 3 - at) for at in range(3)])
    state.commit([draw(9, send_at=NOW + 900)])
    assert state.next_due() == NOW + 1
    leased = state.lease(NOW + 3, NOW + 600, 2) + state.lease(NOW + 3, NOW + 600, 2)

    assert [(each.report, each.person, each.send_at, each.tries) for each in leased] == [
        (draw(2 - at).report, ANN, NOW + 1 + at, 1) for at in range(3)
    ]
    assert state.next_due() == NOW + 600
    assert lease_all(state, NOW + 599) == []
    again = lease_all(state, NOW + 600, NOW + 1200)
    assert sorted(again, key=lambda each: each.send_at) == [
        replace(each, tries=2) for each in leased
    ]


def test_a_hurried_lease_takes_whatever_may_leave(state: ClientState) -> None:
    """Neither a hidden report before its instant nor what is leased; its own time stays."""
    state.commit([draw(0, send_at=NOW), draw(1, send_at=NOW + 900)])
    state.commit([draw(2, send_at=LATE, earliest=LATE)])
    leased = lease_all(state) + state.lease(NOW, NOW + 600, 1, hurry=True)

    assert [each.report.period for each in leased] == [0, 1]
    assert state.lease(NOW + 599, NOW + 999, 1, hurry=True) == []
    assert [state.waiting(now) for now in (NOW - 1, NOW, LATE)] == [0, 2, 3]
    assert lease_all(state, NOW + 899, LATE) == [replace(leased[0], tries=2)]
    assert state.next_due() == NOW + 900


# -- settled ---------------------------------------------------------------------------------------


def test_a_settled_report_is_kept_and_never_leaves(engine: Engine, state: ClientState) -> None:
    """Delivered or dropped, it is counted once; of a true value the message is wiped."""
    randomized, *true = (draw(period, message=b"an-answer") for period in range(4))
    state.commit([randomized, *(replace(each, is_true=True) for each in true)])
    first, second, third, fourth = lease_numbers(state)
    state.settle([first, second], {third: Loss.FULL, fourth: Loss.STALE})
    state.settle([third], {first: Loss.STALE, fourth: Loss.FULL, 999: Loss.STALE})
    state.reschedule({first: NOW})
    receipt = engine.open().sent(ANN)

    assert [each.status for each in receipt] == ["delivered", "delivered", "full", "stale"]
    assert [each.report.message for each in receipt] == [b"an-answer", b"\0", b"\0", b"\0"]
    assert state.losses() == {(Loss.STALE, SERIES): 1, (Loss.FULL, SERIES): 1}
    assert (state.next_due(), state.waiting(LATE), lease_all(state)) == (None, 0, [])


def test_the_receipt_keeps_the_last_finished_and_all_that_wait(state: ClientState) -> None:
    state.commit([draw(at) for at in range(KEPT + 5)] + [draw(0, person=BEN)])
    numbers = [each.number for each in lease_all(state) if each.person == ANN]
    state.settle(numbers[-1:3:-1], dict.fromkeys(numbers[1:4], Loss.FULL))

    kept = state.sent(ANN)
    assert [each.report.period for each in kept] == [0, *range(5, KEPT + 5)]
    assert [each.status for each in kept] == ["waiting"] + ["delivered"] * KEPT
    assert statuses(state, BEN) == ["waiting"]


def test_a_rescheduled_report_is_due_at_its_new_time(state: ClientState) -> None:
    """Its lease over; each lease is an attempt."""
    state.commit([draw()])
    (first,) = lease_all(state)
    state.reschedule({first.number: NOW + 7, 999: NOW})

    assert (first.tries, state.attempts()) == (1, 1)
    assert state.next_due() == NOW + 7
    assert lease_all(state, NOW + 6) == []
    assert [(each.send_at, each.tries) for each in lease_all(state, NOW + 7)] == [(NOW + 7, 2)]
    assert state.attempts() == 2


# -- dropped ---------------------------------------------------------------------------------------


def test_a_retired_series_is_wiped_and_is_no_loss(state: ClientState) -> None:
    """The receipt and the other series stay. Nothing that was drawn before is stored after."""
    state.commit([draw(0), draw(1), draw(0, person=BEN), draw(1, series=OTHER, person=BEN)])
    state.settle([lease_numbers(state)[0]], {})
    for series in (SERIES, OTHER):
        state.hold(None, held("a", series=series, person=BEN))
    state.retire(SERIES)
    before = statuses(state), statuses(state, BEN)
    state.retire(SERIES, NOW)
    drawn = [draw(9, series=series, person=BEN) for series in (SERIES, OTHER)]

    assert before == (["delivered", "waiting"], ["waiting", "waiting"])
    assert (statuses(state), statuses(state, BEN)) == (["delivered"], ["waiting"])
    assert [state.held(BEN, series) is None for series in (SERIES, OTHER)] == [True, False]
    assert state.sent(BEN)[0].report.fingerprint == OTHER
    assert not state.losses()
    assert [state.person(BEN).coverage[series].resumed for series in (SERIES, OTHER)] == [NOW, 0]
    assert state.commit(drawn) == [DrawOutcome.NO_CONSENT, DrawOutcome.STORED]


def test_expired_reports_are_dropped_and_do_not_count_for_the_limits(state: ClientState) -> None:
    state.commit([draw(0), draw(1, expires=NOW + 5), draw(2, expires=NOW + 6)])
    lease_all(state)
    state.expire(NOW + 5, OutboxLimits(reports=2))

    assert statuses(state) == ["waiting", "aged", "waiting"]
    assert state.losses() == {(Loss.AGED, SERIES): 1}


@pytest.mark.parametrize("limits", [OutboxLimits(reports=2), OutboxLimits(message_bytes=8)])
def test_what_is_due_first_is_evicted_over_a_limit(
    state: ClientState, limits: OutboxLimits
) -> None:
    """Not what was stored first: that is what was recorded, and an absence comes after it."""
    state.commit([draw(at, message=b"four", send_at=NOW - at) for at in range(4)])
    state.expire(NOW, limits)

    assert statuses(state) == ["waiting", "waiting", "evicted", "evicted"]
    assert state.losses() == {(Loss.EVICTED, SERIES): 2}


# -- what travels by shuffler ----------------------------------------------------------------------


SEALED = bytes(range(256)) + b"sealed"


def sealed(place: int, **keys: float) -> ReportDraw:
    return replace(draw(place, **keys), sealed=SEALED)  # type: ignore[arg-type] # of its fields


def test_sealed_bytes_leave_the_same_at_each_attempt_and_not_with_the_receipt(
    state: ClientState,
) -> None:
    state.commit([sealed(0), draw(1)])
    first = lease_all(state, NOW, NOW + 600)
    again = lease_all(state, NOW + 600, NOW + 1200)

    assert [each.sealed for each in first] == [SEALED, b""]
    assert again == [replace(each, tries=2) for each in first]
    state.settle([each.number for each in first], {})
    assert [each.report for each in state.sent(ANN)] == [draw(0).report, draw(1).report]


@pytest.mark.parametrize(
    ("tried", "unsent", "loss"),
    [(False, False, Loss.AGED), (True, False, Loss.UNANSWERED), (True, True, Loss.AGED)],
)
def test_a_sealed_report_that_was_tried_is_not_called_lost(
    state: ClientState, *, tried: bool, unsent: bool, loss: Loss
) -> None:
    state.commit([sealed(0, expires=NOW + 60), draw(1, expires=NOW + 60)])
    if tried:
        state.reschedule(dict.fromkeys(lease_numbers(state), NOW + 900), unsent=unsent)
    state.expire(NOW + 60, OutboxLimits())

    assert statuses(state) == [loss.value, Loss.AGED.value]


def test_sealed_bytes_count_towards_the_limit(state: ClientState) -> None:
    state.commit([sealed(0), sealed(1)])
    state.expire(NOW, OutboxLimits(message_bytes=len(SEALED) + 2))

    assert statuses(state) == [Loss.EVICTED.value, "waiting"]
