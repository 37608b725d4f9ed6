"""Coupled runs: what is random is drawn alike in both, wherever it is drawn.

All draws are independent and none is looked at for a value, so it is enough to show that for the
same draws everything else is the same. But one stream would shift as soon as one run draws once
more; here each draw has a source of its own, named after what it is for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

from veilcount_analysis.mechanisms.handler import HANDLERS
from veilcount_client.recording.answer_drawing import AnswerDrawer, PersonAnswer
from veilcount_client.state import QueuedReport
from veilcount_client.testing import SeededRandomSource
from veilcount_shared import RandomSource
from veilcount_shared.mechanisms import Identity, TrendMechanism, TrendState

from ..device_fixtures import number

#: every mechanism, but for those that draw no message of a value
RANDOMIZED = HANDLERS.keys() - {Identity, TrendMechanism}


class ConstantSource(RandomSource):
    """A source that always draws the same word: nothing shifts, however often it is drawn from."""

    def __init__(self, word: int) -> None:
        self._word = word

    def word(self) -> int:
        return self._word


@contextmanager
def coupled(seed: int, series: Callable[[str], str] = str) -> Iterator[None]:
    """Have every draw of an answer, and every order, depend on what it is of and nothing else.

    Of collections with one name in `series`, the draws are the same.
    """
    with ExitStack() as stack:
        for step in ("draw", "_message", "_times"):
            stack.enter_context(patch.object(AnswerDrawer, step, _own_source(step, seed, series)))
        stack.enter_context(patch.object(ConstantSource, "shuffled", _order(seed)))
        yield


@contextmanager
def constant_randomizers() -> Iterator[None]:
    """Replace every randomizer by a constant."""
    with ExitStack() as stack:
        for mechanism in RANDOMIZED:
            stack.enter_context(patch.object(mechanism, "randomize", _constant))
        stack.enter_context(patch.object(TrendMechanism, "report", _without_sign(TrendMechanism)))
        stack.enter_context(patch.object(Identity, "reveal", lambda mechanism, _: 0))
        yield


def _constant(mechanism: Any, _value: object, _source: RandomSource) -> int:
    return next(message for message in range(1 << 20) if mechanism.valid(message))


def _without_sign(mechanism: type[TrendMechanism]) -> Callable[..., Any]:
    """Return the report of a trend with a constant sign; the state changes as ever."""
    report = mechanism.report

    def constant(trend: TrendMechanism, state: TrendState, *more: Any) -> tuple[int, TrendState]:
        message, after = report(trend, state, *more)
        return message & ~1, after

    return constant


def _own_source(step: str, seed: int, series: Callable[[str], str]) -> Callable[..., Any]:
    original: Callable[..., Any] = getattr(AnswerDrawer, step)

    def stepping(answers: AnswerDrawer, answer: PersonAnswer, *more: Any) -> Any:
        kept = answers.randomness
        person, collection = answer.person, answer.collection
        last, drawn = answers.state.used(person.key, collection.fingerprint)
        place = more[:1] or (drawn if last == answer.period else 0)
        named = series(collection.fingerprint)
        what = (seed, step, person.key, named, answer.period, place)
        answers.randomness = SeededRandomSource(number(what))
        try:
            return original(answers, answer, *more)
        finally:
            answers.randomness = kept

    return stepping


def _order(seed: int) -> Callable[..., Any]:
    """Return an order that is as random as any: by a hash of what is ordered."""

    def ordered(_source: RandomSource, items: Iterable[Any]) -> list[Any]:
        return sorted(items, key=lambda item: number(seed, _name(item)))

    return ordered


def _name(item: object) -> object:
    if isinstance(item, QueuedReport):
        report = item.report
        return (report.fingerprint, report.pseudonym, report.period, report.slot)
    return [_name(each) for each in item] if isinstance(item, list) else item
