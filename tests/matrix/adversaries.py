"""What active adversaries reach with the logs of their parties, and what a blind guess reaches.

Each tries several ways and takes the best. Three targets: rows of two questions of one person, rows
of one question in two periods, and whose report one is: of which account, and of somebody who
recorded or not. A figure counts what is right; the chance is the most that a blind guess has right,
but for one case in 1 / ALPHA over all that an adversary tries. Where presence is public, the hour of
a record is public, so a blind guess pairs within it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from math import comb
from random import Random
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.stats import binom

from ..client.device_fixtures import DAY, HOUR, MINUTE
from .cells import PERIODS
from .lives import NAMES, Attempt, Logs, Row, TokenRequest

ALPHA = 1e-4  # of one adversary in one combination, over all that it tries; everything is seeded
FEWEST = 10  # persons in a pairing: all of fewer may be right by chance
SOON = 2 * HOUR
AFTER = 10**9  # seconds: no request precedes a report by as much
Costs = NDArray[np.float64]
SERVER, WITH_ISSUER, WITH_RELAY, ALL = ADVERSARIES = (
    "server", "server + issuer", "server + relay", "all",
)  # fmt: skip
QUESTIONS, PERIOD_ROWS, ACCOUNTS, RECORDERS = TARGETS = (
    "questions", "periods", "accounts", "recorders",
)  # fmt: skip


class Guess(NamedTuple):
    """What one way of guessing has right of one target."""

    target: str
    where: str  # between which rows
    way: str
    right: int
    of: int
    distribution: tuple[float, ...]  # of what a blind guess has right

    @property
    def p_value(self) -> float:
        return sum(self.distribution[self.right :])


class Figure(NamedTuple):
    """The best guess of an adversary at one target, and the most that chance explains."""

    target: str
    where: str
    way: str
    right: int
    of: int
    chance: int
    p_value: float

    @property
    def is_chance(self) -> bool:
        return self.right <= self.chance

    def __str__(self) -> str:
        return f"{self.right} of {self.of} ({self.chance})"


def best(guesses: Iterable[Guess]) -> dict[str, Figure]:
    """Return the best guess at each target; the chance is corrected for all of the guesses."""
    listed = list(guesses)
    listed += pooled(listed)
    alpha = ALPHA / max(len(listed), 1)
    figures: dict[str, Figure] = {}
    for guess in sorted(listed, key=lambda each: -each.p_value):  # the last is the least likely
        chance = _most(guess.distribution, alpha)
        figures[guess.target] = Figure(*guess[:5], chance, guess.p_value)
    return figures


def pooled(guesses: Iterable[Guess]) -> Iterator[Guess]:
    """Yield what each way has right over all periods or questions, whose draws are independent."""
    groups: dict[tuple[str, str, str], list[Guess]] = {}
    for guess in guesses:
        rows, _, _ = guess.where.partition(",")
        groups.setdefault((guess.target, rows, guess.way), []).append(guess)
    for (target, rows, way), group in groups.items():
        if len(group) > 1:
            right, of = sum(each.right for each in group), sum(each.of for each in group)
            total = np.ones(1)
            for guess in group:
                total = np.convolve(total, guess.distribution)
            yield Guess(target, f"{rows}, all", way, right, of, tuple(total.tolist()))


def _most(distribution: Sequence[float], alpha: float) -> int:
    """Return the least number that a blind guess exceeds with probability alpha at most."""
    tail = 0.0
    for number in range(len(distribution) - 1, -1, -1):
        tail += distribution[number]
        if tail > alpha:
            return number
    return 0


# -- blind guesses ---------------------------------------------------------------------------------


def blind_pairing(strata: Iterable[object]) -> tuple[float, ...]:
    """Return the distribution of what a pairing at random has right within each stratum."""
    return _blind_pairing(tuple(sorted(Counter(strata).values())))


@cache
def _blind_pairing(sizes: tuple[int, ...]) -> tuple[float, ...]:
    total = np.ones(1)
    for size in sizes:
        total = np.convolve(total, _fixed_points(size))
    return tuple(float(probability) for probability in total)


@cache
def _fixed_points(size: int) -> NDArray[np.float64]:
    """Return the distribution of the number of fixed points of a random permutation."""
    derangements = [1, 0]
    for n in range(2, size + 1):
        derangements.append((n - 1) * (derangements[-1] + derangements[-2]))
    total = sum(comb(size, k) * derangements[size - k] for k in range(size + 1))
    return np.array([comb(size, k) * derangements[size - k] / total for k in range(size + 1)])


# -- pairing rows of one person --------------------------------------------------------------------


class Seen(NamedTuple):
    """The rows of one side of a pairing, as arrays."""

    rows: Sequence[Row]
    attempts: Sequence[Sequence[Attempt]]
    first: NDArray[np.float64]
    last: NDArray[np.float64]
    counts: NDArray[np.float64]


def seen(logs: Logs, rows: Sequence[Row]) -> Seen:
    attempts = [logs.attempts[row] for row in rows]
    first, last, counts = (
        np.array([measure(each) for each in attempts])
        for measure in (lambda a: a[0].instant, lambda a: a[-1].instant, lambda a: float(len(a)))
    )
    return Seen(rows, attempts, first, last, counts)


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
    return _circular(ones.first, others.first, DAY)


def by_second(ones: Seen, others: Seen) -> Costs:
    """Pair what comes at the same second of the minute, as a wrong clock would have it."""
    return _circular(ones.first, others.first, MINUTE)


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
    marks = [[_marks(each) for each in side.attempts] for side in (ones, others)]
    differs = np.array([[one != other for other in marks[1]] for one in marks[0]])
    return differs * AFTER + first_seen(ones, others)


WAYS: tuple[Way, ...] = (
    *(first_seen, last_seen, in_order, by_hour, by_second, in_bursts, while_quiet, after_waits),
    by_marks,
)


def _circular(ones: NDArray[np.float64], others: NDArray[np.float64], cycle: float) -> Costs:
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
    return {(attempt.length, attempt.marks) for attempt in attempts}


def assign(costs: Costs) -> list[tuple[int, int]]:
    """Return the pairing with the least costs; ties are broken in an order that says nothing."""
    order = np.array(Random(7).sample(range(costs.shape[1]), costs.shape[1]))
    places, shuffled = linear_sum_assignment(costs[:, order])
    return list(zip(places.tolist(), order[shuffled].tolist(), strict=True))


def pair_guesses(
    logs: Logs, target: str, where: str, ones: Sequence[Row], others: Sequence[Row]
) -> Iterator[Guess]:
    """Yield what each way of pairing has right."""
    strata = _strata(logs, ones, others)
    if len(strata) < FEWEST:
        return
    sides = seen(logs, ones), seen(logs, others)
    distribution = blind_pairing(strata)
    for way in WAYS:
        pairs = assign(way(*sides))
        right = _persons(logs, ((ones[i], others[j]) for i, j in pairs))
        yield Guess(target, where, way.__name__, right, len(strata), distribution)


def _persons(logs: Logs, pairs: Iterable[tuple[Row, Row]]) -> int:
    """Return of how many persons two rows are paired; who forgot has several."""
    persons = ((logs.person(one), logs.person(other)) for one, other in pairs)
    return len({person for person, another in persons if person == another})


def _strata(logs: Logs, ones: Sequence[Row], others: Sequence[Row]) -> list[tuple[int, int]]:
    """Return the public hours of each person who has a row on both sides."""
    hours = [{logs.person(row): logs.hour(row) for row in rows} for rows in (ones, others)]
    return [(hours[0][person], hours[1][person]) for person in hours[0].keys() & hours[1].keys()]


# -- the server ------------------------------------------------------------------------------------


def pairings(logs: Logs) -> Iterator[tuple[str, str, list[Row], list[Row]]]:
    """Yield what is to be paired: the target, a description, and the rows of both sides.

    Where a row is a person's for the whole campaign, nothing is left to pair over periods.
    """
    is_linked = logs.combination.linkage == "collection"
    periods = [None] if is_linked else list(range(PERIODS))
    series = sorted({row[:2] for row in logs.attempts}, key=lambda each: NAMES.index(each[1]))

    def rows_of(one: tuple[str, str], period: int | None) -> list[Row]:
        return [row for row in logs.rows(one[1], period) if row[0] == one[0]]

    for place, one in enumerate(series):
        for other in series[place + 1 :]:
            for period in periods:
                where = f"{one[1]} and {other[1]}, period {period}"
                yield QUESTIONS, where, rows_of(one, period), rows_of(other, period)
        for period, following in pairwise(periods):
            where = f"{one[1]}, periods {period} and {following}"
            yield PERIOD_ROWS, where, rows_of(one, period), rows_of(one, following)


def server_guesses(logs: Logs) -> Iterator[Guess]:
    for target, where, ones, others in pairings(logs):
        yield from pair_guesses(logs, target, where, ones, others)
    if logs.combination.presence == "hidden":
        yield from recorder_guesses(logs)


Feature = Callable[[Sequence[Attempt]], float]
FEATURES: Mapping[str, Feature] = {
    "first seen": lambda attempts: attempts[0].instant,
    "last seen": lambda attempts: attempts[-1].instant,
    "hour": lambda attempts: attempts[0].instant % DAY,
    "second": lambda attempts: attempts[0].instant % MINUTE,
    "attempts": len,
    "length": lambda attempts: attempts[0].length,
}


def recorder_guesses(logs: Logs) -> Iterator[Guess]:
    """Yield how many rows are rightly called those of somebody who records, or who never does."""
    groups: dict[tuple[str, int], list[Row]] = {}
    for row, attempts in logs.attempts.items():
        groups.setdefault((row[0], attempts[0].period), []).append(row)
    for name, feature in FEATURES.items():
        right = of = 0
        for rows in groups.values():
            values = np.array([feature(logs.attempts[row]) for row in rows], dtype=float)
            is_active = np.array([logs.person(row) in logs.active for row in rows])
            right += int(((values > np.median(values)) == is_active).sum())
            of += len(rows)
        distribution = tuple(binom.pmf(range(of + 1), of, 0.5))
        for way, number in ((f"late {name}", right), (f"early {name}", of - right)):
            yield Guess(RECORDERS, "all rows", way, number, of, distribution)


# -- the server with the issuer --------------------------------------------------------------------


def issuer_guesses(logs: Logs) -> Iterator[Guess]:
    """Yield what the issuer's log adds: the account whose tokens fit a report's time."""
    yield from server_guesses(logs)
    series = {request.fingerprint for request in logs.requests}
    for fingerprint in sorted(series):
        for period in range(PERIODS):
            accounts = _accounts(logs, fingerprint, period)
            rows = [
                row
                for row, attempts in sorted(logs.attempts.items())
                if row[0] == fingerprint and attempts[0].period == period
            ]
            name = rows[0][1] if rows else ""
            yield from _account_guesses(logs, f"period {period}, {name}", rows, accounts)


def _accounts(logs: Logs, fingerprint: str, period: int) -> dict[int, list[TokenRequest]]:
    """Return the accounts that were given a token of a period, each with all of its requests."""
    requests: dict[int, list[TokenRequest]] = {}
    for request in logs.requests:
        if request.fingerprint == fingerprint and period in request.periods:
            requests.setdefault(request.account, []).append(request)
    return {
        account: each
        for account, each in requests.items()
        if any(request.is_signed for request in each)
    }


def _account_guesses(
    logs: Logs, where: str, rows: Sequence[Row], accounts: Mapping[int, Sequence[TokenRequest]]
) -> Iterator[Guess]:
    order = sorted(accounts, key=lambda account: Random(account).random())
    persons = {logs.person(row) for row in rows} & accounts.keys()
    if len(persons) < FEWEST:
        return
    reports = np.array([logs.attempts[row][0].instant for row in rows])
    asked, signed = (
        np.array([choose(accounts[account]) for account in order])
        for choose in (lambda each: each[0].instant, lambda each: _signed(each).instant)
    )
    since = np.subtract.outer(reports, signed)
    ranks = [np.argsort(np.argsort(times)) for times in (reports, signed)]
    ways = {
        "soon after the tokens": np.where(since < 0, AFTER - since, since),
        "within hours of the tokens": np.where((since >= 0) & (since < SOON), since, DAY),
        "soon after the request": np.abs(np.subtract.outer(reports, asked)),
        "in the order of the tokens": np.abs(np.subtract.outer(*ranks)).astype(float),
        "at the hour of the tokens": _circular(reports, signed, DAY),
    }
    distribution = blind_pairing([0] * len(persons))
    for way, costs in ways.items():
        pairs = assign(costs)
        right = len({order[j] for i, j in pairs if logs.person(rows[i]) == order[j]})
        yield Guess(ACCOUNTS, where, way, right, len(persons), distribution)


def _signed(requests: Sequence[TokenRequest]) -> TokenRequest:
    return next(request for request in requests if request.is_signed)


# -- with addresses --------------------------------------------------------------------------------


def address_guesses(logs: Logs) -> Iterator[Guess]:
    """Yield what addresses join: the relay's log and the server's have each request at one time.

    Without a relay the server sees the addresses itself.
    """
    log = sorted(logs.relay)
    instants = np.array([instant for instant, _ in log])

    def address(row: Row) -> int:
        if not log:
            return logs.person(row)
        place = int(np.searchsorted(instants, logs.attempts[row][0].instant, "right"))
        return log[place - 1][1]

    for target, where, ones, others in pairings(logs):
        strata = _strata(logs, ones, others)
        if len(strata) < FEWEST:
            continue
        rows = {address(row): row for row in others}
        matches = [(row, rows[address(row)]) for row in ones if address(row) in rows]
        right = _persons(logs, matches)
        yield Guess(target, where, "addresses", right, len(strata), blind_pairing(strata))


def relay_guesses(logs: Logs) -> Iterator[Guess]:
    yield from server_guesses(logs)
    yield from address_guesses(logs)


def all_guesses(logs: Logs) -> Iterator[Guess]:
    yield from issuer_guesses(logs)
    yield from address_guesses(logs)


GUESSES: Mapping[str, Callable[[Logs], Iterator[Guess]]] = {
    SERVER: server_guesses,
    WITH_ISSUER: issuer_guesses,
    WITH_RELAY: relay_guesses,
    ALL: all_guesses,
}


def figures(logs: Logs, adversary: str) -> dict[str, Figure]:
    """Return the best that an adversary reaches at each target."""
    return best(GUESSES[adversary](logs))
