"""What active adversaries reach with the logs of their parties.

Each tries several ways and takes the best. Three targets: rows of two questions of one person, rows
of one question in two periods, and whose report one is: of which account, and of somebody who
recorded or not. A figure counts what is right, next to the
most that a blind guess has right. Where presence is public, so is the hour of a record, and a blind
guess pairs within it.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from random import Random

import numpy as np

from ..client.device_fixtures import DAY, HOUR, MINUTE
from .cells import PERIODS, Question
from .guesses import Figure, Guess, best, blind_choice, blind_pairing
from .parties import Attempt, Logs, Row, TokenRequest
from .simulation import NAMES
from .ways import AFTER, WAYS, assign, by_member, circular, seen

FEWEST = 10  # persons in a pairing: all of fewer may be right by chance
SOON = 4 * HOUR
SERVER, SHUFFLER, WITH_ISSUER, BETWEEN, ALL = ADVERSARIES = (
    "server", "shuffler", "server + issuer", "server + relay or shuffler", "all",
)  # fmt: skip
QUESTIONS, PERIOD_ROWS, ACCOUNTS, RECORDERS = TARGETS = (
    "questions", "periods", "accounts", "recorders",
)  # fmt: skip


# -- pairing rows of one person --------------------------------------------------------------------


def pair_guesses(
    logs: Logs, target: str, where: str, ones: Sequence[Row], others: Sequence[Row]
) -> Iterator[Guess]:
    """Yield what each way of pairing has right."""
    strata = _strata(logs, target, ones, others)
    if len(strata) < FEWEST:
        return
    sides = seen(logs, ones), seen(logs, others)
    distribution = blind_pairing(strata)
    for way in WAYS:
        costs = way(*sides)
        if target == PERIOD_ROWS:
            costs = by_member(costs, *(side.members for side in sides))
        pairs = assign(costs)
        right = _persons(logs, ((ones[i], others[j]) for i, j in pairs))
        yield Guess(target, where, way.__name__, right, len(strata), distribution)


def _persons(logs: Logs, pairs: Iterable[tuple[Row, Row]]) -> int:
    """Return of how many persons two rows are paired; who forgot has several."""
    persons = ((logs.person(one), logs.person(other)) for one, other in pairs)
    return len({person for person, another in persons if person == another})


def _strata(
    logs: Logs, target: str, ones: Sequence[Row], others: Sequence[Row]
) -> list[tuple[object, ...]]:
    """Return what is public of each person who has a row on both sides.

    The hours; and of a group in two periods the question, which is drawn once for all of them.
    """
    hours = [{logs.person(row): logs.hour(row) for row in rows} for rows in (ones, others)]
    of_period = target == PERIOD_ROWS
    members = {logs.person(row): logs.member(row) if of_period else 0 for row in ones}
    persons = hours[0].keys() & hours[1].keys()
    return [(hours[0][person], hours[1][person], members[person]) for person in persons]


# -- the server ------------------------------------------------------------------------------------


def pairings(logs: Logs) -> Iterator[tuple[str, str, list[Row], list[Row]]]:
    """Yield what is to be paired: the target, a description, and the rows of both sides.

    Where a row is a person's for the whole campaign, nothing is left to pair over periods.
    """
    is_linked = logs.combination.linkage == "collection"
    periods = [None] if is_linked else list(range(PERIODS))
    series = sorted({row[:2] for row in logs.attempts}, key=lambda series: NAMES.index(series[1]))

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
        yield from recorder_guesses(logs.attempts, logs.active)


Feature = Callable[[Sequence[Attempt]], float]
FEATURES: Mapping[str, Feature] = {
    "first seen": lambda attempts: attempts[0].instant,
    "last seen": lambda attempts: attempts[-1].instant,
    "hour": lambda attempts: attempts[0].instant % DAY,
    "second": lambda attempts: attempts[0].instant % MINUTE,
    "attempts": len,
    "length": lambda attempts: attempts[0].length,
}


def recorder_guesses(
    log: Mapping[Row, Sequence[Attempt]], active: Container[int]
) -> Iterator[Guess]:
    """Yield how many persons are rightly called those who record, or who never do.

    By persons: all rows of one device come at the hours at which it runs.
    """
    groups: dict[tuple[str, int], list[Sequence[Attempt]]] = {}
    for row, attempts in log.items():
        groups.setdefault((row[0], attempts[0].period), []).append(attempts)
    for name, feature in FEATURES.items():
        scores: dict[int, float] = {}
        for rows in groups.values():
            values = np.array([feature(attempts) for attempts in rows], dtype=float)
            signs = np.sign(values - np.median(values))
            for attempts, sign in zip(rows, signs.tolist(), strict=True):
                person = attempts[0].person
                scores[person] = scores.get(person, 0.0) + sign
        is_active = np.array([person in active for person in scores])
        for way, direction in (("late", 1), ("early", -1)):
            values = direction * np.array(list(scores.values()))
            is_above = values > np.median(values) if len(values) else values.astype(bool)
            right = int((is_above == is_active).sum())
            distribution = blind_choice(len(scores), int(is_active.sum()), int(is_above.sum()))
            yield Guess(RECORDERS, "all rows", f"{way} {name}", right, len(scores), distribution)


# -- the shuffler ----------------------------------------------------------------------------------


def shuffler_guesses(logs: Logs) -> Iterator[Guess]:
    """Yield what times and sizes of envelopes say; addresses join them, which nothing denies."""
    if logs.combination.presence == "hidden" and logs.envelopes:
        yield from recorder_guesses(logs.envelopes, logs.active)


# -- the server with the issuer --------------------------------------------------------------------


def issuer_guesses(logs: Logs) -> Iterator[Guess]:
    """Yield what the issuer's log adds: the account whose tokens fit a report's time."""
    yield from server_guesses(logs)
    series = {logs.question(request) for request in logs.requests}
    for question in sorted(series):
        for period in range(PERIODS):
            accounts = _accounts(logs, question, period)
            rows = [
                row
                for row, attempts in sorted(logs.attempts.items())
                if row[:2] == question and attempts[0].period == period
            ]
            name = rows[0][1] if rows else ""
            yield from _account_guesses(logs, f"period {period}, {name}", rows, accounts)


def _accounts(logs: Logs, question: Question, period: int) -> dict[int, list[TokenRequest]]:
    """Return the accounts that were given a token of a period, each with all of its requests."""
    requests: dict[int, list[TokenRequest]] = {}
    for request in logs.requests:
        if logs.question(request) == question and period in request.periods:
            requests.setdefault(request.account, []).append(request)
    return {
        account: own_requests
        for account, own_requests in requests.items()
        if any(request.is_signed for request in own_requests)
    }


def _account_guesses(
    logs: Logs, where: str, rows: Sequence[Row], accounts: Mapping[int, Sequence[TokenRequest]]
) -> Iterator[Guess]:
    order = sorted(accounts, key=lambda account: Random(account).random())
    persons = {logs.person(row) for row in rows} & accounts.keys()
    if len(persons) < FEWEST:
        return
    reports = np.array([logs.attempts[row][0].instant for row in rows])
    requested, signed = (
        np.array([choose(accounts[account]) for account in order])
        for choose in (
            lambda account_requests: account_requests[0].instant,
            lambda account_requests: _signed(account_requests).instant,
        )
    )
    since = np.subtract.outer(reports, signed)
    ranks = [np.argsort(np.argsort(times)) for times in (reports, signed)]
    ways = {
        "soon after the tokens": np.where(since < 0, AFTER - since, since),
        "within hours of the tokens": np.where((since >= 0) & (since < SOON), since, DAY),
        "soon after the request": np.abs(np.subtract.outer(reports, requested)),
        "in the order of the tokens": np.abs(np.subtract.outer(*ranks)).astype(float),
        "at the hour of the tokens": circular(reports, signed, DAY),
    }
    members = {account: logs.requested_member(accounts[account][0]) for account in order}
    distribution = blind_pairing(members[person] for person in persons)
    sides = [logs.member(row) for row in rows], list(members.values())
    for way, costs in ways.items():
        pairs = assign(by_member(costs, *sides))
        right = len({order[j] for i, j in pairs if logs.person(rows[i]) == order[j]})
        yield Guess(ACCOUNTS, where, way, right, len(persons), distribution)


def _signed(requests: Sequence[TokenRequest]) -> TokenRequest:
    return next(request for request in requests if request.is_signed)


# -- with addresses --------------------------------------------------------------------------------


def address_guesses(logs: Logs) -> Iterator[Guess]:
    """Yield what addresses join: the relay's log and the server's have each request at one time.

    Without a relay the server sees the addresses itself; a shuffler has the same sealed bytes.
    """
    log = sorted(logs.relay)
    instants = np.array([instant for instant, _ in log])

    def address(row: Row) -> int:
        if not log:
            return logs.person(row)
        place = int(np.searchsorted(instants, logs.attempts[row][0].instant, "right"))
        return log[place - 1][1]

    for target, where, ones, others in pairings(logs):
        strata = _strata(logs, target, ones, others)
        if len(strata) < FEWEST:
            continue
        rows = {address(row): row for row in others}
        matches = [(row, rows[address(row)]) for row in ones if address(row) in rows]
        right = _persons(logs, matches)
        yield Guess(target, where, "addresses", right, len(strata), blind_pairing(strata))


def between_guesses(logs: Logs) -> Iterator[Guess]:
    yield from server_guesses(logs)
    yield from address_guesses(logs)


def all_guesses(logs: Logs) -> Iterator[Guess]:
    yield from issuer_guesses(logs)
    yield from address_guesses(logs)


GUESSES: Mapping[str, Callable[[Logs], Iterator[Guess]]] = {
    SERVER: server_guesses,
    SHUFFLER: shuffler_guesses,
    WITH_ISSUER: issuer_guesses,
    BETWEEN: between_guesses,
    ALL: all_guesses,
}


def figures(logs: Logs, adversary: str) -> dict[str, Figure]:
    """Return the best that an adversary reaches at each target."""
    return best(GUESSES[adversary](logs))
