"""The outbox of true values for a trusted curator, in memory only: a crash loses them.

Each counts as lost with its process from the moment its slot is charged until it is delivered, so
that the loss is measured whichever way the process ends.
"""

from __future__ import annotations

import threading
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count

from veilcount_shared.report import Report

from . import ClientState, Outbox, OutboxLimits, OverdueReport, QueuedReport, ReportDraw
from .losses import Loss, LossCounter

JITTER = 300.0  # seconds at most until a true value leaves: what is in memory should not stay long


@dataclass(slots=True)
class _Entry:
    name: str  # of the collection
    draw: ReportDraw
    report: Report
    send_at: float
    leased: float = 0.0
    tries: int = 0

    @property
    def due(self) -> float:
        return max(self.send_at, self.leased)


class MemoryOutbox:
    """Does for true values what a state's outbox does for stored reports."""

    def __init__(self, losses: LossCounter) -> None:
        """Begin empty."""
        self._losses = losses
        self._numbers = count()
        self.after_fork()

    def after_fork(self) -> None:
        """Begin anew in a child: the parent has the values, and counts them."""
        self._lock = threading.Lock()
        self._entries: dict[int, _Entry] = {}

    def add(self, name: str, draw: ReportDraw, report: Report) -> None:
        """Take a true value whose slot was charged."""
        with self._lock:
            self._entries[next(self._numbers)] = _Entry(name, draw, report, draw.send_at)
        self._losses.add(Loss.CRASHED, name)

    def discard(self, person: bytes, series: Container[str]) -> None:
        """Forget the values that a person withdraws: no crash loses them any more."""
        with self._lock:
            gone = [
                item
                for item in self._entries.items()
                if item[1].draw.person == person and item[1].draw.series in series
            ]
            for number, entry in gone:
                del self._entries[number]
                self._losses.add(Loss.CRASHED, entry.name, -1)

    def count(self, name: str) -> int:
        """Return how many values of a collection are on their way."""
        return sum(entry.name == name for entry in list(self._entries.values()))

    def draws(self, person: bytes, series: str) -> list[ReportDraw]:
        """Return the draws of a person's values of a series that are on their way."""
        draws = [entry.draw for entry in list(self._entries.values())]
        return [draw for draw in draws if (draw.person, draw.series) == (person, series)]

    # -- as the outbox of a state --------------------------------------------------------------

    def lease(
        self, now: float, until: float, most: int, *, hurry: bool = False
    ) -> list[QueuedReport]:
        leased: list[QueuedReport] = []
        with self._lock:
            for number, entry in self._entries.items():
                due = entry.draw.earliest if hurry else entry.send_at
                if len(leased) < most and due <= now and entry.leased <= now:
                    entry.leased, entry.tries = until, entry.tries + 1
                    fields = (entry.draw.person, entry.report, entry.send_at, entry.tries)
                    leased.append(QueuedReport(number, *fields))
        return leased

    def overdue(self, before: float, after: float, most: int) -> list[OverdueReport]:
        with self._lock:
            late = [
                OverdueReport(number, entry.draw.expires, is_sealed=False)
                for number, entry in self._entries.items()
                if entry.due < before or entry.due > after
            ]
        return late[:most]

    def reschedule(self, numbers: Mapping[int, float], *, unsent: bool = False) -> None:
        with self._lock:
            for number, due in numbers.items():
                if entry := self._entries.get(number):
                    entry.send_at, entry.leased = due, 0.0
                    entry.tries = max(entry.tries - unsent, 0)

    def settle(self, delivered: Iterable[int], dropped: Mapping[int, Loss]) -> None:
        losses: dict[int, Loss | None] = {**dict.fromkeys(delivered), **dropped}
        for number, loss in losses.items():
            with self._lock:
                entry = self._entries.pop(number, None)
            if entry is None:
                continue  # withdrawn while it was under way
            self._losses.add(Loss.CRASHED, entry.name, -1)
            if loss is not None:
                self._losses.add(loss, entry.name)

    def expire(self, now: float) -> None:
        """Drop what is too old."""
        with self._lock:
            old = [number for number, entry in self._entries.items() if entry.draw.expires <= now]
        self.settle((), dict.fromkeys(old, Loss.AGED))

    def next_due(self) -> float | None:
        with self._lock:
            return min((entry.due for entry in self._entries.values()), default=None)

    def waiting(self, now: float) -> int:
        with self._lock:
            return sum(entry.draw.earliest <= now for entry in self._entries.values())


@dataclass(frozen=True, slots=True)
class Outboxes:
    """The two outboxes as one: stored reports in the state, and true values in memory.

    The drawer adds true values to the one in memory; whatever else is done with either is done
    here.
    """

    state: ClientState
    memory: MemoryOutbox
    jitter: float
    limits: OutboxLimits = field(default_factory=OutboxLimits)

    def __iter__(self) -> Iterator[tuple[Outbox, float]]:
        """Yield each outbox with how long its reports are spread over at most."""
        yield self.state, self.jitter
        yield self.memory, min(self.jitter, JITTER)

    @property
    def has_true_values(self) -> bool:
        """Whether anything waits that the end of the process would lose."""
        return self.memory.next_due() is not None

    def waiting(self, now: float) -> int:
        """Return how many reports may leave now."""
        return sum(outbox.waiting(now) for outbox, _ in self)

    def next_due(self) -> float | None:
        """Return when the next report is due."""
        dues = [outbox.next_due() for outbox, _ in self]
        return min((due for due in dues if due is not None), default=None)

    def expire(self, now: float) -> None:
        """Drop what is too old, and what the state holds over its limits."""
        self.state.expire(now, self.limits)
        self.memory.expire(now)
