"""The bodies that are being sent, and the outboxes that their reports were leased from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from threading import Lock
from typing import Protocol

from ..state import QueuedReport
from ..state.losses import Loss
from .delivery_pool import MOST_THREADS


class Outbox(Protocol):
    """What keeps reports until they are delivered: the state, or memory."""

    def lease(
        self, now: float, until: float, most: int, *, hurry: bool = False
    ) -> list[QueuedReport]:
        """Take reports that are due (hurry: that may leave), for oneself until the lease ends."""

    def next_due(self) -> float | None:
        """Return when the next report is due."""

    def overdue(self, before: float, after: float, most: int) -> list[int]:
        """Return reports that were due before, or that an attempt has put off after an instant."""

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


class BodiesInFlight:
    """Bodies from their lease to their outcome, as several threads see them."""

    def __init__(self) -> None:
        """Begin with nothing under way."""
        self.after_fork()

    def after_fork(self) -> None:
        """Begin anew in a child: what is under way is the parent's."""
        self._lock = Lock()
        self._bodies: list[Body] = []
        self._leaving = False

    def __contains__(self, body: object) -> bool:
        return body in self._bodies

    def begin(self, lease: Callable[[], list[Body]]) -> list[Body]:
        """Return bodies that are now leased, and none if nothing would be sent soon."""
        with self._lock:
            if self._leaving or len(self._bodies) > MOST_THREADS:
                return []
            leased = lease()
            self._bodies += leased
            return leased

    def end(self, body: Body) -> None:
        """Forget a body, unless it was returned meanwhile."""
        with self._lock, suppress(ValueError):
            self._bodies.remove(body)

    def discard(self, person: bytes) -> None:
        """Take a person's reports out of what has not left yet."""
        with self._lock:
            for body in self._bodies:
                kept = [each for each in body.queued_reports if each.person != person]
                body.queued_reports = kept

    def give_back(self) -> list[Body]:
        """Return everything under way; from now on nothing begins."""
        with self._lock:
            self._leaving = True
            bodies, self._bodies = self._bodies, []
        return bodies
