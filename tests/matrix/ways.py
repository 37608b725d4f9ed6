"""Ways of pairing rows of one person: each returns what a pair costs, and the least costs win."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment

from ..client.device_fixtures import DAY, MINUTE
from .parties import Attempt, Logs, Row

AFTER = 10**9  # seconds: no request precedes a report by as much
Costs = NDArray[np.float64]


class Seen(NamedTuple):
    """The rows of one side of a pairing, as arrays."""

    rows: Sequence[Row]
    attempts: Sequence[Sequence[Attempt]]
    first: NDArray[np.float64]
    last: NDArray[np.float64]
    counts: NDArray[np.float64]
    members: NDArray[np.int64]


def seen(logs: Logs, rows: Sequence[Row]) -> Seen:
    attempts = [logs.attempts[row] for row in rows]
    first, last, counts = (
        np.array([measure(row_attempts) for row_attempts in attempts])
        for measure in (lambda a: a[0].instant, lambda a: a[-1].instant, lambda a: float(len(a)))
    )
    members = np.array([logs.member(row) for row in rows])
    return Seen(rows, attempts, first, last, counts, members)


Way = Callable[[Seen, Seen], Costs]


def first_seen(ones: Seen, others: Seen) -> Costs:
    """Pair what appeared at nearly the same time."""
    return np.abs(np.subtract.outer(ones.first, others.first))


def last_seen(ones: Seen, others: Seen) -> Costs:
    """Pair what fell silent at nearly the same time: a device that was forgotten or moved."""
    return np.abs(np.subtract.outer(ones.last, others.last))


def in_order(ones: Seen, others: Seen) -> Costs:
    """Pair the first with the first, the second with the second."""
    ranks = (np.argsort(np.argsort(side.first)) for side in (ones, others))
    return np.abs(np.subtract.outer(*ranks)).astype(float)


def by_hour(ones: Seen, others: Seen) -> Costs:
    """Pair what comes at the same hours of the day."""
    return circular(ones.first, others.first, DAY)


def by_second(ones: Seen, others: Seen) -> Costs:
    """Pair what comes at the same second of the minute, as a wrong clock would have it."""
    return circular(ones.first, others.first, MINUTE)


def in_bursts(ones: Seen, others: Seen) -> Costs:
    """Pair what often came within the same minute."""
    return _each_pair(ones, others, lambda one, other: -_coincidences(one, other))


def while_quiet(ones: Seen, others: Seen) -> Costs:
    """Pair a row that waits with one that stays silent meanwhile."""
    return _each_pair(ones, others, _interruptions) + _each_pair(others, ones, _interruptions).T


def after_waits(ones: Seen, others: Seen) -> Costs:
    """Pair a row that was asked to wait with one that comes when the wait ends."""
    return _each_pair(ones, others, _delay_after) + _each_pair(others, ones, _delay_after).T


def by_marks(ones: Seen, others: Seen) -> Costs:
    """Pair what has the same length, fields and keys; of these, what is nearest in time."""
    marks = [[_marks(row_attempts) for row_attempts in side.attempts] for side in (ones, others)]
    differs = np.array([[one != other for other in marks[1]] for one in marks[0]])
    return differs * AFTER + first_seen(ones, others)


WAYS: tuple[Way, ...] = (
    *(first_seen, last_seen, in_order, by_hour, by_second, in_bursts, while_quiet, after_waits),
    by_marks,
)


def by_member(costs: Costs, ones: ArrayLike, others: ArrayLike) -> Costs:
    """Keep apart what answers different questions of a group, which no person does."""
    is_other = np.not_equal.outer(ones, others)
    return costs + np.where(is_other, float(AFTER), 0.0)


def circular(ones: NDArray[np.float64], others: NDArray[np.float64], cycle: float) -> Costs:
    distance = np.abs(np.subtract.outer(ones % cycle, others % cycle))
    return np.minimum(distance, cycle - distance)


def _each_pair(
    ones: Seen, others: Seen, cost: Callable[[Sequence[Attempt], Sequence[Attempt]], float]
) -> Costs:
    return np.array([[cost(one, other) for other in others.attempts] for one in ones.attempts])


def _coincidences(one: Sequence[Attempt], other: Sequence[Attempt]) -> float:
    return sum(abs(a.instant - b.instant) < MINUTE for a in one for b in other)


def _interruptions(one: Sequence[Attempt], other: Sequence[Attempt]) -> float:
    return sum(a.instant < b.instant < a.until for a in one for b in other)


def _delay_after(one: Sequence[Attempt], other: Sequence[Attempt]) -> float:
    waits = [a for a in one if a.until > a.instant]
    if not waits:
        return DAY
    return sum(min(abs(b.instant - a.until) for b in other) for a in waits) / len(waits)


def _marks(attempts: Sequence[Attempt]) -> object:
    return {(attempt.length, attempt.marks, attempt.member) for attempt in attempts}


def assign(costs: Costs) -> list[tuple[int, int]]:
    """Return the pairing with the least costs; ties are broken in an order that says nothing."""
    order = np.array(Random(7).sample(range(costs.shape[1]), costs.shape[1]))
    places, shuffled = linear_sum_assignment(costs[:, order])
    return list(zip(places.tolist(), order[shuffled].tolist(), strict=True))
