"""What takes stored reports to the aggregator: store, send, settle, try again.

Decisions are made elsewhere (answers, backoff, transport); this joins them. One body carries one
pseudonym of a person, goes out on a connection of its own, and has one of a few lengths.
"""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from threading import Lock

from veilcount_shared import Coins, Collection
from veilcount_shared.collection import Presence
from veilcount_shared.report import MAX_PADDING, Batch, Losses, Report
from veilcount_shared.verdict import Verdict
from veilcount_shared.wire import encode_packed

from . import backoff
from .answers import Answers, TrueValue
from .closing import keep_closed
from .losses import TRANSPORT, Loss
from .state import Bounds, Parcel, State
from .transport import Delivered, Later, Outcome, Refused, Transport

OVERDUE = 1.0  # seconds: what fell due before this round could have left, had anything
LEASE = 600.0  # longer than any request can take
MOST_LEASED = 2000
MOST_IN_BODY = 500
SIZES = (1 << 10, 1 << 12, 1 << 14)  # of bodies; longer ones are multiples of the padding's limit
DAY = 86_400.0
GRAIN = 1_000_000
QUIET = "quiet"  # note: "until failures"
TOLD = "told"  # note: when losses were last told
FAREWELLS = "farewells"  # note: rows to be closed
MOST_FAREWELLS = 10_000


def bodies(parcels: list[Parcel], coins: Coins, *, persons: bool) -> list[list[Parcel]]:
    """Return parcels as bodies: one pseudonym each, or, of many persons, at most one of each."""
    rows: dict[tuple[bytes, str, bytes], list[Parcel]] = defaultdict(list)
    for parcel in parcels:
        report = parcel.report
        rows[parcel.person, report.fingerprint, report.pseudonym].append(parcel)
    pieces = [
        row[first : first + MOST_IN_BODY]
        for row in rows.values()
        for first in range(0, len(row), MOST_IN_BODY)
    ]
    shuffled = coins.shuffled(pieces)
    if not persons:
        return shuffled
    mixed: list[list[Parcel]] = []
    turn: dict[bytes, int] = defaultdict(int)  # the body that a person's next row may go into
    for row in shuffled:
        person = row[0].person
        place = turn[person]
        while place < len(mixed) and len(mixed[place]) + len(row) > MOST_IN_BODY:
            place += 1
        if place == len(mixed):
            mixed.append([])
        mixed[place] += row
        turn[person] = place + 1
    return [coins.shuffled(body) for body in mixed]


def pack(reports: Iterable[Report], *, test: bool) -> bytes:
    """Return a body padded to the next of a few sizes."""
    return _padded(Batch(tuple(reports), test=test))


