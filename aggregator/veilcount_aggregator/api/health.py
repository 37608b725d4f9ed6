"""Is the process alive, and can it keep a promise: for whoever runs it."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError

import msgspec
from flask import Blueprint, Response

from veilcount_shared.errors import VeilcountError

from ..retention.clock_guard import ClockReading
from ..service import Aggregator
from ..store import Store, StoreHealth
from .json_io import answer
from .schemas import Alive, Readiness

SECONDS = 2.0
ALIVE_PATH = "/healthz"
READY_PATH = "/readyz"


class Probe:
    """Asks the store how it is, for as long as a probe should wait and no longer.

    One question at a time: while a store hangs, those who ask share one thread that waits for it.
    """

    def __init__(self, store: Store) -> None:
        """Ask this store."""
        self._store = store
        self._lock = threading.Lock()
        self._asked: Future[StoreHealth] | None = None

    def ask(self) -> StoreHealth:
        """Return how the store is, or raise why that is not known."""
        with self._lock:
            if self._asked is None or self._asked.done():
                self._asked = Future()
                threading.Thread(target=self._look, args=(self._asked,), daemon=True).start()
            asked = self._asked
        return asked.result(SECONDS)

    def _look(self, asked: Future[StoreHealth]) -> None:
        try:
            asked.set_result(self._store.health())
        except Exception as error:  # noqa: BLE001 - raised again, by whoever asked
            asked.set_exception(error)


def doors(aggregator: Aggregator) -> Blueprint:
    """Return the doors."""
    blueprint = Blueprint("health", __name__)
    probe = Probe(aggregator.store)

    @blueprint.get(ALIVE_PATH)
    def alive() -> Response:
        """The process answers: nothing else is asked."""
        return answer(Alive("ok"))

    @blueprint.get(READY_PATH)
    def ready() -> Response:
        """Whether reports can be taken and kept, by one shard at least."""
        said = by_clock(readiness(probe), aggregator.guard.reading)
        return answer(said, 200 if said.ready else 503)

    return blueprint


def readiness(probe: Probe) -> Readiness:
    """Return whether reports can be taken and kept, and why not."""
    try:
        health = probe.ask()
    except FutureTimeoutError:
        return Readiness(False, "", f"the store did not answer within {SECONDS:g} s")
    except VeilcountError as error:
        # The class, not the words: those may hold an address, and anyone may ask here.
        return Readiness(False, "", f"the store cannot be used: {type(error).__name__}")
    if health.blocked:
        return Readiness(False, health.durable, f"no report is taken: {health.why}")
    if health.read_only:
        why = "the store is fenced: its reports belong elsewhere"
        return Readiness(False, health.durable, why, health.serving, health.shards)
    if health.trouble:
        why = f"the store cannot be written: {health.trouble}"
        return Readiness(False, health.durable, why, health.serving, health.shards)
    return Readiness(True, health.durable, health.why, health.serving, health.shards)


def by_clock(store: Readiness, clock: ClockReading) -> Readiness:
    """Return whether reports can be taken where the store would: not by a clock in doubt."""
    if store.ready and clock.doubted:
        why = f"{clock}: no report is judged by it"
        return Readiness(False, store.durable, why, store.serving, store.shards)
    return store


#: what a process answers that has not opened its store yet
ALIVE = msgspec.json.encode(Alive("ok"))
NOT_OPEN = msgspec.json.encode(Readiness(False, "", "the store was not opened yet"))
