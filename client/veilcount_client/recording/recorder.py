"""From what was recorded to what a period reports: one draw per slot, ever.

`first` and events are drawn as they come and are frozen by the same commit that stores them. What
takes the last, any, largest or summed value is held until the person's pre-drawn instant of the
period: in memory, where the process's end freezes it, or on the device. Where presence is hidden, a
period without a record is answered too, by a randomized `absent`, which is drawn before and leaves
when a recorded answer would.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Mapping, ValuesView
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import lru_cache

from veilcount_shared import Collection, RandomSource, periods, schedule
from veilcount_shared.collection import Model, Presence, Takes
from veilcount_shared.report import Report
from veilcount_shared.schedule import SECRET_BYTES

from ..clock import instant
from ..state import (
    ROW_CLOSED,
    Draw,
    DrawOutcome,
    HeldValue,
    PersonState,
    State,
    StateError,
    memory_outbox,
)
from ..state.key_derivation import key_of
from ..state.losses import Loss, LossCounter
from ..state.memory_outbox import MemoryOutbox
from .budget_reservation import Claim, micro
from .held_values import decode, encode, merged

JITTER_GRAIN = 1_000_000
MINUTE = 60.0
CLOCKLESS = (ValueError, OverflowError, OSError)  # what a broken clock's reading raises
MOST_HELD = 1000  # values that are drawn in one commit
TRIES = 3  # other processes may take a slot between the look and the commit


Collections = ValuesView[Collection]


@dataclass(frozen=True, slots=True)
class RecordCall:
    """One call of `record`: lives in memory only."""

    person: str
    collection: Collection
    value: object
    segment: int
    at: float


@dataclass(frozen=True, slots=True)
class _Answer:
    """What is to be drawn: a record, or the absence of one."""

    person: PersonState
    collection: Collection
    period: int
    segment: int
    value: object
    at: float
    absent: bool = False


@dataclass
class Recorder:
    """Turns records into stored reports."""

    state: State
    randomness: RandomSource
    claims: Mapping[str, Claim]
    jitter: float
    uncapped: bool = False
    losses: LossCounter = field(default_factory=LossCounter)
    outbox: MemoryOutbox = field(init=False)  # of true values
    _held: dict[tuple[bytes, str, int], _Answer] = field(default_factory=dict)
    _swept: float = -1.0  # the minute whose absences are drawn

    def __post_init__(self) -> None:
        """Count what is lost of true values with all other losses."""
        self.outbox = MemoryOutbox(self.losses)

    # -- what comes in -------------------------------------------------------------------------

    def take(self, records: Iterable[RecordCall]) -> None:
        """Store what can be drawn now; hold the rest. All of it, or on a StateError nothing."""
        judged = [(record, self._answer(record)) for record in records]
        answers = [answer for _, answer in judged if isinstance(answer, _Answer)]
        self._store(answer for answer in answers if not self._waits(answer))
        for answer in answers:
            if self._waits(answer):
                self._hold(answer)
        for record, loss in judged:
            if isinstance(loss, Loss):
                self.losses.add(loss, record.collection.name)
        with suppress(StateError):  # what could not be put on the device is still in memory
            self._put_on_device()

    def sweep(self, now: float, collections: Collections) -> None:
        """Draw held answers whose instant has come, and the absences that are due."""
        self._put_on_device()
        due = {key: held for key, held in self._held.items() if self._instants(held)[0] <= now}
        self._store(due.values())  # first, so that a StateError loses none of them
        for key in due:
            self._held.pop(key, None)
        self._sweep_device(now, collections)
        hidden = _hidden(collections)
        minute = _minute(now)  # instants are whole minutes: nothing falls due within one
        if hidden and minute != self._swept:
            self._store(self._absences(now, hidden))
            self._swept = minute

    def _sweep_device(self, now: float, collections: Collections) -> None:
        """Draw what is held on the device and due."""
        known = {each.fingerprint: each for each in collections if each.held_on_device}
        while known and (held := self.state.held_due(now, MOST_HELD)):
            self._store(
                self._of_device(each, known[each.series]) for each in held if each.series in known
            )
            for each in held:  # those that were not frozen now had been before, or may not be
                self.state.drop_held(each)

    def finish(self) -> None:
        """Draw everything that is held in memory: the process ends."""
        self._put_on_device()
        self._store(list(self._held.values()))
        self._held = {}

    def discard(self, person: bytes | None = None) -> None:
        """Forget what is held in memory, of one person or (in a forked child) of all."""
        held = list(self._held.items())  # in one step: the thread may be holding more
        self._held = {key: answer for key, answer in held if person not in {None, key[0]}}
        if person is None:
            self.outbox.after_fork()
            self.losses.take()  # the parent counts its own
        else:
            self.outbox.discard(person)

    def burn(self, key: bytes, collections: Collections, now: float) -> None:
        """Let a person who comes back give no more answers of hidden presence in this period.

        What was waiting was wiped and is not drawn again; an absence in its place would show it.
        """
        for collection in collections:
            period = _period(collection, now) if now < _end(collection) else collection.periods - 1
            if collection.presence is Presence.HIDDEN and period is not None:
                last, answers = self.state.used(key, collection.fingerprint)
                given = answers if last == period else 0
                self.state.commit(
                    [
                        self._burnt(key, collection, period, answer)
                        for answer in range(given, collection.per_period)
                    ]
                )

    def _burnt(self, key: bytes, collection: Collection, period: int, answer: int) -> Draw:
        """Return a draw that takes a slot, costs nothing and sends nothing."""
        return Draw(
            person=key,
            lineage=self.claims[collection.name].lineage,
            series=collection.fingerprint,
            period=period,
            answer=answer,
            cost=0,
            first_day=0,
            end_day=0,
            day_cap=0,
            life_cap=0,
            report=None,
            earliest=0.0,
            send_at=0.0,
            expires=0.0,
        )

    def next_instant(self, now: float, collections: Collections) -> float | None:
        """Return when something here is next due."""
        held = [self._instants(answer)[0] for answer in list(self._held.values())]
        minute = [_minute(now) + MINUTE] if _hidden(collections) else []
        on_device = any(each.held_on_device for each in collections) and self.state.next_held()
        return min([*held, *minute, *([on_device] if on_device else [])], default=None)

    def write_losses(self) -> None:
        """Add what was lost since the last time to the state's counts."""
        losses = self.losses.take()
        if not losses:
            return
        try:
            self.state.lose(losses)
        except StateError:
            for (loss, collection), count in losses.items():
                self.losses.add(loss, collection, count)  # another time
            raise

    # -- one record ----------------------------------------------------------------------------

    def _answer(self, record: RecordCall) -> _Answer | Loss:
        collection = record.collection
        person = self.state.person(key_of(self.state.root, record.person))
        if not person.consented or collection.fingerprint not in person.covered:
            return Loss.NO_CONSENT
        period = _period(collection, record.at)
        if period is None or not _answers(person.root, collection, period):
            return Loss.NOT_ASKED
        if collection.presence is Presence.HIDDEN and period < _first_period(person, collection):
            return Loss.NOT_ASKED  # the clock was set back: no absence would be drawn for it either
        if self.uncapped:  # each record as if of another person: nothing is frozen, nothing adds up
            person = replace(person, secret=os.urandom(SECRET_BYTES))
        return _Answer(person, collection, period, record.segment, record.value, record.at)

    def _waits(self, answer: _Answer) -> bool:
        takes = answer.collection.takes
        return takes is not Takes.FIRST and answer.at < self._instants(answer)[0]

    def _hold(self, answer: _Answer) -> None:
        key = (answer.person.key, answer.collection.fingerprint, answer.period)
        held = self._held.get(key)
        self._held[key] = answer if held is None else _merged(held, answer)

    def _put_on_device(self) -> None:
        """Merge what was recorded since the last time into the values that the device holds."""
        for key, answer in list(self._held.items()):
            if answer.collection.held_on_device and not self.uncapped:
                self._merge_on_device(answer)
                self._held.pop(key, None)

    def _merge_on_device(self, answer: _Answer) -> None:
        """Merge one: again, if another process was faster."""
        collection = answer.collection
        while True:
            old = self.state.held(answer.person.key, collection.fingerprint)
            if old is not None and old.period < answer.period:  # its instant has passed
                self._store([self._of_device(old, collection)])
                self.state.drop_held(old)
                continue
            if old is not None and old.period > answer.period:
                # It waited for the state, or the clock was set back. No value changes its period.
                self._store([answer])
                return
            new = answer if old is None else _merged(self._of_device(old, collection), answer)
            if self.state.hold(old, self._for_device(new)):
                return
            if not self.state.person(answer.person.key).consented:
                self.losses.add(Loss.NO_CONSENT, collection.name)
                return

    def _for_device(self, answer: _Answer) -> HeldValue:
        person, collection, due = answer.person, answer.collection, self._instants(answer)[0]
        return HeldValue(
            person.key,
            collection.fingerprint,
            answer.period,
            answer.segment,
            encode(answer.value),
            answer.at,
            due,
        )

    def _of_device(self, held: HeldValue, collection: Collection) -> _Answer:
        person = self.state.person(held.person)
        value = decode(held.value)
        return _Answer(person, collection, held.period, held.segment, value, held.at)

    def _instants(self, answer: _Answer) -> tuple[float, ...]:
        return _instants(answer.person, answer.collection, answer.period)

    # -- absences ------------------------------------------------------------------------------

    def _absences(self, now: float, hidden: list[Collection]) -> Iterator[_Answer]:
        for key in self.state.consenting():
            person = self.state.person(key)
            for collection in hidden:
                if collection.fingerprint in person.covered:
                    yield from self._missing(person, collection, now)

    def _missing(
        self, person: PersonState, collection: Collection, now: float
    ) -> Iterator[_Answer]:
        """Yield an absence for each answer whose instant has passed without a record."""
        last, answers = self.state.used(person.key, collection.fingerprint)
        first = _first_period(person, collection)
        try:
            today = instant(now).date()
        except CLOCKLESS:
            return
        current = min(
            periods.period_number(collection.unit, collection.start, today), collection.periods - 1
        )
        for period in range(max(first, last), current + 1):
            if _expiry(collection, period) <= now or not _answers(person.root, collection, period):
                continue
            given = answers if period == last else 0
            for due in _instants(person, collection, period)[given:]:
                if due <= now:
                    yield _Answer(person, collection, period, 0, None, now, absent=True)

    # -- drawing -------------------------------------------------------------------------------

    def _store(self, answers: Iterable[_Answer]) -> None:
        """Draw and commit; what another process was faster with is looked at again.

        A StateError in the first round means that nothing is stored. In a later one it must not
        get out: whoever took the answers again would draw twice for those that are.
        """
        waiting = list(answers)
        if waiting:
            waiting = self._commit(waiting)
        with suppress(StateError):
            for _ in range(TRIES - 1):
                if waiting:
                    waiting = self._commit(waiting)
        for answer in waiting:
            self.losses.add(Loss.FROZEN, answer.collection.name)

    def _commit(self, answers: list[_Answer]) -> list[_Answer]:
        """Commit what has a free slot; return what another process was faster with."""
        used: dict[tuple[bytes, str], tuple[int, int]] = {}
        drawn: list[tuple[_Answer, Draw, Report]] = []
        spent: list[tuple[_Answer, Loss]] = []
        for answer in answers:
            key = (answer.person.key, answer.collection.fingerprint)
            if key not in used:
                used[key] = self.state.used(*key)
            number = 0 if self.uncapped else _next_answer(used[key], answer)
            if number is None:
                if not answer.absent:
                    closed = used[key][1] == ROW_CLOSED
                    spent.append((answer, Loss.CLOSED if closed else Loss.FROZEN))
                continue
            used[key] = (answer.period, number + 1)
            drawn.append((answer, *self._draw(answer, number)))
        fates = self.state.commit([draw for _, draw, _ in drawn]) if drawn else []
        for answer, loss in spent:
            self.losses.add(loss, answer.collection.name)
        again = []
        for (answer, draw, report), fate in zip(drawn, fates, strict=True):
            if fate is DrawOutcome.FROZEN:
                again.append(answer)
            elif fate is not DrawOutcome.STORED:
                self.losses.add(Loss(fate), answer.collection.name)
            elif draw.report is None:
                self.outbox.add(answer.collection.name, draw, report)
        return again

    def _draw(self, answer: _Answer, number: int) -> tuple[Draw, Report]:
        """Randomize one answer. The result leaves this process only if it is committed."""
        person, collection, period = answer.person, answer.collection, answer.period
        report = Report(
            fingerprint=collection.fingerprint,
            period=period,
            segment=answer.segment,
            pseudonym=schedule.derive_pseudonym(person.secret, collection, period, self.randomness),
            slot=schedule.draw_slot(person.secret, collection, period, number),
            message=collection.pack(self._message(answer)),
        )
        earliest, send_at = self._times(answer, number)
        claim = self.claims[collection.name]
        first_day, end_day = periods.calendar_range(
            collection.unit, collection.start, collection.until, period
        )
        is_true = collection.model is Model.CENTRAL
        draw = Draw(
            person=person.key,
            lineage=claim.lineage,
            series=collection.fingerprint,
            period=period,
            answer=number,
            cost=micro(collection.unit_epsilon),
            first_day=first_day.toordinal(),
            end_day=end_day.toordinal(),
            day_cap=claim.day,
            life_cap=claim.life,
            report=None if is_true and not collection.held_on_device else report,
            earliest=earliest,
            send_at=send_at,
            expires=_expiry(collection, period),
            free=self.uncapped,
            is_true=is_true,
        )
        return draw, report

    def _times(self, answer: _Answer, number: int) -> tuple[float, float]:
        """Return before when an answer must not leave, and when it does.

        A hidden one leaves in the minute after the one in which its absence would be drawn: both
        are stored before, and the odd second tells neither which it is nor how the clock is off.
        """
        share = self.randomness.below(JITTER_GRAIN) / JITTER_GRAIN
        if answer.collection.presence is Presence.HIDDEN:
            leaves = self._instants(answer)[number] + MINUTE * (1 + share)
            return leaves, leaves
        in_memory = answer.collection.model is Model.CENTRAL
        in_memory = in_memory and not answer.collection.held_on_device
        longest = min(self.jitter, memory_outbox.JITTER) if in_memory else self.jitter
        return answer.at, answer.at + longest * share

    def _message(self, answer: _Answer) -> int:
        if answer.absent:
            return answer.collection.randomize_absent(self.randomness)
        if answer.collection.model is Model.CENTRAL:
            return answer.collection.reveal(answer.value, self.randomness)
        return answer.collection.randomize(answer.value, self.randomness)


