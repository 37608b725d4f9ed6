"""From an answer to a stored report: one draw per slot, ever.

A draw leaves this process only by the commit that charges it and freezes its slot.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from veilcount_shared import Collection, RandomSource, periods, schedule
from veilcount_shared.budget_claims import Claim, micro
from veilcount_shared.collection import Presence
from veilcount_shared.report import Report

from ..state import (
    ROW_CLOSED,
    ClientState,
    DrawOutcome,
    PersonState,
    ReportDraw,
    StateError,
    memory_outbox,
)
from ..state.losses import Loss, LossCounter
from ..state.memory_outbox import MemoryOutbox
from . import answer_times
from .answer_times import expiry, instants, sent_to_shuffler_at

if TYPE_CHECKING:
    from .shuffler_sealing import Sealing

Used = dict[tuple[bytes, str], tuple[int, int]]  # by person and series: last period, its answers

JITTER_GRAIN = 1_000_000
TRIES = 3  # other processes may take a slot between the look and the commit


@dataclass(frozen=True, slots=True)
class PersonAnswer:
    """An answer to be drawn: to a record, or to the absence of one."""

    person: PersonState
    collection: Collection
    period: int
    segment: int
    value: object
    at: float
    absent: bool = False

    @property
    def round(self) -> int:
        """The round of the coverage that it was recorded under."""
        coverage = self.person.coverage.get(self.collection.fingerprint)
        return coverage.round if coverage else 0

    @property
    def instants(self) -> tuple[float, ...]:
        """The instants of its period's answers, none before the person consented."""
        return instants(self.person, self.collection, self.period)


@dataclass
class AnswerDrawer:
    """Draws answers and commits the reports."""

    state: ClientState
    randomness: RandomSource
    claims: Mapping[str, Claim]
    jitter: float
    losses: LossCounter
    outbox: MemoryOutbox  # of true values
    uncapped: bool = False
    sealing: Sealing | None = None  # of collections that travel by shuffler: needs cryptography

    def store(self, answers: Iterable[PersonAnswer]) -> None:
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

    def _commit(self, answers: list[PersonAnswer]) -> list[PersonAnswer]:
        """Commit what has a free slot; return what another process was faster with."""
        used: Used = {}
        results = [(answer, self._draw_next(answer, used)) for answer in answers]
        drawn = [(answer, *draw) for answer, draw in results if not isinstance(draw, Loss)]
        outcomes = self.state.commit([draw for _, draw, _ in drawn]) if drawn else []
        for answer, loss in results:
            if isinstance(loss, Loss) and not answer.absent:
                self.losses.add(loss, answer.collection.name)
        again = []
        for (answer, draw, report), outcome in zip(drawn, outcomes, strict=True):
            if outcome is DrawOutcome.FROZEN:
                again.append(answer)
            elif outcome is not DrawOutcome.STORED:
                self.losses.add(Loss(outcome), answer.collection.name)
            elif draw.report is None:
                self.outbox.add(answer.collection.name, draw, report)
        return again

    def _draw_next(self, answer: PersonAnswer, used: Used) -> tuple[ReportDraw, Report] | Loss:
        """Draw an answer in the next slot of its period, or say why there can be none."""
        key = (answer.person.key, answer.collection.fingerprint)
        if key not in used:
            used[key] = self.state.used(*key)
        number = 0 if self.uncapped else _next_answer(used[key], answer)
        if number is None:
            return Loss.CLOSED if used[key][1] == ROW_CLOSED else Loss.FROZEN
        draw, report = self.draw(answer, number, self._message(answer))
        if answer.collection.batch is not None:
            sealed = self._seal(answer, report)
            if isinstance(sealed, Loss):
                return sealed
            draw = replace(draw, sealed=sealed)
        used[key] = (answer.period, number + 1)
        return draw, report

    def _seal(self, answer: PersonAnswer, report: Report) -> bytes | Loss:
        """Return what leaves in place of the report of a collection that has batches."""
        if self.sealing is None:  # such a collection was not accepted
            return Loss.NO_KEY
        return self.sealing.seal(answer.person.key, answer.collection, report)

    def draw(self, answer: PersonAnswer, number: int, message: int) -> tuple[ReportDraw, Report]:
        """Return the report of a randomized answer, which leaves only if it is committed."""
        person, collection, period = answer.person, answer.collection, answer.period
        report = Report(
            fingerprint=collection.fingerprint,
            period=period,
            segment=answer.segment,
            pseudonym=schedule.derive_pseudonym(
                person.secret, collection, period, self.randomness, number
            ),
            slot=schedule.draw_slot(person.secret, collection, period, number),
            message=collection.pack(message),
        )
        earliest, send_at = self._times(answer, number)
        claim = self.claims[collection.name]
        first_day, end_day = periods.calendar_range(
            collection.unit, collection.start, collection.until, period
        )
        is_true = collection.trust.reveals
        draw = ReportDraw(
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
            expires=expiry(collection, period),
            free=self.uncapped,
            is_true=is_true,
            round=answer.round,
        )
        return draw, report

    def _times(self, answer: PersonAnswer, number: int) -> tuple[float, float]:
        """Return before when an answer must not leave, and when it does.

        A hidden one leaves in the minute after the one in which its absence would be drawn: both
        are stored before, and the odd second tells neither which it is nor how the clock is off.
        A sealed one leaves at its instant after the period and is never hurried.
        """
        if answer.collection.batch is not None:
            if self.uncapped:  # to a shuffler for development, which waits for no period's end
                return answer.at, answer.at
            leaves = sent_to_shuffler_at(answer.person, answer.collection, answer.period)
            return expiry(answer.collection, answer.period), leaves
        share = self.randomness.below(JITTER_GRAIN) / JITTER_GRAIN
        if answer.collection.presence is Presence.HIDDEN:
            leaves = answer.instants[number] + answer_times.MINUTE * (1 + share)
            return leaves, leaves
        in_memory = answer.collection.trust.reveals
        in_memory = in_memory and not answer.collection.held_on_device
        longest = min(self.jitter, memory_outbox.JITTER) if in_memory else self.jitter
        return answer.at, answer.at + longest * share

    def _message(self, answer: PersonAnswer) -> int:
        if answer.absent:
            return answer.collection.randomize_absent(self.randomness)
        return answer.collection.message(answer.value, self.randomness)


def _next_answer(used: tuple[int, int], answer: PersonAnswer) -> int | None:
    """Return which of its period's answers this is; None if all are, or it is past."""
    last, answers = used
    if answer.period < last:
        return None
    number = answers if answer.period == last else 0
    return number if number < answer.collection.per_day else None
