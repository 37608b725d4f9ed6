"""Takes to the aggregator what is due: reports, true values, losses, and rows to be closed.

One rule for all of them: whatever was due while nothing could leave gets a new time, each its own,
and whatever fails is tried again at a time that only its own row's failures decide. So neither a
restart nor a server's reply to one pseudonym makes two of them leave together.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from threading import Lock
from typing import Protocol

from veilcount_shared import Collection, RandomSource
from veilcount_shared.collection import Linkage
from veilcount_shared.report import Batch, Report
from veilcount_shared.verdict import Verdict

from ..recording.recorder import Recorder
from ..state import (
    ROW_CLOSED,
    OutboxLimits,
    QueuedReport,
    RowClose,
    State,
    StateError,
    memory_outbox,
)
from ..state.closed_series import closed, keep_closed
from ..state.losses import Loss
from .body_packing import bodies, pack, padded, row_of
from .delivery_pool import MOST_THREADS, DeliveryPool
from .loss_reports import LossReport, LossReports
from .row_backoff import FURTHEST, RowBackoff
from .row_closes import RowCloses, spelled
from .transport import MAX_SECONDS, Delivered, Later, Outcome, Refused, Transport

OVERDUE = 15.0  # seconds: what fell due before could have left, had anything; a busy app is late
LEASE = 600.0  # longer than any request can take
EXPIRE_EVERY = 60.0  # seconds between two looks for what is too old
MOST_LEASED = 2000
GRAIN = 1_000_000


class Outbox(Protocol):
    """What keeps reports until they are delivered: the state, or memory."""

    def lease(
        self, now: float, until: float, most: int, *, hurry: bool = False
    ) -> list[QueuedReport]:
        """Take reports that are due (hurry: that may leave), for oneself until the lease ends."""

    def next_due(self) -> float | None:
        """Return when the next report is due."""

    def overdue(self, before: float, beyond: float, most: int) -> list[int]:
        """Return reports that were due before, or that an attempt has put off beyond an instant."""

    def reschedule(self, numbers: Mapping[int, float], *, unsent: bool = False) -> None:
        """Put reports back, each due at its time. Unsent: the lease was no attempt after all."""

    def settle(self, delivered: Iterable[int], dropped: Mapping[int, Loss]) -> None:
        """Take reports off."""


@dataclass(eq=False)
class Body:
    """Reports that leave together, and the outbox that they came from."""

    outbox: Outbox
    queued_reports: list[QueuedReport]
    leased_until: float


@dataclass
class Uploader:
    """Takes to the aggregator what is due, each at its own time."""

    state: State
    recorder: Recorder
    transport: Transport
    randomness: RandomSource
    collections: Mapping[str, Collection]
    now: Callable[[], float]
    persons: bool = False
    keyed: bool = False  # whether requests carry the key of an app
    test: bool = False
    bounds: OutboxLimits = field(default_factory=OutboxLimits)
    log: Callable[[str], None] = lambda _: None
    pool: DeliveryPool = field(default_factory=lambda: DeliveryPool(threaded=False))
    failed: Callable[[Exception], None] = lambda _: None  # what is done about a broken state
    last_failures: dict[str, str] = field(default_factory=dict)  # by series
    refused: int = 0  # reports that the aggregator did not count and will not
    under_way: list[Body] = field(default_factory=list)
    leaving: bool = False
    grace: float = OVERDUE
    _lock: Lock = field(default_factory=Lock)
    _expired: float = -math.inf

    def __post_init__(self) -> None:
        """Find the collections by what reports name them by."""
        self._series = {each.fingerprint: each for each in self.collections.values()}
        self._losses = LossReports(
            self.state,
            self.collections,
            self.now,
            self.later,
            self.recorder.outbox.count,
            persons=self.persons,
        )
        self._backoff = RowBackoff(self.randomness, persons=self.persons)
        self._closed = closed(self.state, self._series)  # series that some row was closed of
        hurried = not self.recorder.drawer.jitter
        self._row_closes = RowCloses(self.state, self.randomness, self.now, hurried=hurried)

    def run(self, *, hurry: bool = False, leaving: bool = False) -> None:
        """Do what is due now. Hurry: send all that may leave; leaving: all that is in memory."""
        self._expire()
        for outbox, jitter in self._outboxes():
            if not hurry:
                self._postpone(outbox, jitter)
            self._send_due(outbox, hurry=hurry or (leaving and outbox is self.recorder.outbox))
        self._send_losses()
        for row in self._row_closes.due(LEASE, self.grace):
            self.pool.submit(partial(self._close_row, row))

    @property
    def is_busy(self) -> bool:
        """Whether something is under way."""
        return self.pool.is_busy

    def waiting(self) -> int:
        """Return how many reports may leave now."""
        now = self.now()
        return self.state.waiting(now) + self.recorder.outbox.waiting(now)

    def next_due(self) -> float | None:
        """Return when there is next something to do."""
        dues = (
            self.state.next_due(),
            self.recorder.outbox.next_due(),
            self.recorder.next_instant(self.now(), self.collections.values()),
            self._row_closes.next_due(),
            self._losses.next_due(),
        )
        return min((each for each in dues if each is not None), default=None)

    def later(self, start: float, longest: float | None = None) -> float:
        """Return an instant within the jitter of another, independent of all others."""
        longest = self.recorder.drawer.jitter if longest is None else longest
        return start + longest * self.randomness.below(GRAIN) / GRAIN

    # -- times ---------------------------------------------------------------------------------

    def _expire(self) -> None:
        now = self.now()
        if not self._expired <= now < self._expired + EXPIRE_EVERY:
            self.state.expire(now, self.bounds)
            self.recorder.outbox.expire(now)
            self._expired = now

    def _outboxes(self) -> list[tuple[Outbox, float]]:
        """Return the outboxes, each with how long its reports are spread over at most."""
        jitter = self.recorder.drawer.jitter
        return [
            (self.state, jitter),
            (self.recorder.outbox, min(jitter, memory_outbox.JITTER)),
        ]

    def _postpone(self, outbox: Outbox, jitter: float) -> None:
        """Give each report that was due while nothing could leave a new time of its own.

        Otherwise what one person recorded while the process, the machine or the aggregator was
        down would leave in one breath when it is back. Each report, not each body: an absence and
        a recorded answer, which were stored at other moments, must be spread alike.
        """
        now = self.now()
        before = now - self.grace if jitter else -math.inf  # without jitter all leave when due
        while late := outbox.overdue(before, now + FURTHEST, MOST_LEASED):
            outbox.reschedule({number: self.later(now, jitter) for number in late})

    def _put_back(
        self,
        outbox: Outbox,
        queued_reports: list[QueuedReport],
        after: float = 0.0,
        *,
        seen: bool = True,
    ) -> None:
        """Give what did not get through another time."""
        times = self._backoff.fail(queued_reports, self.now(), after, seen=seen)
        outbox.reschedule(times, unsent=not seen)

    def _ready(
        self, outbox: Outbox, queued_reports: list[QueuedReport], now: float
    ) -> list[QueuedReport]:
        """Return what is not of a row that waits to be tried again; that waits with its row."""
        waiting = self._backoff.waiting(queued_reports, now)
        outbox.reschedule(waiting, unsent=True)
        return [each for each in queued_reports if each.number not in waiting]

    # -- sending -------------------------------------------------------------------------------

    def _send_due(self, outbox: Outbox, *, hurry: bool) -> None:
        """Begin to send what is due."""
        now = self.now()
        with self._lock:
            if self.leaving or not (hurry or _is_due(outbox, now)):
                return
            if len(self.under_way) > MOST_THREADS:
                return  # nothing would be sent soon: another round leases it
            queued_reports = outbox.lease(now, now + LEASE, MOST_LEASED, hurry=hurry)
            if not hurry:
                queued_reports = self._ready(outbox, queued_reports, now)
            begun = [
                Body(outbox, each, now + LEASE)
                for each in bodies(
                    queued_reports, self.randomness, persons=self.persons, keyed=self.keyed
                )
            ]
            self.under_way += begun
        for body in begun:
            self.pool.submit(partial(self._attempt, body))

    def _attempt(self, body: Body) -> None:
        if body not in self.under_way:
            return  # given back before its turn came
        try:
            if self.now() < body.leased_until - MAX_SECONDS:
                self._deliver(body)
        except Exception as error:  # noqa: BLE001 - in a thread of ours: its lease ends by itself
            self.failed(error)
        finally:
            with self._lock, suppress(ValueError):  # given back meanwhile
                self.under_way.remove(body)

    def _deliver(self, body: Body) -> None:
        """Send a body and write down what became of it."""
        queued_reports = self._without_closed(body)
        if not queued_reports:
            return
        outcome = self._send([queued_report.report for queued_report in queued_reports])
        if isinstance(outcome, Later):
            self._put_back(body.outbox, queued_reports, outcome.seconds, seen=outcome.seen)
        else:
            self._settle(body.outbox, queued_reports, outcome)

    def _send(self, reports: list[Report]) -> Outcome:
        outcome = self.transport.send(pack(reports, test=self.test), len(reports))
        for series in {report.fingerprint for report in reports}:
            self.last_failures[series] = outcome.why if isinstance(outcome, Later) else ""
        self.log(f"{len(reports)} reports: {_rendered(outcome)}")
        return outcome

    def _settle(
        self, outbox: Outbox, queued_reports: list[QueuedReport], outcome: Delivered | Refused
    ) -> None:
        """Write down what became of a body."""
        verdicts = _verdicts(outcome, len(queued_reports))
        pairs = list(zip(queued_reports, verdicts, strict=True))
        self._keep_closed(
            queued_report for queued_report, verdict in pairs if verdict is Verdict.CLOSED
        )
        with self._lock:
            self.refused += sum(verdict.dropped for verdict in verdicts)
        outbox.settle(
            [queued_report.number for queued_report, verdict in pairs if verdict.delivered],
            {
                queued_report.number: Loss(verdict)
                for queued_report, verdict in pairs
                if verdict.dropped
            },
        )
        self.recorder.write_losses()
        self._backoff.succeed(queued_reports)
        self._put_back(outbox, [queued_report for queued_report, verdict in pairs if verdict.retry])

    # -- rows that the aggregator has closed ---------------------------------------------------

    def _keep_closed(self, queued_reports: Iterable[QueuedReport]) -> None:
        """Keep which rows were closed: before their reports are off the outbox.

        Cut in between, the closing is kept and the report is dropped by the next process; the other
        way round the next process would draw again. No other row of the collection is touched: a
        server that closes one pseudonym would know the person's others by their silence.
        """
        for (person, series, _), queued_report in {
            row_of(each): each for each in queued_reports
        }.items():
            if series not in self._closed:
                keep_closed(self.state, series)
                self._closed.add(series)
            through = self._last_period(queued_report.report)
            if through is not None:
                self.state.close_row(person, series, through)

    def _last_period(self, report: Report) -> int | None:
        """Return the last period of a report's row; None if it is a row of its own."""
        collection = self._series.get(report.fingerprint)
        if (
            self.recorder.drawer.uncapped
            or collection is None
            or collection.linkage is Linkage.NONE
        ):
            return None
        whole = collection.linkage is Linkage.COLLECTION
        return collection.periods - 1 if whole else report.period

    def _without_closed(self, body: Body) -> list[QueuedReport]:
        """Drop what is of a closed row, as the aggregator would; return the rest."""
        over = [
            queued_report for queued_report in body.queued_reports if self._is_closed(queued_report)
        ]
        if over:
            self._settle(body.outbox, over, Delivered((Verdict.CLOSED,) * len(over)))
        return [queued_report for queued_report in body.queued_reports if queued_report not in over]

    def _is_closed(self, queued_report: QueuedReport) -> bool:
        if queued_report.report.fingerprint not in self._closed:
            return False
        used = self.state.used(queued_report.person, queued_report.report.fingerprint)
        return used == (self._last_period(queued_report.report), ROW_CLOSED)

    # -- what ends under way -------------------------------------------------------------------

    def discard(self, person: bytes) -> None:
        """Let no report of a person leave that has not left yet."""
        with self._lock:
            for body in self.under_way:
                body.queued_reports = [
                    each for each in body.queued_reports if each.person != person
                ]

    def let_go(self) -> None:
        """Give back what is under way: whoever comes next need not wait for the lease to end.

        It may arrive twice so, and counts once.
        """
        with self._lock:
            self.leaving = True
            begun, self.under_way = self.under_way, []
        for outbox, _ in self._outboxes():
            queued_reports = [
                each for body in begun if body.outbox is outbox for each in body.queued_reports
            ]
            if queued_reports:
                now = self.now()
                outbox.reschedule({each.number: self.later(now) for each in queued_reports})

    def after_fork(self) -> None:
        """In a forked child: what is under way is the parent's."""
        self.under_way = []
        self.leaving = False
        self._lock = Lock()
        self._backoff.after_fork()
        self.pool.after_fork()

    # -- losses, and rows of forgotten persons -------------------------------------------------

    def _close_row(self, row: RowClose) -> None:
        try:
            done = self.transport.close_row(row.series, spelled(row.pseudonym))
            self._row_closes.finish(row, done=done)
        except StateError as error:
            self.failed(error)

    def _send_losses(self) -> None:
        for report in self._losses.due(LEASE, self.grace):
            self.pool.submit(partial(self._send_loss, report))

    def _send_loss(self, report: LossReport) -> None:
        body = padded(Batch(losses=report.losses, test=self.test))
        try:
            sent = isinstance(self.transport.send(body, 0), Delivered)
            self._losses.finish(report, sent=sent)
        except StateError as error:
            self.failed(error)


def _is_due(outbox: Outbox, now: float) -> bool:
    due = outbox.next_due()
    return due is not None and due <= now


def _verdicts(outcome: Delivered | Refused, reports: int) -> tuple[Verdict, ...]:
    return outcome.verdicts if isinstance(outcome, Delivered) else (Verdict.MALFORMED,) * reports


def _rendered(outcome: Outcome) -> str:
    return ", ".join(outcome.verdicts) if isinstance(outcome, Delivered) else outcome.why
