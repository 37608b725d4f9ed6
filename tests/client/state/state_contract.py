"""What every state promises, as tests: one battery for all engines [client/state/contract.py]."""

from __future__ import annotations

import hashlib
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import replace

import pytest

from veilcount_client.state import (
    KEPT,
    ROW_CLOSED,
    ClientState,
    DrawOutcome,
    HeldValue,
    OutboxLimits,
    QueuedReport,
    ReportDraw,
    SpentBudget,
)
from veilcount_client.state.closed_series import add_closed_series, closed_series
from veilcount_client.state.key_derivation import person_key
from veilcount_client.state.losses import Loss
from veilcount_shared.report import Report

SERIES, OTHER = "ab" * 32, "cd" * 32
ANN, BEN = (hashlib.sha256(name).digest()[:16] for name in (b"ann", b"ben"))
COST = 1_000_000
NOW = 1_764_633_600.123456  # no binary fraction: what is kept as text would be lost here
DAY = 739_000
LATE = NOW + 86_400.0


def draw(
    period: int = 0,
    answer: int = 0,
    *,
    person: bytes = ANN,
    series: str = SERIES,
    lineage: str = "theme",
    message: bytes = b"m",
    days: tuple[int, int] | None = None,
    life_cap: int = 1000 * COST,
    day_cap: int = 1000 * COST,
    send_at: float = NOW,
    earliest: float = NOW,
    expires: float = LATE,
    free: bool = False,
) -> ReportDraw:
    """Return a draw of one epsilon that may leave at once."""
    first_day, end_day = days or (DAY + period, DAY + period + 1)
    report = Report(series, period, 3, hashlib.md5(person).digest(), answer, message)  # noqa: S324
    return ReportDraw(
        person=person,
        lineage=lineage,
        series=series,
        period=period,
        answer=answer,
        cost=COST,
        first_day=first_day,
        end_day=end_day,
        day_cap=day_cap,
        life_cap=life_cap,
        report=report,
        earliest=earliest,
        send_at=send_at,
        expires=expires,
        free=free,
    )


def held(
    value: str,
    *,
    person: bytes = ANN,
    series: str = SERIES,
    period: int = 0,
    at: float = NOW,
    due: float = NOW + 60,
) -> HeldValue:
    """Return a running value."""
    return HeldValue(person, series, period, 3, value, at, due)


def agree(state: ClientState, *persons: bytes) -> None:
    """Have persons consent."""
    for person in persons or (ANN,):
        state.consent(person, True, frozenset({SERIES, OTHER}), NOW)


def lease_all(state: ClientState, now: float = NOW, until: float = NOW + 600) -> list[QueuedReport]:
    """Lease whatever is due."""
    return state.lease(now, until, 1000)


def statuses(state: ClientState, person: bytes = ANN) -> list[str]:
    """Return what became of a person's reports."""
    return [sent.status for sent in state.sent(person)]


def spent(state: ClientState, person: bytes = ANN, lineage: str = "theme") -> int:
    """Return what a person has spent for life, in whole epsilons."""
    entry = state.spent(person).get(lineage)
    return entry.life // COST if entry else 0


class Engine(ABC):
    """A place for one state, that can be opened as often as one likes."""

    @property
    @abstractmethod
    def place(self) -> str:
        """What `open_state` takes."""

    @abstractmethod
    def open(self) -> ClientState:
        """Open the state."""

    @abstractmethod
    def everything(self) -> bytes:
        """Return all bytes that are stored."""


