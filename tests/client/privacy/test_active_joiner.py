"""No active joiner: a server that chooses its replies cannot pair a device's rows by them.

It sees every body and its instant of arrival, but no address, and answers each attempt as it likes:
it turns away with any `Retry-After`, cuts the connection, closes, or asks to be tried again. Over
a relay it has two valid keys, sees which one each body was encrypted to, and may answer that it
does not know it. What one row hears must move no other, so the best pairing that it finds is as
good as a blind one. The same joiner pairs nearly everybody where a device has one back-off for all
its rows, or one memory of what was closed (60 of 60 devices in 8 days, once), or one of which key
was unknown (24 of 24).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from random import Random
from types import SimpleNamespace
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from scipy.stats import poisson

from veilcount_client.delivery import backoff
from veilcount_client.delivery.closed_rows import ClosedRows
from veilcount_client.delivery.transport import Delivered, Later, Outcome
from veilcount_client.delivery.uploader import Uploader
from veilcount_client.state import QueuedReport
from veilcount_client.testing import SeededRandomSource, SettableClock
from veilcount_shared.verdict import UNKNOWN_VERDICT, Verdict
from veilcount_shared.wire import decode_binary

from ..device_fixtures import HOUR, at, clock_at, device_in_memory, file, number
from .relayed_wire import UNKNOWN_KEY, RelayedWire, one_memory_of_keys

DEVICES, DAYS = 40, 4
ALPHA = 1e-7  # of one way of joining two kinds of rows; all randomness is seeded
TURNED_AWAY = 0.6  # of the marked attempts
CLOSED = 0.3  # of the others of them
TROUBLE = "503", "429", "415", "SSLError", "ReadTimeout"

COLLECTIONS = file(
    a={"linkage": "collection"},
    b={"linkage": "collection"},
    c={"linkage": "period"},
    d={"linkage": "period"},
    e={"unit": "event", "per_day": 1, "linkage": "none"},
    f={"unit": "event", "per_day": 1, "linkage": "none"},
)
NAMES = {each.fingerprint: name for name, each in COLLECTIONS.items()}
Row = tuple[str, bytes]  # collection and pseudonym, which is all that tells one from another


class Attempt(NamedTuple):
    """What the server knows of one body: when it came, and what its row was asked for."""

    instant: float
    until: float  # the end of the wait
    key: int = 0  # that it was encrypted to; 0 without a relay
    is_key_refused: bool = False


@dataclass
class Server:
    """Answers each attempt as it likes, and remembers all that it has seen."""

    refused_keys: float = 0.0  # of the marked attempts
    seen: dict[Row, list[Attempt]] = field(default_factory=lambda: defaultdict(list))
    periods: dict[Row, int] = field(default_factory=dict)
    owners: dict[Row, int] = field(default_factory=dict)  # what it does not know
    chance: Random = field(default_factory=lambda: Random(7))

    def answer(
        self, person: int, now: Callable[[], float], body: bytes, _: int, key: int = 0
    ) -> Outcome:
        reports = decode_binary(body).reports  # of one row
        report = reports[0]
        row = NAMES[report.fingerprint], report.pseudonym
        self.owners[row], self.periods[row] = person, report.period
        seconds, outcome = self._choose(row)
        attempt = Attempt(now(), now() + seconds, key, outcome is UNKNOWN_KEY)
        self.seen[row].append(attempt)
        if isinstance(outcome, Delivered):
            return Delivered(outcome.verdicts * len(reports))
        return outcome

    def _choose(self, row: Row) -> tuple[float, Outcome]:
        """Mark half of the collections by delays of all lengths; watch the others."""
        name, pseudonym = row
        retried = UNKNOWN_VERDICT if pseudonym[0] % 2 else Verdict.FULL
        if name in "bdf":
            return 0.0, Delivered((Verdict.COUNTED,))
        if self.refused_keys and self.chance.random() < self.refused_keys:
            return 0.0, UNKNOWN_KEY
        if self.chance.random() < TURNED_AWAY:
            seconds = backoff.retry_after(str(self.chance.choice([1, 301, 3000, 10**6, 10**6])), 0)
            why = self.chance.choice(TROUBLE)
            return seconds, Later(why, seconds if why in {"503", "429"} else 0.0)
        if self.chance.random() < CLOSED:
            return 0.0, Delivered((Verdict.CLOSED,))
        return 0.0, Delivered((self.chance.choice([Verdict.COUNTED, retried]),))

    def rows(self, name: str, period: int | None = None) -> list[Row]:
        """Return the rows of a collection (and a period), in no order."""
        found = [row for row in self.seen if row[0] == name and period in {None, self.periods[row]}]
        self.chance.shuffle(found)
        return found


# -- ways of joining -------------------------------------------------------------------------------

Score = Callable[[Server, Row, Row], float]


def not_while_quiet(server: Server, one: Row, other: Row) -> float:
    """How often the other came while the one was asked to wait: never, if they share a back-off."""
    return sum(
        attempt.instant < each.instant < attempt.until
        for attempt in server.seen[one]
        for each in server.seen[other]
    )


def soon_after_it(server: Server, one: Row, other: Row) -> float:
    """How long after the end of a wait of the one the other came."""
    waits = [
        min((abs(each.instant - attempt.until) for each in server.seen[other]), default=HOUR)
        for attempt in server.seen[one]
    ]
    return float(np.mean(waits)) if waits else HOUR


def in_the_same_rounds(server: Server, one: Row, other: Row) -> float:
    """How often the two came in one second: what waits for one end of a wait leaves together."""
    ours = np.array([each.instant for each in server.seen[one]])
    theirs = np.array([each.instant for each in server.seen[other]])
    return -float((np.abs(ours[:, None] - theirs[None, :]) < 1).any(axis=0).sum())


def under_the_expected_key(server: Server, one: Row, other: Row) -> float:
    """How often the other came under another key than the reply to the one left the device with."""
    return sum(
        attempt.key != _next_key(last)
        for attempt in server.seen[other]
        if (last := _last_before(server.seen[one], attempt.instant))
    )


def _last_before(attempts: list[Attempt], instant: float) -> Attempt | None:
    return next((each for each in reversed(attempts) if each.instant < instant), None)


def _next_key(attempt: Attempt) -> int:
    """Return the key of a device that remembers: of two, the other one once one is unknown."""
    return 3 - attempt.key if attempt.is_key_refused else attempt.key


WAYS = not_while_quiet, soon_after_it, in_the_same_rounds, under_the_expected_key


def joined(server: Server, ones: list[Row], others: list[Row]) -> int:
    """Return how many rows the best way of joining pairs rightly."""
    return max(_joined(server, ones, others, way) for way in WAYS)


def _joined(server: Server, ones: list[Row], others: list[Row], way: Score) -> int:
    cost = np.array([[way(server, one, other) for other in others] for one in ones])
    pairs = zip(*linear_sum_assignment(cost), strict=True)
    return sum(server.owners[ones[int(i)]] == server.owners[others[int(j)]] for i, j in pairs)


def chance() -> int:
    """Return how many a blind pairing has right at most, but for one case in ten million."""
    return int(poisson.isf(ALPHA, 1))


Answer = Callable[..., Outcome]
REFUSED_KEYS = 0.8


def through_a_relay(clock: SettableClock, answer: Answer) -> RelayedWire:
    """Return a network with a relay, whose server has two valid keys."""
    wire = RelayedWire(clock)
    wire.answer = lambda body, reports: answer(body, reports, wire.sealed_to)
    return wire


#: to the server; and of the marked attempts there, how many are told that their key is unknown
LINES: dict[str, tuple[Callable[[SettableClock, Answer], Any], float]] = {
    "direct": (lambda _, answer: SimpleNamespace(send=answer), 0.0),
    "through a relay, with two keys": (through_a_relay, REFUSED_KEYS),
}
DIRECT, RELAYED = LINES


def lives(
    names: str = "abcdef",
    devices: int = DEVICES,
    plant: Callable[[], AbstractContextManager[object]] = nullcontext,
    line: str = DIRECT,
    days: int = DAYS,
) -> Server:
    """Return a server that has seen all devices: each is used once a day, in the same hour."""
    connect, refused_keys = LINES[line]
    server = Server(refused_keys)
    collections = {name: COLLECTIONS[name] for name in names}
    for person in range(devices):
        chances = Random(number("active", person))
        clock = clock_at(at(0, 8))
        wire = connect(clock, partial(server.answer, person, clock.now))
        randomness = SeededRandomSource(person)
        with device_in_memory(
            person, collections, clock, plant=plant, wire=wire, randomness=randomness
        ) as device:
            for day in range(days):
                device.run_until(at(day, 9, chances.uniform(0, HOUR)))
                device.record()
            device.run_until(at(days, 20))
            device.stop()
    return server


def arrivals(server: Server, name: str) -> int:
    """Return how many bodies came of a collection."""
    return sum(len(attempts) for row, attempts in server.seen.items() if row[0] == name)


@pytest.mark.parametrize("line", LINES)
def test_no_reply_moves_another_row(line: str) -> None:
    """Over collections and over periods, the best pairing is no better than a blind one.

    And of what is watched, each body comes once, whatever reply the marked rows received.
    """
    server = lives(line=line)

    for watched in "bdf":
        assert arrivals(server, watched) == DEVICES * DAYS
    assert joined(server, server.rows("a"), server.rows("b")) <= chance()
    for one, other in ("cd", "ef"):
        for period in range(DAYS):
            ones, others = server.rows(one, period), server.rows(other, period)
            following = server.rows(one, period + 1)
            assert len(ones) == len(others) == DEVICES
            assert joined(server, ones, others) <= chance(), (one, other, period)
            assert not following or joined(server, ones, following) <= chance(), (one, period)


# -- planted bugs ----------------------------------------------------------------------------------


@contextmanager
def one_back_off() -> Iterator[None]:
    """Wrong, and once so: whatever one row hears, the whole device waits."""

    def put_back(
        each: Any, outbox: Any, queued_reports: list[QueuedReport], after: float = 0.0, **_: Any
    ) -> None:
        each.quiet = each.now() + max(after, backoff.delay(1, each.randomness))
        outbox.reschedule({report.number: each.quiet for report in queued_reports})

    def send_due(each: Any, outbox: Any, **more: Any) -> None:
        until = getattr(each, "quiet", 0.0)
        if each.now() >= until:
            send(each, outbox, **more)
        else:
            late = [report.number for report in outbox.lease(each.now(), 0.0, 100)]
            outbox.reschedule(dict.fromkeys(late, until))

    send = Uploader._send_due
    with (
        patch.object(Uploader, "_put_back", put_back),
        patch.object(Uploader, "_send_due", send_due),
    ):
        yield


@contextmanager
def closed_for_all() -> Iterator[None]:
    """Wrong: a device that hears the word for one row sends nothing any more."""

    def is_closed(each: Any, queued_report: QueuedReport) -> bool:
        return getattr(each, "heard", False) or original(each, queued_report)

    def keep(each: Any, queued_reports: Any) -> None:
        those = list(queued_reports)
        each.heard = getattr(each, "heard", False) or bool(those)
        closing(each, those)

    original, closing = ClosedRows.holds, ClosedRows.add
    with patch.object(ClosedRows, "holds", is_closed), patch.object(ClosedRows, "add", keep):
        yield


def test_the_joiner_sees_one_back_off() -> None:
    """Where one row's wait is the whole device's, the same joiner pairs far more than chance."""
    server = lives("ab", 48, one_back_off)
    found = joined(server, server.rows("a"), server.rows("b"))

    assert found > chance(), f"{found} of 48"


def test_the_joiner_sees_one_closing() -> None:
    """Where a row that is closed silences the device, bodies are missing that were watched for."""
    server = lives("ab", 8, closed_for_all)

    assert arrivals(server, "b") < 8 * DAYS


def test_the_joiner_sees_one_memory_of_keys() -> None:
    """Where an unknown key changes the key of all rows, the same joiner pairs most devices."""
    server = lives("ab", 24, one_memory_of_keys, RELAYED, days=8)
    right = joined(server, server.rows("a"), server.rows("b"))

    assert right > chance(), f"{right} of 24"
