"""What every state promises, as tests: one battery for all engines [client/state/contract.py]."""

from __future__ import annotations

import hashlib
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import replace

import pytest

from veilcount_client.closing import closed, keep_closed
from veilcount_client.losses import Loss
from veilcount_client.state import KEPT, Bounds, Draw, Fate, Parcel, Spent, State
from veilcount_client.state.secrets import key_of
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
    day: int | None = None,
    life_cap: int = 1000 * COST,
    day_cap: int = 1000 * COST,
    send_at: float = NOW,
    earliest: float = NOW,
    expires: float = LATE,
    free: bool = False,
) -> Draw:
    """Return a draw of one epsilon that may leave at once."""
    report = Report(series, period, 3, hashlib.md5(person).digest(), answer, message)  # noqa: S324
    return Draw(
        person=person,
        lineage=lineage,
        series=series,
        period=period,
        answer=answer,
        cost=COST,
        day=DAY + period if day is None else day,
        day_cap=day_cap,
        life_cap=life_cap,
        report=report,
        earliest=earliest,
        send_at=send_at,
        expires=expires,
        free=free,
    )


def agree(state: State, *persons: bytes) -> None:
    """Have persons consent."""
    for person in persons or (ANN,):
        state.consent(person, True, frozenset({SERIES, OTHER}), NOW)


def lease_all(state: State, now: float = NOW, until: float = NOW + 600) -> list[Parcel]:
    """Lease whatever is due."""
    return state.lease(now, until, 1000)


def statuses(state: State, person: bytes = ANN) -> list[str]:
    """Return what became of a person's reports."""
    return [sent.status for sent in state.sent(person)]


def spent(state: State, person: bytes = ANN, lineage: str = "theme") -> int:
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
    def open(self) -> State:
        """Open the state."""

    @abstractmethod
    def everything(self) -> bytes:
        """Return all bytes that are stored."""