class StateContract:
    """The promises of a state."""

    @pytest.fixture
    def state(self, engine: Engine) -> Iterator[ClientState]:
        """A new state."""
        state = engine.open()
        yield state
        state.close()

    # -- persons -------------------------------------------------------------------------------

    def test_a_new_person_has_no_consent_decision(self, state: ClientState) -> None:
        """Neither yes nor no, nothing covered."""
        person = state.person(ANN)

        assert person.consented is None
        assert person.covered == frozenset()
        assert len(person.secret) == 32

    def test_a_person_keeps_the_secret(self, engine: Engine, state: ClientState) -> None:
        """Through another opening too."""
        other = engine.open()

        assert state.person(ANN) == state.person(ANN) == other.person(ANN)
        assert state.root == other.root

        other.close()

    def test_persons_have_their_own_secrets(self, state: ClientState) -> None:
        """Nobody's secret is another's."""
        assert state.person(ANN).secret != state.person(BEN).secret

    def test_ids_are_not_stored(self, engine: Engine, state: ClientState) -> None:
        """Neither as text nor as a key that could be made without the root."""
        agree(state, person_key(state.root, "ann@example.org"))

        stored = engine.everything()
        assert b"ann@example.org" not in stored
        assert hashlib.sha256(b"ann@example.org").digest()[:8] not in stored

    def test_any_id_has_a_key(self, state: ClientState) -> None:
        """Lone surrogates come from broken databases."""
        assert len(person_key(state.root, "\udc80")) == 16

    def test_consent_is_kept_with_what_it_covers(self, engine: Engine, state: ClientState) -> None:
        """Since when is that of the first yes."""
        state.consent(ANN, True, frozenset({SERIES}), NOW)
        state.consent(ANN, False, frozenset(), NOW + 1)
        state.consent(ANN, True, frozenset({SERIES, OTHER}), NOW + 2)

        person = engine.open().person(ANN)
        assert person.consented is True
        assert person.covered == {SERIES, OTHER}
        assert person.since == NOW

    def test_a_no_has_no_beginning(self, state: ClientState) -> None:
        """Since begins with the first yes only."""
        state.consent(ANN, False, frozenset(), NOW)

        assert state.person(ANN).consented is False
        assert state.person(ANN).since == 0.0

    def test_who_consents(self, state: ClientState) -> None:
        """Those who said yes, and none of the others."""
        many = [os.urandom(16) for _ in range(40)]
        agree(state, *many, ANN)
        state.consent(BEN, False, frozenset(), NOW)
        state.consent(many[0], False, frozenset(), NOW)
        state.person(bytes(16))

        assert set(state.consenting()) == {*many[1:], ANN}

    def test_a_withdrawal_wipes_what_waits(self, state: ClientState) -> None:
        """What was spent, frozen and delivered stays."""
        agree(state, ANN, BEN)
        state.commit([draw(0), draw(1), draw(0, person=BEN)])
        first = lease_all(state)[0]
        state.settle([first.number], {})
        state.consent(ANN, False, frozenset(), NOW)

        assert statuses(state) == ["delivered"]
        assert spent(state) == 2
        assert state.used(ANN, SERIES) == (1, 1)
        assert [queued_report.person for queued_report in lease_all(state, NOW + 601)] == [BEN]
        assert not state.losses()

    def test_a_forgotten_person_is_another_with_the_same_ledger(self, state: ClientState) -> None:
        """Secret, answers and outbox are gone; what was spent stays spent."""
        agree(state, ANN, BEN)
        secret = state.person(ANN).secret
        state.commit([draw(0), draw(0, series=OTHER), draw(1), draw(0, person=BEN)])
        state.settle([lease_all(state)[0].number], {})
        root = state.person(ANN).root
        state.forget(ANN)

        assert state.person(ANN).secret != secret
        assert state.person(ANN).root == root
        assert state.person(ANN).consented is None
        assert statuses(state) == []
        assert state.used(ANN, SERIES) == (-1, 0)
        assert spent(state) == 3
        assert statuses(state, BEN) == ["waiting"]

    def test_only_rows_that_were_sent_are_to_be_closed(
        self, engine: Engine, state: ClientState
    ) -> None:
        """A report that was never leased has no row, however it ended."""
        agree(state, ANN, BEN)
        third, fourth = "ef" * 32, "0a" * 32
        state.commit([draw(0), draw(0, series=OTHER), draw(0, series=third, expires=NOW)])
        state.commit([draw(0, series=fourth, send_at=NOW + 9), draw(0, person=BEN)])
        delivered, waiting, *_ = lease_all(state)
        state.settle([delivered.number], {})
        state.reschedule({waiting.number: NOW + 5})
        state.forget(ANN)

        closes = engine.open().row_closes(NOW, 1000)
        pseudonym = hashlib.md5(ANN).digest()  # noqa: S324
        assert {(each.series, each.pseudonym) for each in closes} == {
            (delivered.report.fingerprint, pseudonym),
            (waiting.report.fingerprint, pseudonym),
            (third, pseudonym),  # it was leased with the others
        }
        assert {each.due for each in closes} == {0.0}

    def test_what_aged_before_it_was_sent_has_no_row(self, state: ClientState) -> None:
        """Dropped from the outbox, and never leased."""
        agree(state)
        state.commit([draw(0, expires=NOW)])
        state.expire(NOW, OutboxLimits())
        state.forget(ANN)

        assert state.row_closes(NOW, 1000) == []

    def test_a_row_is_to_be_closed_until_it_is(self, state: ClientState) -> None:
        """At the time that was set for it; finished, it is gone, and nothing brings it back."""
        agree(state)
        state.commit([draw(0), draw(0, series=OTHER)])
        lease_all(state)
        state.forget(ANN)
        one, other = sorted(state.row_closes(NOW, 1000), key=lambda each: each.series)
        state.schedule_row_closes({(one.series, one.pseudonym): NOW + 5})
        state.finish_row_close(other.series, other.pseudonym)
        state.schedule_row_closes({(other.series, other.pseudonym): NOW})

        assert state.row_closes(NOW + 4, 1000) == []
        assert state.next_row_close() == NOW + 5
        assert [each.due for each in state.row_closes(NOW + 5, 1000)] == [NOW + 5]

    def test_forgetting_a_stranger(self, state: ClientState) -> None:
        """There is nothing to close."""
        state.forget(ANN)

        assert state.row_closes(NOW, 1000) == []
        assert state.next_row_close() is None

    # -- answers -------------------------------------------------------------------------------

    def test_a_draw_is_charged_frozen_and_stored(self, engine: Engine, state: ClientState) -> None:
        """All three, and for another opening too."""
        agree(state)
        fates = state.commit([draw(4, message=b"\0\xff")])

        other = engine.open()
        assert fates == [DrawOutcome.STORED]
        assert other.spent(ANN) == {"theme": SpentBudget(COST, DAY + 4, DAY + 5, COST)}
        assert other.used(ANN, SERIES) == (4, 1)
        assert [each.report for each in other.sent(ANN)] == [draw(4, message=b"\0\xff").report]

    def test_nothing_is_known_of_a_stranger(self, state: ClientState) -> None:
        """Nothing spent, answered or sent."""
        assert state.spent(ANN) == {}
        assert state.used(ANN, SERIES) == (-1, 0)
        assert state.sent(ANN) == []

    @pytest.mark.parametrize("how", ["unknown", "unasked", "withdrawn", "forgotten"])
    def test_without_consent_nothing_is_done(self, state: ClientState, how: str) -> None:
        """Not even for a free draw."""
        if how == "unasked":
            state.person(ANN)
        elif how != "unknown":
            agree(state)
            state.forget(ANN) if how == "forgotten" else state.consent(ANN, False, frozenset(), NOW)
        fates = state.commit([draw(), draw(free=True)])

        assert fates == [DrawOutcome.NO_CONSENT] * 2
        assert state.spent(ANN) == {}
        assert statuses(state) == []

    def test_a_slot_is_answered_once(self, state: ClientState) -> None:
        """The second draw is charged nothing, and the first stays as it is."""
        agree(state)
        fates = state.commit([draw(message=b"a"), draw(message=b"b")])
        fates += state.commit([draw(message=b"c")])

        assert fates == [DrawOutcome.STORED, DrawOutcome.FROZEN, DrawOutcome.FROZEN]
        assert spent(state) == 1
        assert [each.report.message for each in state.sent(ANN)] == [b"a"]

    def test_answers_of_a_period_come_in_order(self, state: ClientState) -> None:
        """None is left out."""
        agree(state)
        fates = state.commit([draw(0, 1), draw(0, 0), draw(0, 2), draw(0, 1), draw(1, 1)])

        assert fates == [
            DrawOutcome.FROZEN,
            DrawOutcome.STORED,
            DrawOutcome.FROZEN,
            DrawOutcome.STORED,
            DrawOutcome.FROZEN,
        ]
        assert state.used(ANN, SERIES) == (0, 2)

    def test_periods_only_move_forward(self, state: ClientState) -> None:
        """A clock set back finds its slots spent."""
        agree(state)
        fates = state.commit([draw(5), draw(3), draw(5), draw(7)])

        assert fates == [
            DrawOutcome.STORED,
            DrawOutcome.FROZEN,
            DrawOutcome.FROZEN,
            DrawOutcome.STORED,
        ]
        assert state.used(ANN, SERIES) == (7, 1)

    def test_series_are_frozen_apart(self, state: ClientState) -> None:
        """One's period is not another's."""
        agree(state, ANN, BEN)
        fates = state.commit([draw(5), draw(3, series=OTHER, lineage="sound"), draw(3, person=BEN)])

        assert fates == [DrawOutcome.STORED] * 3
        assert state.used(ANN, OTHER) == (3, 1)

    def test_the_cap_for_life(self, state: ClientState) -> None:
        """It may be reached and not passed; who is refused leaves no trace."""
        agree(state)
        fates = state.commit([draw(period, life_cap=2 * COST) for period in range(3)])

        assert fates == [DrawOutcome.STORED, DrawOutcome.STORED, DrawOutcome.OVER_CAP]
        assert state.spent(ANN) == {"theme": SpentBudget(2 * COST, DAY + 1, DAY + 2, COST)}
        assert state.used(ANN, SERIES) == (1, 1)
        assert len(state.sent(ANN)) == 2

    def test_the_cap_of_a_day(self, state: ClientState) -> None:
        """The next day begins anew."""
        agree(state)
        fates = state.commit([draw(0, answer, day_cap=2 * COST) for answer in range(3)])
        fates += state.commit([draw(1, day_cap=2 * COST)])

        assert fates == [
            DrawOutcome.STORED,
            DrawOutcome.STORED,
            DrawOutcome.OVER_CAP,
            DrawOutcome.STORED,
        ]
        assert state.spent(ANN) == {"theme": SpentBudget(3 * COST, DAY + 1, DAY + 2, COST)}

    def test_a_day_in_the_past_is_not_paid_again(self, state: ClientState) -> None:
        """Two redefinitions must not share a day by going back to it."""
        agree(state)
        fates = state.commit([draw(9), draw(0, series=OTHER), draw(1, series=OTHER)])

        assert fates == [DrawOutcome.STORED, DrawOutcome.OVER_CAP, DrawOutcome.OVER_CAP]
        assert state.spent(ANN) == {"theme": SpentBudget(COST, DAY + 9, DAY + 10, COST)}

    def test_days_are_paid_for_as_one_unit(self, state: ClientState) -> None:
        """What a month has paid for no day of it pays for again, nor a month what its days have."""
        agree(state, ANN, BEN)
        month, day, week = (DAY, DAY + 31), (DAY + 9, DAY + 10), (DAY + 28, DAY + 35)
        fates = state.commit(
            [
                draw(0, days=month),
                draw(0, series=OTHER, days=day),
                draw(1, series=OTHER, days=week),
                draw(2, series=OTHER, days=(DAY + 31, DAY + 32)),
                draw(0, person=BEN, days=day),
                draw(0, series=OTHER, person=BEN, days=month),
            ]
        )

        assert fates == [
            DrawOutcome.STORED,
            DrawOutcome.OVER_CAP,
            DrawOutcome.OVER_CAP,
            DrawOutcome.STORED,
            DrawOutcome.STORED,
            DrawOutcome.OVER_CAP,
        ]

    def test_the_same_days_under_another_form_spend_what_is_left(self, state: ClientState) -> None:
        """A month that was paid for is not paid again because the campaign begins later."""
        agree(state)
        month = (DAY, DAY + 31)
        fates = state.commit(
            [
                draw(0, days=month, day_cap=COST),
                draw(0, series=OTHER, days=month, day_cap=COST),
                draw(0, series="ef" * 32, days=month, day_cap=2 * COST),
            ]
        )

        assert fates == [DrawOutcome.STORED, DrawOutcome.OVER_CAP, DrawOutcome.STORED]

    def test_a_skipped_answer_costs_nothing(self, state: ClientState) -> None:
        """Its slot is taken, its days are not paid for."""
        agree(state)
        given_up = replace(draw(0, days=(0, 0)), cost=0, day_cap=0, life_cap=0, report=None)
        fates = state.commit([given_up, draw(0), draw(1)])

        assert fates == [DrawOutcome.STORED, DrawOutcome.FROZEN, DrawOutcome.STORED]
        assert spent(state) == 1

    def test_a_redefinition_spends_what_is_left(self, state: ClientState) -> None:
        """Two series of one lineage have one ledger; two lineages, and two persons, have two."""
        agree(state, ANN, BEN)
        cap = COST
        fates = state.commit(
            [
                draw(life_cap=cap),
                draw(series=OTHER, life_cap=cap),
                draw(series=OTHER, life_cap=cap, lineage="sound"),
                draw(person=BEN, life_cap=cap),
            ]
        )

        assert fates == [
            DrawOutcome.STORED,
            DrawOutcome.OVER_CAP,
            DrawOutcome.STORED,
            DrawOutcome.STORED,
        ]

    def test_a_true_value_is_charged_and_not_stored(self, state: ClientState) -> None:
        """Only its slot is spent."""
        agree(state)
        fates = state.commit([replace(draw(), report=None)] * 2)

        assert fates == [DrawOutcome.STORED, DrawOutcome.FROZEN]
        assert spent(state) == 1
        assert state.sent(ANN) == []
        assert lease_all(state) == []

    def test_a_free_draw_is_stored_only(self, state: ClientState) -> None:
        """As often as one likes, over any cap."""
        agree(state)
        fates = state.commit([draw(free=True, life_cap=0, day_cap=0)] * 3)

        assert fates == [DrawOutcome.STORED] * 3
        assert state.spent(ANN) == {}
        assert state.used(ANN, SERIES) == (-1, 0)
        assert statuses(state) == ["waiting"] * 3

    def test_an_empty_commit(self, state: ClientState) -> None:
        """Nothing to do is no fault."""
        assert state.commit([]) == []
        assert state.lease(NOW, NOW, 10) == []

    def test_a_thousand_draws_at_once(self, state: ClientState) -> None:
        """Of a thousand persons, in one step, in order."""
        persons = [os.urandom(16) for _ in range(1000)]
        agree(state, *persons[::100])
        fates = state.commit([draw(person=person) for person in persons])

        assert [fate is DrawOutcome.STORED for fate in fates] == [
            not at % 100 for at in range(1000)
        ]
        assert state.waiting(NOW) == 10

    # -- the outbox ----------------------------------------------------------------------------

    def test_what_is_due_is_leased(self, state: ClientState) -> None:
        """The longest due first, with all that was stored, and not more than asked for."""
        agree(state)
        state.commit([draw(at, send_at=NOW + 3 - at) for at in range(3)])
        state.commit([draw(9, send_at=NOW + 9)])
        first = state.lease(NOW + 3, NOW + 600, 2)
        rest = state.lease(NOW + 3, NOW + 600, 2)

        assert [queued_report.report for queued_report in first] == [draw(2).report, draw(1).report]
        assert [queued_report.report for queued_report in rest] == [draw(0).report]
        assert [queued_report.send_at for queued_report in first] == [NOW + 1, NOW + 2]
        assert {queued_report.person for queued_report in first} == {ANN}
        assert {queued_report.tries for queued_report in first} == {1}

    def test_in_a_hurry_leaves_what_may(self, state: ClientState) -> None:
        """A hidden instant is never hurried, nor what is on its way."""
        agree(state)
        state.commit([draw(0, send_at=NOW), draw(1, send_at=LATE)])
        state.commit([draw(2, send_at=LATE, earliest=LATE)])
        taken = lease_all(state)
        hurried = state.lease(NOW, NOW + 600, 1, hurry=True)

        assert [queued_report.report.period for queued_report in taken + hurried] == [0, 1]
        assert state.lease(NOW, NOW + 600, 1, hurry=True) == []

    def test_a_lease_ends(self, state: ClientState) -> None:
        """Then, and not before, another may take the report."""
        agree(state)
        state.commit([draw()])
        taken = lease_all(state, NOW, NOW + 600)

        assert lease_all(state, NOW + 599) == []
        assert state.lease(NOW + 599, NOW + 999, 10, hurry=True) == []
        again = lease_all(state, NOW + 600, NOW + 1200)
        assert again == [replace(each, tries=2) for each in taken]

    def test_when_something_is_next_due(self, state: ClientState) -> None:
        """Nothing, the first report, or the end of its lease."""
        agree(state)
        none = state.next_due()
        state.commit([draw(0, send_at=NOW + 5), draw(1, send_at=NOW)])
        first = state.next_due()
        lease_all(state, NOW, NOW + 3)

        assert none is None
        assert first == NOW
        assert state.next_due() == NOW + 3

    def test_a_hurried_lease_is_due_at_its_time(self, state: ClientState) -> None:
        """Not before, though its lease ends before."""
        agree(state)
        state.commit([draw(send_at=NOW + 900)])
        state.lease(NOW, NOW + 600, 1, hurry=True)

        assert state.next_due() == NOW + 900
        assert lease_all(state, NOW + 899) == []

    def test_what_waits(self, state: ClientState) -> None:
        """What may leave, on its way or not; not what is hidden until later."""
        agree(state)
        state.commit([draw(0, send_at=NOW), draw(1, send_at=LATE)])
        state.commit([draw(2, send_at=LATE, earliest=LATE)])
        lease_all(state)

        assert state.waiting(NOW) == 2
        assert state.waiting(NOW - 1) == 0
        assert state.waiting(LATE) == 3

    def test_delivered_reports_stay_in_the_receipt(self, state: ClientState) -> None:
        """They are no loss, and never leave again."""
        agree(state)
        state.commit([draw()])
        state.settle([queued_report.number for queued_report in lease_all(state)], {})

        assert statuses(state) == ["delivered"]
        assert not state.losses()
        assert state.next_due() is None
        assert state.waiting(LATE) == 0

    def test_dropped_reports_are_counted_once(self, state: ClientState) -> None:
        """By reason and series, however often it is reported."""
        agree(state)
        state.commit([draw(0), draw(1)])
        first, second = (queued_report.number for queued_report in lease_all(state))
        state.settle([], {first: Loss.STALE, second: Loss.FULL})
        state.settle([first], {second: Loss.STALE, 999: Loss.STALE})

        assert statuses(state) == ["stale", "full"]
        assert state.losses() == {(Loss.STALE, SERIES): 1, (Loss.FULL, SERIES): 1}

    def test_put_back_a_report_is_due_again(self, state: ClientState) -> None:
        """At its time, its lease over; each lease is an attempt."""
        agree(state)
        state.commit([draw()])
        first = lease_all(state)[0]
        state.reschedule({first.number: NOW + 7, 999: NOW})

        assert (first.tries, state.attempts()) == (1, 1)
        assert state.next_due() == NOW + 7
        assert lease_all(state, NOW + 6) == []
        assert [(each.send_at, each.tries) for each in lease_all(state, NOW + 7)] == [(NOW + 7, 2)]
        assert state.attempts() == 2

    def test_what_is_overdue(self, state: ClientState) -> None:
        """What was due before, and is not leased; to give it a time is no attempt."""
        agree(state)
        state.commit([draw(0), draw(1, send_at=NOW + 5), draw(2)])
        leased = state.lease(NOW, NOW + 9, 1)[0]
        overdue = state.overdue(NOW + 5, NOW + 90, 1000)
        state.reschedule(dict.fromkeys(overdue, NOW + 7))

        assert len(overdue) == 1
        assert leased.number not in overdue
        assert state.overdue(NOW + 5, NOW + 90, 1000) == []
        assert len(state.overdue(NOW + 20, NOW + 90, 1000)) == 3
        assert [each.tries for each in state.lease(NOW + 8, NOW + 60, 1000)] == [1, 1]

    def test_what_a_clock_that_was_ahead_has_put_off(self, state: ClientState) -> None:
        """An attempt's time, or lease, beyond what any attempt sets; not a time that was drawn."""
        agree(state)
        far = NOW + 9000
        state.commit([draw(0), draw(1), draw(2, send_at=far + 9, earliest=far + 9)])
        first, second = state.lease(NOW, far + 5, 2)
        state.reschedule({first.number: far + 1}, unsent=True)

        assert sorted(state.overdue(NOW, far, 9)) == sorted([first.number, second.number])
        assert state.overdue(NOW, far + 6, 9) == []

    def test_what_nobody_has_read_was_no_attempt(self, state: ClientState) -> None:
        """A connection that was refused leaves no row to be closed."""
        agree(state)
        state.commit([draw(0)])
        state.reschedule({lease_all(state)[0].number: NOW}, unsent=True)
        attempts = state.attempts()
        state.forget(ANN)

        assert attempts == 0
        assert state.row_closes(NOW, 9) == []

    def test_a_series_is_retired(self, state: ClientState) -> None:
        """What waits of it is gone, and is no loss; the receipt and the others stay."""
        agree(state, ANN, BEN)
        state.commit([draw(0), draw(1), draw(0, person=BEN), draw(1, series=OTHER, person=BEN)])
        state.settle([lease_all(state)[0].number], {})
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

    def test_a_true_value_is_wiped_when_it_has_left(
        self, engine: Engine, state: ClientState
    ) -> None:
        """Delivered or dropped: its row stays in the receipt, its message does not."""
        agree(state)
        secret = b"a-true-value"
        draws = [draw(period, message=secret) for period in range(3)]
        state.commit([replace(each, is_true=True) for each in draws])
        first, second, third = (queued_report.number for queued_report in lease_all(state))
        state.settle([first], {second: Loss.FULL, third: Loss.AGED})

        assert statuses(state) == ["delivered", "full", "aged"]
        assert {each.report.message for each in engine.open().sent(ANN)} == {b"\0"}

    def test_what_is_settled_is_not_put_back(self, state: ClientState) -> None:
        """Another was faster."""
        agree(state)
        state.commit([draw()])
        number = lease_all(state)[0].number
        state.settle([number], {})
        state.reschedule({number: NOW})

        assert lease_all(state) == []
        assert statuses(state) == ["delivered"]

    def test_a_wiped_number_is_nobody_elses(self, state: ClientState) -> None:
        """What is reported of a wiped report is not told of the next one."""
        agree(state)
        state.commit([draw(0)])
        wiped = lease_all(state)[0].number
        state.consent(ANN, False, frozenset(), NOW)
        agree(state)
        state.commit([draw(1)])
        state.settle([wiped], {})

        assert statuses(state) == ["waiting"]

    def test_the_old_are_dropped(self, state: ClientState) -> None:
        """When their time is over, leased or not."""
        agree(state)
        state.commit([draw(0, expires=NOW + 5), draw(1, expires=NOW + 6)])
        state.expire(NOW + 5, OutboxLimits())

        assert statuses(state) == ["aged", "waiting"]
        assert state.losses() == {(Loss.AGED, SERIES): 1}

    @pytest.mark.parametrize("bounds", [OutboxLimits(reports=2), OutboxLimits(message_bytes=8)])
    def test_the_oldest_make_room(self, state: ClientState, bounds: OutboxLimits) -> None:
        """Beyond so many reports, or bytes."""
        agree(state)
        state.commit([draw(at, message=b"four", send_at=NOW - at) for at in range(4)])
        state.expire(NOW, bounds)

        assert statuses(state) == ["evicted", "evicted", "waiting", "waiting"]
        assert state.losses() == {(Loss.EVICTED, SERIES): 2}

    def test_room_that_the_old_left_is_room(self, state: ClientState) -> None:
        """What fits without them is not dropped beside them."""
        agree(state)
        state.commit([draw(0), draw(1, expires=NOW), draw(2)])
        state.expire(NOW, OutboxLimits(reports=2))

        assert statuses(state) == ["waiting", "aged", "waiting"]

    def test_room_is_counted_rightly(self, state: ClientState) -> None:
        """Delivered, wiped and forgotten reports take none."""
        agree(state, ANN, BEN)
        state.commit(
            [draw(at, message=b"four", person=who) for at in range(2) for who in (ANN, BEN)]
        )
        state.settle([lease_all(state)[0].number], {})
        state.consent(ANN, False, frozenset(), NOW)
        state.forget(BEN)
        agree(state, BEN)
        state.commit([draw(5, person=BEN, message=b"four")])
        state.expire(NOW, OutboxLimits(reports=1, message_bytes=4))

        assert statuses(state, BEN) == ["waiting"]
        assert not state.losses()

    def test_the_receipt_keeps_the_last_finished(self, state: ClientState) -> None:
        """However they were finished; those that wait are all kept."""
        agree(state, ANN, BEN)
        state.commit([draw(at) for at in range(KEPT + 5)] + [draw(0, person=BEN)])
        numbers = [
            queued_report.number
            for queued_report in lease_all(state)
            if queued_report.person == ANN
        ]
        state.settle(numbers[-1:3:-1], dict.fromkeys(numbers[1:4], Loss.FULL))

        kept = state.sent(ANN)
        assert [each.report.period for each in kept] == [0, *range(5, KEPT + 5)]
        assert [each.status for each in kept] == ["waiting"] + ["delivered"] * KEPT
        assert statuses(state, BEN) == ["waiting"]

    # -- values that are held ------------------------------------------------------------------

    def test_a_held_value_is_replaced_by_who_knows_it(
        self, engine: Engine, state: ClientState
    ) -> None:
        """Of two processes that merge at once, one has to look again."""
        agree(state)
        first, second = held("1"), held("2", at=NOW + 1)

        assert state.hold(None, first)
        assert not state.hold(None, second)
        assert state.hold(first, second)
        assert not state.hold(first, held("3"))
        assert engine.open().held(ANN, SERIES) == second
        assert state.held(ANN, OTHER) is None

    def test_held_values_fall_due(self, state: ClientState) -> None:
        """Each at its instant; dropped, unless it was replaced, it is gone."""
        agree(state, ANN, BEN)
        early, late = held("ü", due=NOW + 1), held("b", person=BEN, due=NOW + 2)
        for each in (early, late):
            state.hold(None, each)

        assert state.next_held() == NOW + 1
        assert state.held_due(NOW, 1000) == []
        assert state.held_due(NOW + 1, 1000) == [early]
        assert sorted(state.held_due(NOW + 2, 1000), key=lambda each: each.due) == [early, late]
        state.drop_held(replace(early, value="other"))
        assert state.held(ANN, SERIES) == early
        state.drop_held(early)
        assert state.held(ANN, SERIES) is None
        assert state.next_held() == NOW + 2

    def test_a_frozen_period_wipes_what_was_held(self, engine: Engine, state: ClientState) -> None:
        """In the step that stores its answer; a later period's stays."""
        agree(state)
        state.hold(None, held("wiped-with-its-period"))
        state.hold(None, held("of-a-later-period", series=OTHER, period=5))
        state.commit([draw(0), draw(0, series=OTHER)])

        assert engine.open().held(ANN, SERIES) is None
        assert state.held(ANN, OTHER) is not None
        assert state.next_held() is not None

    @pytest.mark.parametrize("how", ["withdrawn", "forgotten"])
    def test_who_leaves_takes_what_is_held_along(self, state: ClientState, how: str) -> None:
        """And nobody else's."""
        agree(state, ANN, BEN)
        for person in (ANN, BEN):
            state.hold(None, held("a", person=person))
            state.hold(None, held("b", person=person, series=OTHER))
        state.forget(ANN) if how == "forgotten" else state.consent(ANN, False, frozenset(), NOW)

        assert [state.held(ANN, series) for series in (SERIES, OTHER)] == [None, None]
        assert {each.person for each in state.held_due(LATE, 1000)} == {BEN}

    @pytest.mark.parametrize("how", ["withdrawn", "forgotten"])
    def test_nothing_is_held_of_who_left(self, state: ClientState, how: str) -> None:
        """Another process may still have a value in memory: it must not come back to the disk."""
        agree(state)
        state.forget(ANN) if how == "forgotten" else state.consent(ANN, False, frozenset(), NOW)

        assert not state.hold(None, held("a"))
        assert state.held(ANN, SERIES) is None

    # -- rows that the aggregator has closed ---------------------------------------------------

    def test_a_closed_row_is_used_up(self, engine: Engine, state: ClientState) -> None:
        """Through its last period, and no further; of one person and one series."""
        agree(state, ANN, BEN)
        state.commit([draw(3), draw(3, person=BEN)])
        state.close_row(ANN, SERIES, 5)
        state.close_row(ANN, SERIES, 4)

        assert engine.open().used(ANN, SERIES) == (5, ROW_CLOSED)
        assert state.commit([draw(4), draw(5), draw(5, 1)]) == [DrawOutcome.FROZEN] * 3
        assert state.commit([draw(6), draw(5, person=BEN), draw(0, series=OTHER)]) == (
            [DrawOutcome.STORED] * 2 + [DrawOutcome.OVER_CAP]  # days of the past, in one lineage
        )

    # -- losses and notes ----------------------------------------------------------------------

    def test_losses_add_up(self, engine: Engine, state: ClientState) -> None:
        """By reason and collection, downwards too."""
        state.lose({(Loss.CRASHED, "a b"): 3, (Loss.AGED, ""): 1})
        state.lose({(Loss.CRASHED, "a b"): -1})

        assert engine.open().losses() == {(Loss.CRASHED, "a b"): 2, (Loss.AGED, ""): 1}

    def test_notes_are_kept(self, engine: Engine, state: ClientState) -> None:
        """The last one under a name; none where none was."""
        state.keep("a", "1")
        state.keep("a", "ü\n")

        assert engine.open().note("a") == "ü\n"
        assert state.note("b") is None

    def test_a_closed_series_stays_closed(self, engine: Engine, state: ClientState) -> None:
        """For whoever opens the state, and whoever withdraws or is forgotten."""
        agree(state)
        add_closed_series(state, SERIES)
        state.consent(ANN, False, frozenset(), NOW)
        state.forget(ANN)

        assert closed_series(engine.open(), [SERIES, OTHER]) == {SERIES}

    def test_a_closed_state_opens_again(self, state: ClientState) -> None:
        """Whoever asks once more after the end gets an answer."""
        agree(state)
        state.close()
        state.close()

        assert state.commit([draw()]) == [DrawOutcome.STORED]
