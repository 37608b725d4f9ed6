"""The uploader: sends what is due, reports, true values and loss reports.

One rule for all of them: whatever was due while nothing could leave gets a new time, each its own,
and whatever fails is tried again at a time that only its own row's failures decide. So neither a
restart nor a server's reply to one pseudonym makes two of them leave together.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from veilcount_shared import Collection, RandomSource
from veilcount_shared.collection import Linkage
from veilcount_shared.report import Batch, Report
from veilcount_shared.verdict import Verdict

from ..recording.recorder import Recorder
from ..state import ClientState, Outbox, OverdueReport, QueuedReport
from ..state.losses import Loss
from ..state.memory_outbox import Outboxes
from .backoff import FURTHEST, RowBackoff
from .closed_rows import ClosedRows
from .decisions import Effects, decide, decide_verdicts
from .delivery_pool import BodiesInFlight, Body, DeliveryPool
from .issuance import Issuance
from .loss_reports import HOUR, LossReport, LossReports
from .padded_bodies import encode_padded, group_into_bodies
from .replies import Replies, describe
from .shuffler import Shuffler
from .transport import MAX_SECONDS, Delivered, Outcome, Transport

OVERDUE = 15.0  # seconds: what fell due before could have left, had anything; a busy app is late
LEASE = 600.0  # longer than any request can take
EXPIRE_EVERY = 60.0  # seconds between two looks for what is too old
MOST_LEASED = 2000
GRAIN = 1_000_000


@dataclass
class Uploader:
    """Sends what is due to the aggregator, each report at its own time."""

    state: ClientState
    outboxes: Outboxes
    recorder: Recorder
    transport: Transport
    randomness: RandomSource
    collections: Mapping[str, Collection]
    now: Callable[[], float]
    persons: bool = False
    keyed: bool = False  # whether requests carry the key of an app
    test: bool = False
    host: str = "the aggregator"  # as the log calls it
    log: Callable[[str], None] = lambda _: None
    pool: DeliveryPool = field(default_factory=lambda: DeliveryPool(threaded=False))
    refused: int = 0  # reports that the aggregator did not count and will not
    in_flight: BodiesInFlight = field(default_factory=BodiesInFlight)
    grace: float = OVERDUE
    issuance: Issuance | None = None
    shuffler: Shuffler | None = None  # of collections that have batches
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _expired: float = -math.inf

    def __post_init__(self) -> None:
        """Find the collections by what reports name them by."""
        series = {collection.fingerprint: collection for collection in self.collections.values()}
        self._with_tokens = {
            collection.fingerprint
            for collection in self.collections.values()
            if collection.linkage is Linkage.TOKEN
        }
        self.replies = Replies(
            self.state,
            {fingerprint: one_series.name for fingerprint, one_series in series.items()},
            self.now,
            partial(describe, keyed=self.keyed, test=self.test),
            self.host,
        )
        self._losses = LossReports(
            self.state,
            {
                name: collection
                for name, collection in self.collections.items()
                if collection.batch is None  # of those that have, nothing leaves but what is sealed
            },
            self.now,
            self.later,
            self.outboxes.memory.count,
            persons=self.persons,
        )
        self._backoff = RowBackoff(self.randomness, persons=self.persons)
        self.closed_rows = ClosedRows(self.state, series, self.recorder.drawer.uncapped)

    def run(self, *, hurry: bool = False, leaving: bool = False) -> None:
        """Do what is due now. Hurry: send all that may leave; leaving: all that is in memory."""
        self._expire()
        for outbox, jitter in self.outboxes:
            if not hurry:
                self._postpone(outbox, jitter)
            self._send_due(outbox, hurry=hurry or (leaving and outbox is self.outboxes.memory))
        for task in self.issuance.due() if self.issuance else ():
            self.pool.submit(task)
        for report in self._losses.due(LEASE, self.grace):
            self.pool.submit(partial(self._send_loss, report))

    def replies_on(self, collection: Collection) -> Replies:
        """Return what keeps the replies on a collection: of the aggregator, or of the shuffler."""
        in_batches = self.shuffler if collection.batch is not None else None
        return in_batches.replies if in_batches else self.replies

    def forget_replies(self) -> None:
        """Forget what aggregator and shuffler last replied, and when."""
        self.replies.forget()
        if self.shuffler:
            self.shuffler.replies.forget()

    def waiting(self) -> int:
        """Return how many reports may leave now."""
        return self.outboxes.waiting(self.now())

    def next_due(self) -> float | None:
        """Return when there is next something to do."""
        return _earliest(self.next_sending(), self._losses.next_due())

    def next_sending(self) -> float | None:
        """Return when a report or a request for tokens may leave; losses are worth no process."""
        return _earliest(
            self.outboxes.next_due(),
            self.recorder.next_instant(self.collections.values()),
            self.issuance.next_due() if self.issuance else None,
        )

    def later(self, start: float, longest: float | None = None) -> float:
        """Return an instant within the jitter of another, independent of all others."""
        longest = self.outboxes.jitter if longest is None else longest
        return start + longest * self.randomness.below(GRAIN) / GRAIN

    # -- times ---------------------------------------------------------------------------------

    def _expire(self) -> None:
        now = self.now()
        if not self._expired <= now < self._expired + EXPIRE_EVERY:
            self.outboxes.expire(now)
            self._expired = now

    def _postpone(self, outbox: Outbox, jitter: float) -> None:
        """Give each report that was due while nothing could leave a new time of its own.

        Otherwise what one person recorded while the process, the machine or the aggregator was
        down would leave in one breath when it is back. Each report, not each body: an absence and
        a recorded answer, which were stored at other moments, must be spread alike.
        """
        now = self.now()
        while late := outbox.overdue(now - self.grace, now + FURTHEST, MOST_LEASED):
            times = {report.number: self.later(now, jitter) for report in late}
            outbox.reschedule(times | self._times_of_sealed(late, now))

    def _times_of_sealed(self, late: Sequence[OverdueReport], now: float) -> dict[int, float]:
        """Return new times for sealed reports: within the hour and before they expire.

        One of them leaves now, or those of a command that runs for a second a day never would.
        Which one hangs on no order of theirs: that in which they were stored shows what was
        recorded.
        """
        sealed = [
            (report.expires, self.randomness.below(GRAIN), report.number)
            for report in late
            if report.is_sealed
        ]
        longest = 0.0 if self.recorder.drawer.uncapped else HOUR
        times = {
            number: self.later(now, min(longest, max(expires - now, 0.0)))
            for expires, _, number in sealed
        }
        return times | {number: now for *_, number in sorted(sealed)[:1]}

    def _put_back(
        self, outbox: Outbox, queued_reports: Sequence[QueuedReport], after: float, *, seen: bool
    ) -> None:
        """Give what did not get through another time."""
        times = self._backoff.fail(queued_reports, self.now(), after, seen=seen)
        outbox.reschedule(times, unsent=not seen)

    # -- sending -------------------------------------------------------------------------------

    def _send_due(self, outbox: Outbox, *, hurry: bool) -> None:
        due = outbox.next_due()
        if hurry or (due is not None and due <= self.now()):
            for body in self.in_flight.begin(partial(self._lease, outbox, hurry=hurry)):
                self.pool.submit(partial(self._attempt, body))

    def _lease(self, outbox: Outbox, *, hurry: bool) -> list[Body]:
        now = self.now()
        reports = outbox.lease(now, now + LEASE, MOST_LEASED, hurry=hurry)
        if not hurry:  # what is of a row that waits to be tried again waits with it
            waiting = self._backoff.waiting(reports, now)
            outbox.reschedule(waiting, unsent=True)
            reports = [report for report in reports if report.number not in waiting]
        sealed = [[report] for report in reports if report.sealed]
        bodies = group_into_bodies(
            [report for report in reports if not report.sealed],
            self.randomness,
            persons=self.persons,
            keyed=self.keyed,
        )
        return [Body(outbox, body, now + LEASE) for body in sealed + bodies]

    def _attempt(self, body: Body) -> None:
        if body not in self.in_flight:
            return  # returned before its turn came
        try:
            if self.now() < body.leased_until - MAX_SECONDS:
                self._deliver(body)
            else:  # its turn came too late: the lease was no attempt
                again = self.later(self.now())
                numbers = [queued_report.number for queued_report in body.queued_reports]
                body.outbox.reschedule(dict.fromkeys(numbers, again), unsent=True)
        finally:
            self.in_flight.end(body)

    def _deliver(self, body: Body) -> None:
        sealed = [queued_report for queued_report in body.queued_reports if queued_report.sealed]
        for queued_report in sealed:  # one
            self._deliver_sealed(body, queued_report)
        if not sealed:
            self._deliver_reports(body)

    def _deliver_sealed(self, body: Body, queued_report: QueuedReport) -> None:
        if self.shuffler is None:  # the app has none any more: nothing goes another way
            again = self.later(self.now(), HOUR)
            body.outbox.reschedule({queued_report.number: again}, unsent=True)
            return
        outcome = self.shuffler.send(queued_report)
        if body in self.in_flight:  # or it was given back, and the state may be closed
            self.shuffler.settle(body.outbox, queued_report, outcome)

    def _deliver_reports(self, body: Body) -> None:
        closed = [
            queued_report
            for queued_report in body.queued_reports
            if self.closed_rows.holds(queued_report)
        ]
        if closed:  # dropped, as the aggregator would
            self._apply(body.outbox, decide_verdicts(closed, [Verdict.CLOSED] * len(closed)))
        queued_reports = self._tokened(
            body.outbox,
            [queued_report for queued_report in body.queued_reports if queued_report not in closed],
        )
        if not queued_reports:
            return
        reports = [queued_report.report for queued_report in queued_reports]
        outcome = self._send(reports)
        if body not in self.in_flight:
            return  # it was given back, and the state may be closed
        self.replies.add(reports, outcome)
        self._apply(body.outbox, decide(queued_reports, outcome))

    def _tokened(self, outbox: Outbox, queued_reports: list[QueuedReport]) -> list[QueuedReport]:
        """Return reports that may leave, those of tokens with theirs.

        A token is fetched before its period begins or never. To wait for one would let an issuer
        that answers late find the reports which come late.
        """
        ready = []
        for queued_report in queued_reports:
            report = queued_report.report
            if report.fingerprint not in self._with_tokens:
                ready.append(queued_report)
            elif token := self.state.token(queued_report.person, report.pseudonym):
                ready.append(replace(queued_report, report=replace(report, token=token)))
            else:
                outbox.settle((), {queued_report.number: Loss.NO_TOKEN})
        return ready

    def _send(self, reports: list[Report]) -> Outcome:
        outcome = self.transport.send(
            encode_padded(Batch(tuple(reports), test=self.test)), len(reports)
        )
        result = ", ".join(outcome.verdicts) if isinstance(outcome, Delivered) else outcome.why
        self.log(f"{len(reports)} reports: {result}")
        return outcome

    def _apply(self, outbox: Outbox, effects: Effects) -> None:
        """Do what was decided: close rows first, then settle, then give new times."""
        if effects.answered:
            self.closed_rows.add(effects.closed)
            with self._lock:
                self.refused += len(effects.dropped)
            outbox.settle(effects.delivered, effects.dropped)
            self.recorder.write_losses()
            self._backoff.succeed(effects.answered)
        self._put_back(outbox, effects.retried, effects.after, seen=effects.seen)

    # -- the end, and forks --------------------------------------------------------------------

    def let_go(self) -> None:
        """Give back what is under way: whoever comes next need not wait for the lease to end.

        It may arrive twice so, and counts once.
        """
        bodies = self.in_flight.give_back()
        now = self.now()
        for outbox, _ in self.outboxes:  # each in one step
            reports = [body.queued_reports for body in bodies if body.outbox is outbox]
            times = {report.number: self.later(now) for body in reports for report in body}
            if times:
                outbox.reschedule(times)

    def discard(self, person: bytes, series: Container[str]) -> None:
        """Let nothing more of a person and these series leave."""
        self.outboxes.memory.discard(person, series)  # the state wipes its own with the decision
        self.in_flight.discard(person, series)

    def after_fork(self) -> None:
        """In a forked child: what is under way, or in memory, is the parent's."""
        self.outboxes.memory.after_fork()
        self.in_flight.after_fork()
        self._lock = threading.Lock()
        self._backoff.after_fork()
        if self.issuance:
            self.issuance.after_fork()
        self.pool.after_fork()

    # -- losses --------------------------------------------------------------------------------

    def _send_loss(self, report: LossReport) -> None:
        body = encode_padded(Batch(losses=report.losses, test=self.test))
        sent = isinstance(self.transport.send(body, 0), Delivered)
        if not self.in_flight.leaving:
            self._losses.finish(report, sent=sent)


def _earliest(*dues: float | None) -> float | None:
    return min((due for due in dues if due is not None), default=None)
