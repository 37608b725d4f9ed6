"""The states of trends on the device, and the report at the end of each person's intervals.

Every person who consents has a state, recorded or not: false, until the first record. So when
reports are drawn, and how many, depends on no value. A state changes by a record, and by the same
commit that stores a report: no sign is ever used twice. Where a state was lost (withdrawn consent),
no sign is left to use, and what is sent from then on is a fair coin.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace

from veilcount_shared import Collection, schedule
from veilcount_shared.budget_claims import micro

from ..state import DrawOutcome, HeldChange, HeldValue, PersonState, ReportDraw
from ..state.losses import Loss
from .answer_drawing import AnswerDrawer, PersonAnswer
from .answer_times import expiry, instants, is_answering, period_of


@dataclass(frozen=True, slots=True)
class KeptState:
    """What is kept of one person and trend; level and signs follow from the secret."""

    value: int  # the last one that was recorded
    initial: int = 0  # when the interval began
    used: int = 0  # signs
    paid: bool = False  # whether epsilon was charged: once, with the first report

    def encode(self) -> str:
        """Return it as text."""
        return json.dumps(asdict(self), separators=(",", ":"))


def decode_state(held: HeldValue) -> KeptState:
    """Return the state of a held value."""
    return KeptState(**json.loads(held.value))


def next_report(person: PersonState, collection: Collection, at: float) -> int | None:
    """Return the period of the report that a value of this instant is for; None: of none."""
    period = period_of(collection, at)
    if period is None:
        return None
    last = _end(person, collection, period)
    if last is not None and at >= instants(person, collection, last)[0]:
        last = _end(person, collection, last + 1)
    return last


def _end(person: PersonState, collection: Collection, period: int) -> int | None:
    """Return the last period of the person's interval that contains a period."""
    if period >= collection.periods:
        return None
    level = schedule.draw_trend(person.secret, collection).level
    return schedule.trend_mechanism(collection).last_period(level, period)


class TrendStates:
    """Begins, changes and reports the states of all persons."""

    def __init__(self, drawer: AnswerDrawer) -> None:
        """Share the drawer's state, randomness and counts of losses."""
        self._drawer, self._state = drawer, drawer.state

    def begin(self, now: float, collections: Iterable[Collection]) -> None:
        """Hold a state for each person who consents and has none."""
        trends = [collection for collection in collections if collection.is_trend]
        for key in self._state.consenting() if trends else ():
            person = self._state.person(key)
            for collection in trends:
                series = collection.fingerprint
                if series in person.covered and self._state.held(key, series) is None:
                    self._begin(person, collection, now)

    def _begin(self, person: PersonState, collection: Collection, now: float) -> None:
        period = next_report(person, collection, now)
        last, _ = self._state.used(person.key, collection.fingerprint)
        if period is None or period <= last or not is_answering(person, collection, period):
            return
        state = self._first(person, collection, period, now)
        self._state.hold(None, state, person.coverage[collection.fingerprint].round)

    def record(self, answer: PersonAnswer) -> None:
        """Change a state to the value that was recorded: again, if another process was faster."""
        person, collection = answer.person, answer.collection
        value = collection.domain.input(answer.value, self._drawer.randomness)
        while True:
            stored_value = self._state.held(person.key, collection.fingerprint)
            if (
                stored_value is not None and stored_value.period < answer.period
            ):  # its instant has passed
                self.report([(collection, stored_value)], answer.at)
                continue
            old = stored_value or self._first(person, collection, answer.period, answer.at)
            new = replace(old, value=replace(decode_state(old), value=value).encode(), at=answer.at)
            if self._state.hold(stored_value, new, answer.round):
                return
            if not self._state.agrees(person.key, collection.fingerprint, answer.round):
                self._drawer.losses.add(Loss.NO_CONSENT, collection.name)
                return

    def report(self, due: Iterable[tuple[Collection, HeldValue]], now: float) -> None:
        """Draw the reports of intervals that have ended, each with the state for the next one."""
        drawn = [
            (interval, self._draw(*interval))
            for interval in due
            if not self._skipped(*interval, now)
        ]
        outcomes = self._state.commit([draw for _, draw in drawn]) if drawn else []
        for ((collection, pending), _), outcome in zip(drawn, outcomes, strict=True):
            if outcome is DrawOutcome.FROZEN:
                last, _ = self._state.used(pending.person, pending.series)
                if last >= pending.period:  # the aggregator closed the row
                    self._skip(collection, pending)
            elif outcome is not DrawOutcome.STORED:
                self._drawer.losses.add(Loss(outcome), collection.name)
                self._state.drop_held(pending)

    def _draw(self, collection: Collection, held: HeldValue) -> ReportDraw:
        person, kept = self._state.person(held.person), decode_state(held)
        state = replace(
            schedule.draw_trend(person.secret, collection), used=kept.used, initial=kept.initial
        )
        message, after = schedule.trend_mechanism(collection).report(
            state, kept.value, self._drawer.randomness
        )
        answer = PersonAnswer(person, collection, held.period, 0, kept.value, held.at)
        draw, _ = self._drawer.draw(answer, 0, message)
        cost = 0 if kept.paid else micro(collection.unit_epsilon)
        new = KeptState(kept.value, after.initial, after.used, paid=True)
        return replace(draw, cost=cost, held=HeldChange(held, self._next(collection, held, new)))

    def _skipped(self, collection: Collection, held: HeldValue, now: float) -> bool:
        """Begin the next interval without a report, if it would come too late to be counted."""
        late = expiry(collection, held.period) <= now
        if late:
            self._skip(collection, held)
        return late

    def _skip(self, collection: Collection, held: HeldValue) -> None:
        state = decode_state(held)
        new = self._next(collection, held, replace(state, initial=state.value))
        if new is None or not self._state.hold(held, new, self._round(collection, held)):
            self._state.drop_held(held)  # if nothing else is held meanwhile

    def _round(self, collection: Collection, held: HeldValue) -> int:
        """Return the round of the coverage: a state is wiped where one ends."""
        coverage = self._state.person(held.person).coverage.get(collection.fingerprint)
        return coverage.round if coverage else 0

    def _next(self, collection: Collection, held: HeldValue, kept: KeptState) -> HeldValue | None:
        """Return the state at the beginning of the next interval; None: there is none."""
        person = self._state.person(held.person)
        period = _end(person, collection, held.period + 1)
        if period is None:
            return None
        due = instants(person, collection, period)[0]
        return replace(held, period=period, value=kept.encode(), due=due)

    def _first(
        self, person: PersonState, collection: Collection, period: int, now: float
    ) -> HeldValue:
        """Return the state of a person of whom none is held: false."""
        series = collection.fingerprint
        begun = self._state.used(person.key, series)[0] >= 0
        lost = KeptState(0, used=schedule.trend_mechanism(collection).changes, paid=True)
        state = lost if begun else KeptState(0)
        due = instants(person, collection, period)[0]
        return HeldValue(person.key, series, period, 0, state.encode(), now, due)