def _next_answer(used: tuple[int, int], answer: _Answer) -> int | None:
    """Return which of its period's answers this would be; None if they are given, or past."""
    last, answers = used
    if answer.period < last:
        return None
    number = answers if answer.period == last else 0
    return number if number < answer.collection.per_period else None


def _merged(held: _Answer, new: _Answer) -> _Answer:
    """Return what the period would report after another record.

    Only the value depends on both values: time and segment are the latest record's, whichever
    value stays, or they would tell which one that was.
    """
    return replace(new, value=merged(new.collection.takes, held.value, new.value))


def _hidden(collections: Collections) -> list[Collection]:
    """Return the collections for which absences are drawn."""
    return [each for each in collections if each.presence is Presence.HIDDEN]


@lru_cache(maxsize=4096)
def _answers(root: bytes, collection: Collection, period: int) -> bool:
    """Whether this person is asked in this period: drawn before any data exists, and for good.

    By the root that survives `forget`: who could draw again could be asked by both of a pair.
    """
    if not schedule.is_selected(root, collection):
        return False
    if collection.answering == collection.periods:
        return True
    return period in schedule.draw_answering_periods(root, collection)


def _instants(person: PersonState, collection: Collection, period: int) -> tuple[float, ...]:
    """Return the instants of a period's answers, none before the person consented."""
    since = math.ceil(person.since / MINUTE) * MINUTE
    drawn = _drawn_instants(person.secret, collection, period)
    return tuple(max(each, since) for each in drawn)


@lru_cache(maxsize=4096)
def _drawn_instants(secret: bytes, collection: Collection, period: int) -> tuple[float, ...]:
    """Return the drawn instants of a period's answers, ascending, on whole minutes."""
    drawn = (
        schedule.draw_instant(secret, collection, period, answer).timestamp()
        for answer in range(collection.per_period)
    )
    return tuple(sorted(math.ceil(each / MINUTE) * MINUTE for each in drawn))


def _first_period(person: PersonState, collection: Collection) -> int:
    """Return the period in which a person consented; 0 if that was before the campaign."""
    return _period(collection, person.since) or 0


def _end(collection: Collection) -> float:
    return schedule.period_end(collection, collection.periods - 1).timestamp()


def _minute(now: float) -> float:
    return now // MINUTE * MINUTE


def _period(collection: Collection, at: float) -> int | None:
    """Return the period of an instant; none, too, of what no calendar has."""
    try:
        return schedule.period_at(collection, instant(at))
    except CLOCKLESS:
        return None


def _expiry(collection: Collection, period: int) -> float:
    """Return when the aggregator stops to accept a period."""
    return (schedule.period_end(collection, period) + timedelta(days=collection.late)).timestamp()