class StateContract:
    """The promises of a state."""

    @pytest.fixture
    def state(self, engine: Engine) -> Iterator[State]:
        """A new state."""
        state = engine.open()
        yield state
        state.close()

    # -- persons -------------------------------------------------------------------------------

    def test_a_new_person_was_not_asked(self, state: State) -> None:
        """Neither yes nor no, nothing covered."""
        person = state.person(ANN)

        assert person.consented is None
        assert person.covered == frozenset()
        assert len(person.secret) == 32

    def test_a_person_keeps_the_secret(self, engine: Engine, state: State) -> None:
        """Through another opening too."""
        other = engine.open()

        assert state.person(ANN) == state.person(ANN) == other.person(ANN)
        assert state.root == other.root

        other.close()

    def test_persons_have_their_own_secrets(self, state: State) -> None:
        """Nobody's secret is another's."""
        assert state.person(ANN).secret != state.person(BEN).secret

    def test_ids_are_not_stored(self, engine: Engine, state: State) -> None:
        """Neither as text nor as a key that could be made without the root."""
        agree(state, key_of(state.root, "ann@example.org"))

        stored = engine.everything()
        assert b"ann@example.org" not in stored
        assert hashlib.sha256(b"ann@example.org").digest()[:8] not in stored

    def test_any_id_has_a_key(self, state: State) -> None:
        """Lone surrogates come from broken databases."""
        assert len(key_of(state.root, "\udc80")) == 16

    def test_consent_is_kept_with_what_it_covers(self, engine: Engine, state: State) -> None:
        """Since when is that of the first yes."""
        state.consent(ANN, True, frozenset({SERIES}), NOW)
        state.consent(ANN, False, frozenset(), NOW + 1)
        state.consent(ANN, True, frozenset({SERIES, OTHER}), NOW + 2)

        person = engine.open().person(ANN)
        assert person.consented is True
        assert person.covered == {SERIES, OTHER}
        assert person.since == NOW

    def test_a_no_has_no_beginning(self, state: State) -> None:
        """Since begins with the first yes only."""
        state.consent(ANN, False, frozenset(), NOW)

        assert state.person(ANN).consented is False
        assert state.person(ANN).since == 0.0

    def test_who_consents(self, state: State) -> None:
        """Those who said yes, and none of the others."""
        many = [os.urandom(16) for _ in range(40)]
        agree(state, *many, ANN)
        state.consent(BEN, False, frozenset(), NOW)
        state.consent(many[0], False, frozenset(), NOW)
        state.person(bytes(16))

        assert set(state.consenting()) == {*many[1:], ANN}

    def test_a_withdrawal_wipes_what_waits(self, state: State) -> None:
        """What was spent, frozen and delivered stays."""
        agree(state, ANN, BEN)
        state.commit([draw(0), draw(1), draw(0, person=BEN)])
        first = lease_all(state)[0]
        state.settle([first.number], {})
        state.consent(ANN, False, frozenset(), NOW)

        assert statuses(state) == ["delivered"]
        assert spent(state) == 2
        assert state.used(ANN, SERIES) == (1, 1)
        assert [parcel.person for parcel in lease_all(state, NOW + 601)] == [BEN]
        assert not state.losses()

    def test_a_forgotten_person_is_another_with_the_same_ledger(self, state: State) -> None:
        """Secret, answers and outbox are gone; what was spent stays spent."""
        agree(state, ANN, BEN)
        secret = state.person(ANN).secret
        state.commit([draw(0), draw(1), draw(0, series=OTHER), draw(0, person=BEN)])
        state.settle([lease_all(state)[0].number], {})
        rows = state.forget(ANN)

        pseudonym = hashlib.md5(ANN).digest()  # noqa: S324
        assert sorted(rows) == [(SERIES, pseudonym), (OTHER, pseudonym)]
        assert state.person(ANN).secret != secret
        assert state.person(ANN).consented is None
        assert statuses(state) == []
        assert state.used(ANN, SERIES) == (-1, 0)
        assert spent(state) == 3
        assert statuses(state, BEN) == ["waiting"]

    def test_forgetting_a_stranger(self, state: State) -> None:
        """There is nothing to close."""
        assert state.forget(ANN) == []

    # -- answers -------------------------------------------------------------------------------

    def test_a_draw_is_charged_frozen_and_stored(self, engine: Engine, state: State) -> None:
        """All three, and for another opening too."""
        agree(state)
        fates = state.commit([draw(4, message=b"\0\xff")])

        other = engine.open()
        assert fates == [Fate.STORED]
        assert other.spent(ANN) == {"theme": Spent(COST, DAY + 4, COST)}
        assert other.used(ANN, SERIES) == (4, 1)
        assert [each.report for each in other.sent(ANN)] == [draw(4, message=b"\0\xff").report]

    def test_nothing_is_known_of_a_stranger(self, state: State) -> None:
        """Nothing spent, answered or sent."""
        assert state.spent(ANN) == {}
        assert state.used(ANN, SERIES) == (-1, 0)
        assert state.sent(ANN) == []

    @pytest.mark.parametrize("how", ["unknown", "unasked", "withdrawn", "forgotten"])
    def test_without_consent_nothing_is_done(self, state: State, how: str) -> None:
        """Not even for a free draw."""
        if how == "unasked":
            state.person(ANN)
        elif how != "unknown":
            agree(state)
            state.forget(ANN) if how == "forgotten" else state.consent(ANN, False, frozenset(), NOW)
        fates = state.commit([draw(), draw(free=True)])

        assert fates == [Fate.NO_CONSENT] * 2
        assert state.spent(ANN) == {}
        assert statuses(state) == []

    def test_a_slot_is_given_once(self, state: State) -> None:
        """The second draw is charged nothing, and the first stays as it is."""
        agree(state)
        fates = state.commit([draw(message=b"a"), draw(message=b"b")])
        fates += state.commit([draw(message=b"c")])

        assert fates == [Fate.STORED, Fate.FROZEN, Fate.FROZEN]
        assert spent(state) == 1
        assert [each.report.message for each in state.sent(ANN)] == [b"a"]

    def test_answers_of_a_period_come_in_order(self, state: State) -> None:
        """None is left out."""
        agree(state)
        fates = state.commit([draw(0, 1), draw(0, 0), draw(0, 2), draw(0, 1), draw(1, 1)])

        assert fates == [Fate.FROZEN, Fate.STORED, Fate.FROZEN, Fate.STORED, Fate.FROZEN]
        assert state.used(ANN, SERIES) == (0, 2)

    def test_periods_only_move_forward(self, state: State) -> None:
        """A clock set back finds its slots spent."""
        agree(state)
        fates = state.commit([draw(5), draw(3), draw(5), draw(7)])

        assert fates == [Fate.STORED, Fate.FROZEN, Fate.FROZEN, Fate.STORED]
        assert state.used(ANN, SERIES) == (7, 1)

    def test_series_are_frozen_apart(self, state: State) -> None:
        """One's period is not another's."""
        agree(state, ANN, BEN)
        fates = state.commit([draw(5), draw(3, series=OTHER), draw(3, person=BEN)])

        assert fates == [Fate.STORED] * 3
        assert state.used(ANN, OTHER) == (3, 1)

    def test_the_cap_for_life(self, state: State) -> None:
        """It may be reached and not passed; who is refused leaves no trace."""
        agree(state)
        fates = state.commit([draw(period, life_cap=2 * COST) for period in range(3)])

        assert fates == [Fate.STORED, Fate.STORED, Fate.OVER_CAP]
        assert state.spent(ANN) == {"theme": Spent(2 * COST, DAY + 1, COST)}
        assert state.used(ANN, SERIES) == (1, 1)
        assert len(state.sent(ANN)) == 2

    def test_the_cap_of_a_day(self, state: State) -> None:
        """The next day begins anew."""
        agree(state)
        fates = state.commit([draw(0, answer, day_cap=2 * COST) for answer in range(3)])
        fates += state.commit([draw(1, day_cap=2 * COST)])

        assert fates == [Fate.STORED, Fate.STORED, Fate.OVER_CAP, Fate.STORED]
        assert state.spent(ANN) == {"theme": Spent(3 * COST, DAY + 1, COST)}

    def test_a_day_in_the_past_counts_today(self, state: State) -> None:
        """Two redefinitions must not share a day by going back to it."""
        agree(state)
        fates = state.commit(
            [
                draw(9, day_cap=2 * COST),
                draw(0, series=OTHER, day_cap=2 * COST),
                draw(1, series=OTHER, day_cap=2 * COST),
            ]
        )

        assert fates == [Fate.STORED, Fate.STORED, Fate.OVER_CAP]
        assert state.spent(ANN) == {"theme": Spent(2 * COST, DAY + 9, 2 * COST)}

    def test_a_redefinition_spends_what_is_left(self, state: State) -> None:
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

        assert fates == [Fate.STORED, Fate.OVER_CAP, Fate.STORED, Fate.STORED]

    def test_a_true_value_is_charged_and_not_stored(self, state: State) -> None:
        """Only its slot is spent."""
        agree(state)
        fates = state.commit([replace(draw(), report=None)] * 2)

        assert fates == [Fate.STORED, Fate.FROZEN]
        assert spent(state) == 1
        assert state.sent(ANN) == []
        assert lease_all(state) == []

    def test_a_free_draw_is_stored_only(self, state: State) -> None:
        """As often as one likes, over any cap."""
        agree(state)
        fates = state.commit([draw(free=True, life_cap=0, day_cap=0)] * 3)

        assert fates == [Fate.STORED] * 3
        assert state.spent(ANN) == {}
        assert state.used(ANN, SERIES) == (-1, 0)
        assert statuses(state) == ["waiting"] * 3

    def test_an_empty_commit(self, state: State) -> None:
        """Nothing to do is no fault."""
        assert state.commit([]) == []
        assert state.lease(NOW, NOW, 10) == []

    def test_a_thousand_draws_at_once(self, state: State) -> None:
        """Of a thousand persons, in one step, in order."""
        persons = [os.urandom(16) for _ in range(1000)]
        agree(state, *persons[::100])
        fates = state.commit([draw(person=person) for person in persons])

        assert [fate is Fate.STORED for fate in fates] == [not at % 100 for at in range(1000)]
        assert state.waiting(NOW) == 10

    # -- the outbox ----------------------------------------------------------------------------

    def test_what_is_due_is_leased(self, state: State) -> None:
        """The longest due first, with all that was stored, and not more than asked for."""
        agree(state)
        state.commit([draw(at, send_at=NOW + 3 - at) for at in range(3)])
        state.commit([draw(9, send_at=NOW + 9)])
        first = state.lease(NOW + 3, NOW + 600, 2)
        rest = state.lease(NOW + 3, NOW + 600, 2)

        assert [parcel.report for parcel in first] == [draw(2).report, draw(1).report]
        assert [parcel.report for parcel in rest] == [draw(0).report]
        assert [parcel.send_at for parcel in first] == [NOW + 1, NOW + 2]
        assert {parcel.person for parcel in first} == {ANN}
        assert {parcel.tries for parcel in first} == {0}

    def test_in_a_hurry_leaves_what_may(self, state: State) -> None:
        """A hidden instant is never hurried, nor what is on its way."""
        agree(state)
        state.commit([draw(0, send_at=NOW), draw(1, send_at=LATE)])
        state.commit([draw(2, send_at=LATE, earliest=LATE)])
        taken = lease_all(state)
        hurried = state.lease(NOW, NOW + 600, 1, hurry=True)

        assert [parcel.report.period for parcel in taken + hurried] == [0, 1]
        assert state.lease(NOW, NOW + 600, 1, hurry=True) == []

    def test_a_lease_ends(self, state: State) -> None:
        """Then, and not before, another may take the report."""
        agree(state)
        state.commit([draw()])
        taken = lease_all(state, NOW, NOW + 600)

        assert lease_all(state, NOW + 599) == []
        assert state.lease(NOW + 599, NOW + 999, 10, hurry=True) == []
        assert lease_all(state, NOW + 600, NOW + 1200) == taken

    def test_when_something_is_next_due(self, state: State) -> None:
        """Nothing, the first report, or the end of its lease."""
        agree(state)
        none = state.next_due()
        state.commit([draw(0, send_at=NOW + 5), draw(1, send_at=NOW)])
        first = state.next_due()
        lease_all(state, NOW, NOW + 3)

        assert none is None
        assert first == NOW
        assert state.next_due() == NOW + 3

    def test_a_hurried_lease_is_due_at_its_time(self, state: State) -> None:
        """Not before, though its lease ends before."""
        agree(state)
        state.commit([draw(send_at=NOW + 900)])
        state.lease(NOW, NOW + 600, 1, hurry=True)

        assert state.next_due() == NOW + 900
        assert lease_all(state, NOW + 899) == []

    def test_what_waits(self, state: State) -> None:
        """What may leave, on its way or not; not what is hidden until later."""
        agree(state)
        state.commit([draw(0, send_at=NOW), draw(1, send_at=LATE)])
        state.commit([draw(2, send_at=LATE, earliest=LATE)])
        lease_all(state)

        assert state.waiting(NOW) == 2
        assert state.waiting(NOW - 1) == 0
        assert state.waiting(LATE) == 3

    def test_delivered_reports_stay_in_the_receipt(self, state: State) -> None:
        """They are no loss, and never leave again."""
        agree(state)
        state.commit([draw()])
        state.settle([parcel.number for parcel in lease_all(state)], {})

        assert statuses(state) == ["delivered"]
        assert not state.losses()
        assert state.next_due() is None
        assert state.waiting(LATE) == 0

    def test_dropped_reports_are_counted_once(self, state: State) -> None:
        """By reason and series, however often it is told."""
        agree(state)
        state.commit([draw(0), draw(1)])
        first, second = (parcel.number for parcel in lease_all(state))
        state.settle([], {first: Loss.STALE, second: Loss.FULL})
        state.settle([first], {second: Loss.STALE, 999: Loss.STALE})

        assert statuses(state) == ["stale", "full"]
        assert state.losses() == {(Loss.STALE, SERIES): 1, (Loss.FULL, SERIES): 1}

    def test_put_back_a_report_is_due_again(self, state: State) -> None:
        """At its time, one try older, its lease over."""
        agree(state)
        state.commit([draw()])
        number = lease_all(state)[0].number
        state.retry({number: NOW + 7, 999: NOW})

        assert state.next_due() == NOW + 7
        assert lease_all(state, NOW + 6) == []
        assert [(each.send_at, each.tries) for each in lease_all(state, NOW + 7)] == [(NOW + 7, 1)]

    def test_what_is_settled_is_not_put_back(self, state: State) -> None:
        """Another was faster."""
        agree(state)
        state.commit([draw()])
        number = lease_all(state)[0].number
        state.settle([number], {})
        state.retry({number: NOW})

        assert lease_all(state) == []
        assert statuses(state) == ["delivered"]

    def test_a_wiped_number_is_nobody_elses(self, state: State) -> None:
        """What is told of a wiped report is not told of the next one."""
        agree(state)
        state.commit([draw(0)])
        wiped = lease_all(state)[0].number
        state.consent(ANN, False, frozenset(), NOW)
        agree(state)
        state.commit([draw(1)])
        state.settle([wiped], {})

        assert statuses(state) == ["waiting"]

    def test_the_old_are_dropped(self, state: State) -> None:
        """When their time is over, leased or not."""
        agree(state)
        state.commit([draw(0, expires=NOW + 5), draw(1, expires=NOW + 6)])
        state.expire(NOW + 5, Bounds())

        assert statuses(state) == ["aged", "waiting"]
        assert state.losses() == {(Loss.AGED, SERIES): 1}

    @pytest.mark.parametrize("bounds", [Bounds(reports=2), Bounds(message_bytes=8)])
    def test_the_oldest_make_room(self, state: State, bounds: Bounds) -> None:
        """Beyond so many reports, or bytes."""
        agree(state)
        state.commit([draw(at, message=b"four", send_at=NOW - at) for at in range(4)])
        state.expire(NOW, bounds)

        assert statuses(state) == ["evicted", "evicted", "waiting", "waiting"]
        assert state.losses() == {(Loss.EVICTED, SERIES): 2}

    def test_room_that_the_old_left_is_room(self, state: State) -> None:
        """What fits without them is not dropped beside them."""
        agree(state)
        state.commit([draw(0), draw(1, expires=NOW), draw(2)])
        state.expire(NOW, Bounds(reports=2))

        assert statuses(state) == ["waiting", "aged", "waiting"]

    def test_room_is_counted_rightly(self, state: State) -> None:
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
        state.expire(NOW, Bounds(reports=1, message_bytes=4))

        assert statuses(state, BEN) == ["waiting"]
        assert not state.losses()

    def test_the_receipt_keeps_the_last_finished(self, state: State) -> None:
        """However they were finished; those that wait are all kept."""
        agree(state, ANN, BEN)
        state.commit([draw(at) for at in range(KEPT + 5)] + [draw(0, person=BEN)])
        numbers = [parcel.number for parcel in lease_all(state) if parcel.person == ANN]
        state.settle(numbers[-1:3:-1], dict.fromkeys(numbers[1:4], Loss.FULL))

        kept = state.sent(ANN)
        assert [each.report.period for each in kept] == [0, *range(5, KEPT + 5)]
        assert [each.status for each in kept] == ["waiting"] + ["delivered"] * KEPT
        assert statuses(state, BEN) == ["waiting"]

    # -- losses and notes ----------------------------------------------------------------------

    def test_losses_add_up(self, engine: Engine, state: State) -> None:
        """By reason and collection, downwards too."""
        state.lose({(Loss.CRASHED, "a b"): 3, (Loss.AGED, ""): 1})
        state.lose({(Loss.CRASHED, "a b"): -1})

        assert engine.open().losses() == {(Loss.CRASHED, "a b"): 2, (Loss.AGED, ""): 1}

    def test_notes_are_kept(self, engine: Engine, state: State) -> None:
        """The last one under a name; none where none was."""
        state.keep("a", "1")
        state.keep("a", "ü\n")

        assert engine.open().note("a") == "ü\n"
        assert state.note("b") is None

    def test_a_closed_series_stays_closed(self, engine: Engine, state: State) -> None:
        """For whoever opens the state, and whoever withdraws or is forgotten."""
        agree(state)
        keep_closed(state, SERIES)
        state.consent(ANN, False, frozenset(), NOW)
        state.forget(ANN)

        assert closed(engine.open(), [SERIES, OTHER]) == {SERIES}

    def test_a_closed_state_opens_again(self, state: State) -> None:
        """Whoever asks once more after the end gets an answer."""
        agree(state)
        state.close()
        state.close()

        assert state.commit([draw()]) == [Fate.STORED]