def _padded(batch: Batch) -> bytes:
    bare = len(encode_packed(batch))
    long = -(-bare // (MAX_PADDING + 1)) * (MAX_PADDING + 1)
    size = next((size for size in SIZES if size >= bare), long)
    return encode_packed(replace(batch, padding=size - bare))


@dataclass
class Courier:
    """Takes stored reports to the aggregator."""

    state: State
    answers: Answers
    transport: Transport
    coins: Coins
    collections: Mapping[str, Collection]
    now: Callable[[], float]
    persons: bool = False
    test: bool = False
    bounds: Bounds = field(default_factory=Bounds)
    log: Callable[[str], None] = lambda _: None
    interrupted: bool = False
    last_failure: str = ""
    refused: int = 0  # reports that the aggregator did not count and will not
    under_way: list[list[Parcel]] = field(default_factory=list)
    leaving: bool = False
    leasing: Lock = field(default_factory=Lock)

    def run(self, *, hurry: bool = False) -> None:
        """Do what is due now: expire, send, tell."""
        now = self.now()
        self.state.expire(now, self.bounds)
        if hurry or self.quiet_until() <= now:
            sent = self._send_due(hurry=hurry)
            if hurry or not sent:  # in one breath with a report they would tell whose losses
                self._tell_losses(now)
            self._say_farewell(now, hurry=hurry)

    def waiting(self) -> int:
        """Return how many reports may leave now."""
        now = self.now()
        values = sum(value.earliest <= now for value in self.answers.true_values)
        return self.state.waiting(now) + values

    def next_due(self) -> float | None:
        """Return when there is next something to do."""
        due = self.state.next_due()
        values = [value.send_at for value in self.answers.true_values]
        sends = [max(each, self.quiet_until()) for each in (due, *values) if each is not None]
        sweep = self.answers.next_instant(self.now(), self.collections.values())
        return min([*sends, *([sweep] if sweep is not None else [])], default=None)

    def quiet_until(self) -> float:
        """Return until when the aggregator is left alone, after failures."""
        until = self._quiet()[0]
        # Nobody may ask for more: a time further off was written by a clock that was ahead.
        return until if until <= self.now() + backoff.LONGEST_ASKED else 0.0

    def spread(self) -> None:
        """Give an offline backlog new times, each its own, so that it does not arrive together.

        Once a report: a process that lives shortly and often must not put it off for ever.
        """
        now = self.now()
        overdue = self.state.lease(now - 1, now, MOST_LEASED)
        self.state.retry({each.number: self._later(now) for each in overdue if not each.tries})

    def _later(self, start: float) -> float:
        return start + self.answers.jitter * self.coins.below(GRAIN) / GRAIN

    # -- sending -------------------------------------------------------------------------------

    def _send_due(self, *, hurry: bool) -> bool:
        """Send what is due, if anything is; whether anything was."""
        now = self.now()
        self.interrupted = False  # before the lease: a withdrawal after it must be seen
        with self.leasing:
            if self.leaving:
                return False
            parcels = self.state.lease(now, now + LEASE, MOST_LEASED, hurry=hurry)
            self.under_way = [parcels]
        if not hurry:
            parcels = self._postpone(parcels)
        waiting = bodies(parcels, self.coins, persons=self.persons)
        self.under_way = waiting
        sent = bool(waiting)
        while waiting and not self.interrupted:
            if not self._deliver(waiting[-1]):
                break
            waiting.pop()
        else:
            sent |= self._send_true_values(hurry=hurry)
        self._put_back(waiting)
        self.under_way = []
        return sent

    def _postpone(self, parcels: list[Parcel]) -> list[Parcel]:
        """Give new times to what fell due while nothing could leave, and return the rest.

        Otherwise what one person recorded while the process, the machine or the aggregator was
        down would leave in one breath when it is back. Once for each time that happens.
        """
        quiet, before = self.quiet_until(), self.now() - OVERDUE
        late = [
            each
            for each in parcels
            if each.send_at < quiet or (each.send_at < before and not each.tries)
        ]
        if not late or not self.answers.jitter:
            return parcels
        self._put_back(bodies(late, self.coins, persons=False))
        numbers = {each.number for each in late}
        return [each for each in parcels if each.number not in numbers]

    def let_go(self) -> None:
        """Give back what is under way: whoever comes next need not wait for the lease to end.

        It may arrive twice so, and counts once.
        """
        with self.leasing:
            self.leaving = True
            if any(self.under_way):
                self._put_back(list(self.under_way))

    def after_fork(self) -> None:
        """In a forked child: what is under way is the parent's."""
        self.under_way = []
        self.leaving = False
        self.leasing = Lock()

    def _put_back(self, waiting: list[list[Parcel]]) -> None:
        """Give each body that did not leave a time of its own, or they would come in step."""
        start = max(self.quiet_until(), self.now())
        times = [(body, self._later(start)) for body in waiting]
        self.state.retry({each.number: due for body, due in times for each in body})

    def _deliver(self, body: list[Parcel]) -> bool:
        """Send a body and write down what became of it; False if it has to wait."""
        asked = self._without_closed(body)
        if not asked:
            return True
        outcome = self._send(parcel.report for parcel in asked)
        if isinstance(outcome, Later):
            return False
        self._settle(asked, outcome)
        return True

    def _without_closed(self, body: list[Parcel]) -> list[Parcel]:
        """Drop what is of a closed series, as the aggregator would; return the rest."""
        closed = self.answers.closed
        over = [parcel for parcel in body if parcel.report.fingerprint in closed]
        if over:
            self._settle(over, Delivered((Verdict.CLOSED,) * len(over)))
        return [parcel for parcel in body if parcel.report.fingerprint not in closed]

    def _send(self, reports: Iterable[Report]) -> Outcome:
        batch = list(reports)
        outcome = self.transport.send(pack(batch, test=self.test), len(batch))
        if isinstance(outcome, Later):
            self._hush(outcome)
        elif self._quiet()[1]:
            self.state.keep(QUIET, "0 0")
        if isinstance(outcome, Delivered):
            self._heed(batch, outcome.verdicts)
        self.log(f"{len(batch)} reports: {_told(outcome)}")
        return outcome

    def _heed(self, reports: list[Report], verdicts: tuple[Verdict, ...]) -> None:
        """Keep which series were closed: before their reports are off the outbox.

        Cut in between, the word is kept and the report is dropped by the next process; the other
        way round the next process would draw again.
        """
        pairs = zip(reports, verdicts, strict=True)
        closed = {report.fingerprint for report, verdict in pairs if verdict is Verdict.CLOSED}
        for series in closed - self.answers.closed:
            keep_closed(self.state, series)
            self.answers.closed.add(series)

    def _settle(self, body: list[Parcel], outcome: Delivered | Refused) -> None:
        """Write down what became of a body."""
        verdicts = _verdicts(outcome, len(body))
        pairs = list(zip(body, verdicts, strict=True))
        self.refused += sum(verdict.dropped for verdict in verdicts)
        self.state.settle(
            [parcel.number for parcel, verdict in pairs if verdict.delivered],
            {parcel.number: Loss(verdict) for parcel, verdict in pairs if verdict.dropped},
        )
        self.state.retry(
            {
                parcel.number: self.now() + backoff.delay(parcel.tries + 3, self.coins)
                for parcel, verdict in pairs
                if verdict.retry
            }
        )

    def _send_true_values(self, *, hurry: bool) -> bool:
        """Send the true values that are due; whether any was."""
        now, sent = self.now(), False
        for value in list(self.answers.true_values):
            due = value.earliest if hurry else value.send_at
            if self.interrupted:  # somebody withdrew: perhaps the value's person
                break
            if value.report.fingerprint in self.answers.closed:
                self._drop_true(value, Loss.CLOSED)
            elif value.expires <= now:
                self._drop_true(value, Loss.AGED)
            elif due <= now:
                sent = True
                outcome = self._send([value.report])
                if isinstance(outcome, Later):
                    break
                verdict = _verdicts(outcome, 1)[0]
                if not verdict.retry:
                    self._drop_true(value, None if verdict.delivered else Loss(verdict))
        return sent

    def _drop_true(self, value: TrueValue, loss: Loss | None) -> None:
        """A true value has left memory: it is no longer among those a crash would lose."""
        with suppress(ValueError):  # withdrawn while it was on its way
            self.answers.true_values.remove(value)
        name = self._name(value.report.fingerprint)
        self.answers.losses.add(Loss.CRASHED, name, -1)
        if loss is not None:
            self.answers.losses.add(loss, name)
        self.answers.write_losses()

    def _name(self, fingerprint: str) -> str:
        return next(
            (name for name, each in self.collections.items() if each.fingerprint == fingerprint),
            fingerprint,
        )

    # -- farewells -----------------------------------------------------------------------------

    def farewell(self, rows: Iterable[tuple[str, bytes]]) -> None:
        """Have a forgotten person's rows closed, each at a time of its own.

        Together they would tell, in the last moment, which pseudonyms were one person's.
        """
        now = self.now()
        kept = json.loads(self.state.note(FAREWELLS) or "[]")
        kept += [[series, _spelled(row), self._later(now)] for series, row in rows]
        self.state.keep(FAREWELLS, json.dumps(kept[-MOST_FAREWELLS:]))

    def _say_farewell(self, now: float, *, hurry: bool) -> None:
        rows = json.loads(self.state.note(FAREWELLS) or "[]")
        due = self.coins.shuffled(row for row in rows if hurry or row[2] <= now)
        while due and self.transport.close_row(*due[-1][:2]):
            rows.remove(due.pop())
            self.state.keep(FAREWELLS, json.dumps(rows))
        if due:  # it could not be reached: the others need not try
            for row in due:
                row[2] = self._later(now + backoff.FIRST)
            self.state.keep(FAREWELLS, json.dumps(rows))

    # -- failures ------------------------------------------------------------------------------

    def _quiet(self) -> tuple[float, int]:
        until, failures = (self.state.note(QUIET) or "0 0").split()
        return float(until), int(failures)

    def _hush(self, later: Later) -> None:
        self.last_failure = later.why
        failures = self._quiet()[1] + 1
        seconds = max(backoff.delay(failures, self.coins), later.seconds)
        self.state.keep(QUIET, f"{self.now() + seconds} {failures}")

    # -- losses --------------------------------------------------------------------------------

    def _tell_losses(self, now: float) -> None:
        """Tell what was lost on the way: once a day at most, a body a series, no pseudonym."""
        if abs(now - float(self.state.note(TOLD) or 0)) < DAY or not self.state.consenting():
            return
        self.state.keep(TOLD, str(now))
        for lost, figures in self._untold():
            body = _padded(Batch(losses=lost, test=self.test))
            if not isinstance(self.transport.send(body, 0), Delivered):
                return
            self.state.keep(f"told {lost.fingerprint}", figures)

    def _untold(self) -> Iterator[tuple[Losses, str]]:
        """Yield each series' losses since the last time, with the figures that they bring up to."""
        counts = self.state.losses()
        for collection in self.collections.values():
            series = collection.fingerprint
            figures = [counts.get((loss, series), 0) for loss in TRANSPORT]
            if collection.presence is Presence.HIDDEN:  # absences are not drawn to be lost
                figures = [0] * len(TRANSPORT)
            figures[-1] += counts.get((Loss.CORRUPT, ""), 0)
            text = " ".join(map(str, figures))
            known = self.state.note(f"told {series}") or "0 0 0"
            if text != known:
                new = [a - b for a, b in zip(figures, map(int, known.split()), strict=True)]
                yield Losses(series, *(Losses.bucket(count) for count in new)), text


def _spelled(row: bytes) -> str:
    return urlsafe_b64encode(row).rstrip(b"=").decode()


def _verdicts(outcome: Delivered | Refused, reports: int) -> tuple[Verdict, ...]:
    return outcome.verdicts if isinstance(outcome, Delivered) else (Verdict.MALFORMED,) * reports


def _told(outcome: Outcome) -> str:
    return ", ".join(outcome.verdicts) if isinstance(outcome, Delivered) else outcome.why
