"""What both engines promise of the outbox: leases, times, settlement, age and limits."""

from __future__ import annotations

from dataclasses import replace

import pytest

from veilcount_client.state import KEPT, ClientState, OutboxLimits
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
    withdraw,
)


@pytest.fixture
def state(state: ClientState) -> ClientState:
    """A state in which two persons consent."""
    agree(state, ANN, BEN)
    return state


# -- leases ----------------------------------------------------------------------------------------


def test_due_reports_are_leased_the_longest_due_first(state: ClientState) -> None:
    state.commit([draw(at, send_at=NOW + 3 - at) for at in range(3)])
    state.commit([draw(9, send_at=NOW + 9)])
    first, second = state.lease(NOW + 3, NOW + 600, 2)
    (third,) = state.lease(NOW + 3, NOW + 600, 2)

    assert [each.report for each in (first, second, third)] == [draw(at).report for at in (2, 1, 0)]
    assert (first.send_at, second.send_at) == (NOW + 1, NOW + 2)
    assert (first.person, first.tries) == (ANN, 1)


def test_a_hurried_lease_takes_whatever_may_leave(state: ClientState) -> None:
    """Neither a hidden report before its instant nor what is leased already."""
    state.commit([draw(0, send_at=NOW), draw(1, send_at=LATE)])
    state.commit([draw(2, send_at=LATE, earliest=LATE)])
    leased = lease_all(state) + state.lease(NOW, NOW + 600, 1, hurry=True)

    assert [each.report.period for each in leased] == [0, 1]
    assert state.lease(NOW, NOW + 600, 1, hurry=True) == []


def test_a_lease_ends_at_its_time(state: ClientState) -> None:
    state.commit([draw()])
    leased = lease_all(state, NOW, NOW + 600)

    assert lease_all(state, NOW + 599) == []
    assert state.lease(NOW + 599, NOW + 999, 10, hurry=True) == []
    again = lease_all(state, NOW + 600, NOW + 1200)
    assert again == [replace(each, tries=2) for each in leased]


def test_next_due_is_the_first_report_or_the_end_of_its_lease(state: ClientState) -> None:
    assert state.next_due() is None
    state.commit([draw(0, send_at=NOW + 5), draw(1, send_at=NOW)])
    assert state.next_due() == NOW
    lease_all(state, NOW, NOW + 3)
    assert state.next_due() == NOW + 3


def test_a_hurried_report_is_due_at_its_own_time_again(state: ClientState) -> None:
    """Not before, though its lease ends before."""
    state.commit([draw(send_at=NOW + 900)])
    state.lease(NOW, NOW + 600, 1, hurry=True)

    assert state.next_due() == NOW + 900
    assert lease_all(state, NOW + 899) == []


def test_waiting_counts_what_may_leave(state: ClientState) -> None:
    """Leased or not; not what is hidden until later."""
    state.commit([draw(0, send_at=NOW), draw(1, send_at=LATE)])
    state.commit([draw(2, send_at=LATE, earliest=LATE)])
    lease_all(state)

    assert [state.waiting(now) for now in (NOW - 1, NOW, LATE)] == [0, 2, 3]


# -- settled ---------------------------------------------------------------------------------------


def test_a_delivered_report_stays_in_the_receipt_and_never_leaves_again(
    state: ClientState,
) -> None:
    state.commit([draw()])
    (number,) = lease_numbers(state)
    state.settle([number], {})
    state.reschedule({number: NOW})

    assert statuses(state) == ["delivered"]
    assert not state.losses()
    assert state.next_due() is None
    assert state.waiting(LATE) == 0
    assert lease_all(state) == []


def test_dropped_reports_are_counted_once(state: ClientState) -> None:
    state.commit([draw(0), draw(1)])
    first, second = lease_numbers(state)
    state.settle([], {first: Loss.STALE, second: Loss.FULL})
    state.settle([first], {second: Loss.STALE, 999: Loss.STALE})

    assert statuses(state) == ["stale", "full"]
    assert state.losses() == {(Loss.STALE, SERIES): 1, (Loss.FULL, SERIES): 1}


def test_a_settled_true_value_is_wiped(engine: Engine, state: ClientState) -> None:
    """Delivered or dropped: its report stays in the receipt, its message does not."""
    draws = [draw(period, message=b"a-true-value") for period in range(3)]
    state.commit([replace(each, is_true=True) for each in draws])
    first, second, third = lease_numbers(state)
    state.settle([first], {second: Loss.FULL, third: Loss.AGED})

    assert statuses(state) == ["delivered", "full", "aged"]
    assert {each.report.message for each in engine.open().sent(ANN)} == {b"\0"}


def test_the_number_of_a_wiped_report_is_not_used_again(state: ClientState) -> None:
    """A late reply would settle another report."""
    state.commit([draw(0)])
    (wiped,) = lease_numbers(state)
    withdraw(state)
    agree(state)
    state.commit([draw(1)])
    state.settle([wiped], {})

    assert statuses(state) == ["waiting"]


