"""Concurrency limit of analysts' requests: two compute, a few wait, the rest get 503.

It is applied after authentication, so strangers hold no place. Nor do slow readers: a long
response is computed, and held compressed, before it is sent.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import wraps
from typing import Any, Protocol

from veilcount_serving.errors import Overloaded
from veilcount_shared.problem_details import RETRY_SECONDS

PLACES = 2
MOST_WAITING = 8
WAIT_SECONDS = 5.0

View = Callable[..., Any]


class Computations(Protocol):
    """Where views that compute do so: here, one at a time in a place, or in another process."""

    def bounded(self, view: View) -> View:
        """Return a view that computes only in a place of its own."""


class ComputationGate:
    """A bounded number of places for computations. For any thread."""

    def __init__(
        self,
        refused: Callable[[], None] = lambda: None,
        *,
        places: int = PLACES,
        waiting: int = MOST_WAITING,
        seconds: float = WAIT_SECONDS,
    ) -> None:
        """`refused` is called whenever a request is turned away."""
        self._refused = refused
        self._places = threading.BoundedSemaphore(places)
        self._waiting = threading.BoundedSemaphore(waiting)
        self._seconds = seconds

    def bounded(self, view: View) -> View:
        """Return a view that computes only in a place of its own."""

        @wraps(view)
        def computed(*args: Any, **named: Any) -> Any:
            if not self._places.acquire(blocking=False) and not self._wait():
                self._refused()
                fix = "other queries are being computed: retry in a moment"
                raise Overloaded(RETRY_SECONDS, fix)
            try:
                return view(*args, **named)
            finally:
                self._places.release()

        return computed

    def _wait(self) -> bool:
        if not self._waiting.acquire(blocking=False):
            return False
        try:
            return self._places.acquire(timeout=self._seconds)
        finally:
            self._waiting.release()
