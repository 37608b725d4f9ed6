"""What is promised of which combinations, and against whom; everything else is only measured."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from .adversaries import (
    ACCOUNTS,
    PERIOD_ROWS,
    QUESTIONS,
    RECORDERS,
    SERVER,
    SHUFFLER,
    WITH_ISSUER,
    figures,
)
from .cells import ALWAYS, TWO_HOURS, Combination
from .guesses import Figure
from .parties import Logs


class Promise(NamedTuple):
    """A sentence of the README: what an adversary does no better than by chance, and where."""

    target: str
    adversary: str
    cells: str  # as README and threat model name them
    holds: Callable[[Combination], bool]


def _runs_all_day(combination: Combination) -> bool:
    """Whether no device is seen by the hours at which it runs, or none of them in a batch."""
    return combination.life != TWO_HOURS or combination.is_by_shuffler


def _hides_hours(combination: Combination) -> bool:
    """Whether no hour tells persons apart: of hidden reports, or where all record in the same."""
    is_hidden = combination.presence == "hidden" and _runs_all_day(combination)
    return is_hidden or combination.life == ALWAYS or combination.is_by_shuffler


PROMISES = (
    Promise(
        QUESTIONS,
        SERVER,
        "single reports: every linkage, devices that run all day, hidden presence or records in the"
        " same hour; by a shuffler all",
        _hides_hours,
    ),
    Promise(
        PERIOD_ROWS,
        SERVER,
        "linkage period, none and token; otherwise the same",
        lambda combination: _hides_hours(combination) and combination.linkage != "collection",
    ),
    Promise(
        ACCOUNTS,
        WITH_ISSUER,
        "linkage token; single reports: devices that run all day; by a shuffler all",
        lambda combination: _runs_all_day(combination) and combination.linkage == "token",
    ),
    Promise(
        RECORDERS,
        SERVER,
        "hidden presence; every linkage and route, whenever the device runs",
        lambda combination: combination.presence == "hidden",
    ),
    Promise(
        RECORDERS,
        SHUFFLER,
        "hidden presence; by a shuffler, whenever the device runs",
        lambda combination: combination.presence == "hidden" and combination.is_by_shuffler,
    ),
)
PROMISED = {promise.adversary for promise in PROMISES}


def broken(logs: Logs) -> Iterator[tuple[Promise, Figure]]:
    """Yield the promises that a population breaks, each with what an adversary reached."""
    reached = {adversary: figures(logs, adversary) for adversary in PROMISED}
    for promise in PROMISES:
        figure = reached[promise.adversary].get(promise.target)
        if promise.holds(logs.combination) and figure and not figure.is_chance:
            yield promise, figure


def answered_twice(logs: Logs) -> list[tuple[int, str, int]]:
    """Return the person, question and period of each answer that was given more than once."""
    return [answer for answer, reports in logs.answers.items() if len(reports) > 1]


def drawn_twice(logs: Logs) -> list[tuple[int, str]]:
    """Return the person and group of each who answered more than one of its questions."""
    members: dict[tuple[int, str], set[int]] = {}
    for row, attempts in logs.attempts.items():
        members.setdefault((logs.person(row), row[0]), set()).update(
            attempt.member for attempt in attempts
        )
    return [answer for answer, answered in members.items() if len(answered) > 1]
