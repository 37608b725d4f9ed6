"""What a worker counts beside the answers, until it is written with the next group.

Kept in memory for a second at most while reports come in; a worker that is killed loses that
second's figures of the service, and no answer.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable

from ..store import ServiceCounter, ServiceCounts

SECONDS = 1.0


class ServiceCounters:
    """Counts, taken out now and then. For any thread."""

    def __init__(self, seconds: Callable[[], float]) -> None:
        """Begin empty; `seconds` is a clock that never goes back."""
        self._seconds = seconds
        self._taken = seconds()
        self._lock = threading.Lock()
        self._notes: Counter[ServiceCounter] = Counter()

    def note(self, what: ServiceCounter, number: int = 1) -> None:
        """Count something."""
        with self._lock:
            self._notes[what] += number

    def take(self, *, now: bool = False) -> ServiceCounts:
        """Return what was counted since, once a second has passed (or now); else nothing."""
        with self._lock:
            if not self._notes or not (now or self._seconds() - self._taken >= SECONDS):
                return {}
            self._taken = self._seconds()
            taken, self._notes = self._notes, Counter()
            return taken

    def put_back(self, notes: ServiceCounts) -> None:
        """Count again what could not be written."""
        with self._lock:
            self._notes.update(notes)
