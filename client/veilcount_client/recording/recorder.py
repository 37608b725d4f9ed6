"""From what was recorded to what a period reports.

`first` and events are drawn as they come and are frozen by the same commit that stores them. What
takes the last, any, largest or summed value is held until the person's pre-drawn instant of the
period: in memory, where the process's end freezes it, or on the device. Where presence is hidden, a
period without a record is answered too, by a randomized `absent`, which is drawn before and leaves
when a recorded answer would. The state of a trend is kept for good (`trend_states`).
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Container, Iterable, Iterator, ValuesView
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice

from veilcount_shared import Collection, periods
from veilcount_shared.collection import Presence, Takes
from veilcount_shared.schedule import SECRET_BYTES

from ..clock import instant
from ..state import HeldValue, PersonState, ReportDraw, StateError
from ..state.key_derivation import person_key
from ..state.losses import Loss
from . import answer_times
from .answer_drawing import AnswerDrawer, PersonAnswer
from .answer_times import (
    CLOCKLESS,
    answering_periods,
    expiry,
    first_period,
    full_minute,
    instants,
    is_answering,
    period_of,
)
from .held_values import decode, encode, merge
from .trend_states import TrendStates, next_report
from .visits import Visits

MOST_DRAWN = 1000  # answers that are drawn in one commit: other processes wait for no more

Collections = ValuesView[Collection]


@dataclass(frozen=True, slots=True)
class RecordCall:
    """One call of `record`: lives in memory only."""

    person: str
    collection: Collection
    value: object
    segment: int
    at: float


class Recorder:
    """Turns records into stored reports."""

    def __init__(
        self,
        drawer: AnswerDrawer,
        outside: Callable[[Collection, float], None] = lambda *_: None,
        not_covered: Callable[[Collection, bool | None], None] = lambda *_: None,
    ) -> None:
        """Hold nothing yet; share the drawer's state and counts.

        `outside` is called for what is recorded before or after its campaign, `not_covered` for
        what is dropped for want of a consent.
        """
        self.drawer, self._outside, self._not_covered = drawer, outside, not_covered
        self.state, self.losses = drawer.state, drawer.losses
        self._held: dict[tuple[bytes, str, int], PersonAnswer] = {}
        self._absences_drawn = -1.0  # the minute up to which they are
        self._next_absence = 0.0  # when the next may be due: before the first look, now
        self._trends, self._visits = TrendStates(drawer), Visits(drawer)

    # -- what comes in -------------------------------------------------------------------------

    def take(self, records: Iterable[RecordCall]) -> None:
        """Store what can be drawn now; hold the rest. All of it, or on a StateError nothing."""
        checked = [(record, self._answer(record)) for record in records]
        answers = [answer for _, answer in checked if isinstance(answer, PersonAnswer)]
        for answer in answers:
            if self._is_visit(answer):
                self._visits.record(answer)
        answers = [answer for answer in answers if not self._is_visit(answer)]
        self.drawer.store(answer for answer in answers if not self._waits(answer))
        for answer in answers:
            if self._waits(answer):
                self._hold(answer)
        for record, loss in checked:
            if isinstance(loss, Loss):
                self.losses.add(loss, record.collection.name)
        with suppress(StateError):  # what could not be put on the device is still in memory
            self._put_on_device()

    def sweep(self, now: float, collections: Collections) -> None:
        """Draw held answers whose instant has come, and the absences that are due."""
        self._put_on_device()
        due = {
            key: replace(answer, at=answer.instants[0])
            for key, answer in self._held.items()
            if answer.instants[0] <= now
        }
        self.drawer.store(due.values())  # first, so that a StateError loses none of them
        for key in due:
            self._held.pop(key, None)
        self._sweep_device(now, collections)
        hidden = _hidden(collections)
        minute = full_minute(now)  # instants are whole minutes: nothing falls due within one
        if hidden and minute != self._absences_drawn:
            self._next_absence = minute + answer_times.MINUTE  # if the state fails below
            self._trends.begin(now, hidden)
            absences = self._absences(now, hidden)
            while some := list(islice(absences, MOST_DRAWN)):
                self.drawer.store(some)
            self._absences_drawn, self._next_absence = minute, self._next_hidden(now, hidden)

    def look_again(self) -> None:
        """Look for absences in the next sweep: somebody else has consented."""
        self._absences_drawn, self._next_absence = -1.0, 0.0

    def _sweep_device(self, now: float, collections: Collections) -> None:
        """Draw what is held on the device and due."""
        collections_by_key = {
            collection.fingerprint: collection
            for collection in collections
            if collection.held_on_device
        }
        while collections_by_key and (due_values := self.state.held_due(now, MOST_DRAWN)):
            trends = [
                pending
                for pending in due_values
                if pending.series in collections_by_key
                and collections_by_key[pending.series].is_trend
            ]
            self._trends.report(
                ((collections_by_key[trend.series], trend) for trend in trends), now
            )
            values = [pending for pending in due_values if pending not in trends]
            self.drawer.store(
                self._of_device(value, collections_by_key[value.series])
                for value in values
                if value.series in collections_by_key
                and not collections_by_key[value.series].is_retention
            )
            for value in values:  # those that were not frozen now had been before, or may not be
                self.state.drop_held(value)

    def finish(self) -> None:
        """Draw everything that is held in memory: the process ends."""
        self._put_on_device()
        self.drawer.store(list(self._held.values()))
        self._held = {}

    def after_fork(self) -> None:
        """Forget, in a forked child, what is the parent's."""
        self._held = {}
        self.losses.take()  # the parent counts its own

    def discard(self, person: bytes, series: Container[str]) -> None:
        """Forget what is held in memory of one person and these series."""
        pending = list(self._held.items())  # in one step: the thread may be holding more
        self._held = {
            key: answer for key, answer in pending if key[0] != person or key[1] not in series
        }

    def next_instant(self, collections: Collections) -> float | None:
        """Return when something here is next due."""
        held = [answer.instants[0] for answer in list(self._held.values())]
        absence = [self._next_absence] if _hidden(collections) else []
        on_device = (
            any(collection.held_on_device for collection in collections) and self.state.next_held()
        )
        return min([*held, *absence, *([on_device] if on_device else [])], default=None)

    def pending_periods(self, person: bytes, series: str) -> list[int]:
        """Return the periods for which a person's value waits in memory."""
        keys = list(self._held)  # in one step: the thread may be holding more
        return [period for key, name, period in keys if (key, name) == (person, series)]

    def unsent(self, person: bytes, series: str) -> list[ReportDraw]:
        """Return the draws of a person's true values that are charged, and in memory only."""
        return self.drawer.outbox.draws(person, series)

    def count_unsent(self, name: str) -> int:
        """Return how many true values of a collection are in memory only."""
        return self.drawer.outbox.count(name)

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

    def _answer(self, record: RecordCall) -> PersonAnswer | Loss:
        collection = record.collection
        person = self.state.person(person_key(self.state.root, record.person))
        if not person.consented or collection.fingerprint not in person.covered:
            self._not_covered(collection, person.consented)
            return Loss.NO_CONSENT
        period = period_of(collection, record.at)
        if period is None:
            self._outside(collection, record.at)
            return Loss.NOT_SELECTED
        if collection.is_retention:  # a visit counts in every period: the next may ask for it
            is_drawn = period >= first_period(person, collection)
        else:
            is_drawn = is_answering(person, collection, period)
        if not (self.drawer.uncapped or is_drawn):
            return Loss.NOT_SELECTED
        if collection.is_trend and not self.drawer.uncapped:
            reported = next_report(person, collection, record.at)
            if reported is None:
                return Loss.NOT_SELECTED  # no interval of this person's level ends after it
            period = reported
        if self.drawer.uncapped:  # each as if of another person: nothing is frozen or adds up
            person = replace(person, secret=os.urandom(SECRET_BYTES))
        return PersonAnswer(person, collection, period, record.segment, record.value, record.at)

    def _waits(self, answer: PersonAnswer) -> bool:
        if self.drawer.uncapped or answer.collection.takes is Takes.FIRST:
            return False
        return answer.at < answer.instants[0]

    def _is_visit(self, answer: PersonAnswer) -> bool:
        return answer.collection.is_retention and not self.drawer.uncapped

    def _hold(self, answer: PersonAnswer) -> None:
        key = (answer.person.key, answer.collection.fingerprint, answer.period)
        pending = self._held.get(key)
        self._held[key] = answer if pending is None else _merged(pending, answer)

    def _put_on_device(self) -> None:
        """Merge what was recorded since the last time into the values that the device holds."""
        for key, answer in list(self._held.items()):
            if answer.collection.held_on_device:
                self._merge_on_device(answer)
                self._held.pop(key, None)

    def _merge_on_device(self, answer: PersonAnswer) -> None:
        """Merge one: again, if another process was faster."""
        collection = answer.collection
        if collection.is_trend:
            self._trends.record(answer)
            return
        while True:
            old = self.state.held(answer.person.key, collection.fingerprint)
            if old is not None and old.period < answer.period:  # its instant has passed
                self.drawer.store([self._of_device(old, collection)])
                self.state.drop_held(old)
                continue
            if old is not None and old.period > answer.period:
                # It waited for the state, or the clock was set back. No value changes its period.
                self.drawer.store([answer])
                return
            new = answer if old is None else _merged(self._of_device(old, collection), answer)
            if self.state.hold(old, self._for_device(new), answer.round):
                return
            if not self.state.agrees(answer.person.key, collection.fingerprint, answer.round):
                self.losses.add(Loss.NO_CONSENT, collection.name)
                return

    def _for_device(self, answer: PersonAnswer) -> HeldValue:
        value, due = encode(answer.value), answer.instants[0]
        fields = (answer.period, answer.segment, value, answer.at, due)
        return HeldValue(answer.person.key, answer.collection.fingerprint, *fields)

    def _of_device(self, held: HeldValue, collection: Collection) -> PersonAnswer:
        """Return the answer of a held value, as of its instant: it leaves by that, not a record."""
        person = self.state.person(held.person)
        value = decode(held.value)
        return PersonAnswer(person, collection, held.period, held.segment, value, held.due)

    # -- absences ------------------------------------------------------------------------------

    def _absences(self, now: float, hidden: list[Collection]) -> Iterator[PersonAnswer]:
        for key in self.state.consenting():
            person = self.state.person(key)
            for collection in hidden:
                if collection.has_absent and collection.fingerprint in person.covered:
                    yield from self._missing(person, collection, now)

    def _next_hidden(self, now: float, hidden: list[Collection]) -> float:
        """Return when an absence is next due, whoever records what until then."""
        people = map(self.state.person, self.state.consenting())
        dues = (
            answer_times.next_instant(person, collection, now)
            for person in people
            for collection in hidden
            if collection.fingerprint in person.covered
        )
        return min((due for due in dues if due is not None), default=math.inf)

    def _missing(
        self, person: PersonState, collection: Collection, now: float
    ) -> Iterator[PersonAnswer]:
        """Yield an absence for each answer whose instant has passed without a record."""
        last, answers = self.state.used(person.key, collection.fingerprint)
        first, drawn = first_period(person, collection), answering_periods(person, collection)
        try:
            today = instant(now).date()
        except CLOCKLESS:
            return
        current = min(
            periods.period_number(collection.unit, collection.start, today), collection.periods - 1
        )
        if last == current and answers >= collection.per_day:
            return
        for period in range(max(first, last), current + 1):
            if period not in drawn or expiry(collection, period) <= now:
                continue
            first_open = answers if period == last else 0
            for due in instants(person, collection, period)[first_open:]:
                if due <= now:
                    yield PersonAnswer(person, collection, period, 0, None, now, absent=True)


def _merged(held: PersonAnswer, new: PersonAnswer) -> PersonAnswer:
    """Return what the period would report after another record.

    Only the value depends on both values: time and segment are the latest record's, whichever
    value stays, or they would tell which one that was.
    """
    return replace(new, value=merge(new.collection.takes, held.value, new.value))


def _hidden(collections: Collections) -> list[Collection]:
    """Return the collections of which everybody reports, whatever they record."""
    return [collection for collection in collections if collection.presence is Presence.HIDDEN]
