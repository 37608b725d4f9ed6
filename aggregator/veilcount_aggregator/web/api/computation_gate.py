"""Concurrency limit of analysts' requests: two compute, a few wait, the rest get 503.

It is applied after authentication, so strangers hold no place. Nor do slow readers: a long
response is computed, and held compressed, before it is sent.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from veilcount_serving.errors import Overloaded
from veilcount_shared.problem_details import RETRY_SECONDS

PLACES = 2
MOST_WAITING = 8
WAIT_SECONDS = 5.0

Parameters = ParamSpec("Parameters")
Answer = TypeVar("Answer")


class Permit:
    """One place of a gate, released once: at the latest when it is garbage-collected.

    A server that drops a response without closing it leaks none.
    """

    def __init__(self, give_back: Callable[[], None]) -> None:
        self._give_back = give_back
        self._lock = threading.Lock()
        self._held = True

    def release(self) -> None:
        """Give it back, if it was not."""
        with self._lock:
            held, self._held = self._held, False
        if held:
            self._give_back()

    def __del__(self) -> None:
        self.release()


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

    def bounded(self, view: Callable[Parameters, Answer]) -> Callable[Parameters, Answer]:
        """Return a view that computes only in a place of its own."""

        @wraps(view)
        def computed(*args: Parameters.args, **named: Parameters.kwargs) -> Answer:
            permit = self.enter()
            try:
                return view(*args, **named)
            finally:
                permit.release()

        return computed

    def enter(self) -> Permit:
        """Return a permit, or refuse."""
        if not self._places.acquire(blocking=False) and not self._wait():
            self._refused()
            raise Overloaded(RETRY_SECONDS, "other queries are being computed: retry in a moment")
        return Permit(self._places.release)

    def _wait(self) -> bool:
        if not self._waiting.acquire(blocking=False):
            return False
        try:
            return self._places.acquire(timeout=self._seconds)
        finally:
            self._waiting.release()