def test_the_receipt_keeps_the_last_finished_and_all_that_wait(state: ClientState) -> None:
    state.commit([draw(at) for at in range(KEPT + 5)] + [draw(0, person=BEN)])
    numbers = [each.number for each in lease_all(state) if each.person == ANN]
    state.settle(numbers[-1:3:-1], dict.fromkeys(numbers[1:4], Loss.FULL))

    kept = state.sent(ANN)
    assert [each.report.period for each in kept] == [0, *range(5, KEPT + 5)]
    assert [each.status for each in kept] == ["waiting"] + ["delivered"] * KEPT
    assert statuses(state, BEN) == ["waiting"]


# -- rescheduled -----------------------------------------------------------------------------------


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


def test_overdue_is_what_was_due_before_and_is_not_leased(state: ClientState) -> None:
    """To set its time is no attempt."""
    state.commit([draw(0), draw(1, send_at=NOW + 5), draw(2)])
    leased = state.lease(NOW, NOW + 9, 1)[0]
    overdue = state.overdue(NOW + 5, NOW + 90, 1000)
    state.reschedule(dict.fromkeys(overdue, NOW + 7))

    assert len(overdue) == 1
    assert leased.number not in overdue
    assert state.overdue(NOW + 5, NOW + 90, 1000) == []
    assert len(state.overdue(NOW + 20, NOW + 90, 1000)) == 3
    assert [each.tries for each in state.lease(NOW + 8, NOW + 60, 1000)] == [1, 1]


def test_overdue_is_what_a_clock_that_was_ahead_has_put_off(state: ClientState) -> None:
    """The time of an attempt, or a lease, beyond any that is set; not a time that was drawn."""
    far = NOW + 9000
    state.commit([draw(0), draw(1), draw(2, send_at=far + 9, earliest=far + 9)])
    first, second = state.lease(NOW, far + 5, 2)
    state.reschedule({first.number: far + 1}, unsent=True)

    assert sorted(state.overdue(NOW, far, 9)) == sorted([first.number, second.number])
    assert state.overdue(NOW, far + 6, 9) == []


def test_an_unsent_report_had_no_attempt_and_leaves_no_row(state: ClientState) -> None:
    state.commit([draw(0)])
    state.reschedule({lease_numbers(state)[0]: NOW}, unsent=True)
    attempts = state.attempts()
    state.forget(ANN)

    assert attempts == 0
    assert state.row_closes(NOW, 9) == []


# -- dropped ---------------------------------------------------------------------------------------


def test_a_retired_series_is_wiped_and_is_no_loss(state: ClientState) -> None:
    """The receipt and the other series stay."""
    state.commit([draw(0), draw(1), draw(0, person=BEN), draw(1, series=OTHER, person=BEN)])
    state.settle([lease_numbers(state)[0]], {})
    for series in (SERIES, OTHER):
        state.hold(None, held("a", series=series, person=BEN))
    state.retire(SERIES, reports=False)
    before = statuses(state), statuses(state, BEN)
    state.retire(SERIES, reports=True)

    assert before == (["delivered", "waiting"], ["waiting", "waiting"])
    assert (statuses(state), statuses(state, BEN)) == (["delivered"], ["waiting"])
    assert [state.held(BEN, series) is None for series in (SERIES, OTHER)] == [True, False]
    assert state.sent(BEN)[0].report.fingerprint == OTHER
    assert not state.losses()


def test_expired_reports_are_dropped(state: ClientState) -> None:
    state.commit([draw(0, expires=NOW + 5), draw(1, expires=NOW + 6)])
    lease_all(state)
    state.expire(NOW + 5, OutboxLimits())

    assert statuses(state) == ["aged", "waiting"]
    assert state.losses() == {(Loss.AGED, SERIES): 1}


@pytest.mark.parametrize("limits", [OutboxLimits(reports=2), OutboxLimits(message_bytes=8)])
def test_the_oldest_reports_over_a_limit_are_evicted(
    state: ClientState, limits: OutboxLimits
) -> None:
    state.commit([draw(at, message=b"four", send_at=NOW - at) for at in range(4)])
    state.expire(NOW, limits)

    assert statuses(state) == ["evicted", "evicted", "waiting", "waiting"]
    assert state.losses() == {(Loss.EVICTED, SERIES): 2}


def test_an_expired_report_does_not_count_for_the_limits(state: ClientState) -> None:
    state.commit([draw(0), draw(1, expires=NOW), draw(2)])
    state.expire(NOW, OutboxLimits(reports=2))

    assert statuses(state) == ["waiting", "aged", "waiting"]


def test_only_waiting_reports_count_for_the_limits(state: ClientState) -> None:
    """Neither delivered nor wiped nor forgotten ones."""
    state.commit([draw(at, message=b"four", person=who) for at in range(2) for who in (ANN, BEN)])
    state.settle([lease_numbers(state)[0]], {})
    withdraw(state)
    state.forget(BEN)
    agree(state, BEN)
    state.commit([draw(5, person=BEN, message=b"four")])
    state.expire(NOW, OutboxLimits(reports=1, message_bytes=4))

    assert statuses(state, BEN) == ["waiting"]
    assert not state.losses()
