"""Visits: what `takes = "returning"` keeps on the device, and the answers that follow from it.

Only the last period that a person was there. A visit of a period in which the person does not
answer is kept as well: the period after it may ask for it.
"""

from __future__ import annotations

from dataclasses import replace

from ..state import DrawOutcome, HeldChange, HeldValue
from ..state.losses import Loss
from .answer_drawing import TRIES, AnswerDrawer, PersonAnswer
from .answer_times import expiry, is_answering


class Visits:
    """Keeps visits, and draws whether they are returns."""

    def __init__(self, drawer: AnswerDrawer) -> None:
        """Share the drawer's state, randomness and counts of losses."""
        self._drawer, self._state = drawer, drawer.state

    def record(self, answer: PersonAnswer) -> None:
        """Keep a visit; the first of a period is answered: again, if another process was faster."""
        outcome = DrawOutcome.FROZEN
        for _ in range(TRIES):
            visit = self._state.held(answer.person.key, answer.collection.fingerprint)
            if visit is not None and visit.period >= answer.period:
                break
            if not is_answering(answer.person, answer.collection, answer.period):
                self._state.hold(visit, _visit(answer), answer.round)
                self._drawer.losses.add(Loss.NOT_SELECTED, answer.collection.name)
                return
            outcome = self._answer(answer, visit)
            if outcome is DrawOutcome.STORED:
                return
            if outcome is DrawOutcome.OVER_CAP or self._is_answered(answer):
                # The period's answer was the absence: the next period still asks for the visit.
                self._state.hold(visit, _visit(answer), answer.round)
                break
        self._drawer.losses.add(Loss(outcome), answer.collection.name)

    def _is_answered(self, answer: PersonAnswer) -> bool:
        last, _ = self._state.used(answer.person.key, answer.collection.fingerprint)
        return last >= answer.period

    def _answer(self, answer: PersonAnswer, held: HeldValue | None) -> DrawOutcome:
        returned = held is not None and held.period == answer.period - 1
        message = answer.collection.randomize(returned, self._drawer.randomness)
        draw, _ = self._drawer.draw(answer, 0, message)
        (outcome,) = self._state.commit([replace(draw, held=HeldChange(held, _visit(answer)))])
        return outcome


def _visit(answer: PersonAnswer) -> HeldValue:
    """Return what is kept of a visit, until the last period has been answered."""
    collection = answer.collection
    due = expiry(collection, collection.periods - 1)
    fields = (answer.period, 0, "", answer.at, due)
    return HeldValue(answer.person.key, collection.fingerprint, *fields)
