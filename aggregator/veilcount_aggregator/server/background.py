"""What a worker does beside its requests, each second: examine whether the store is durable, write
the figures of the service, look at the shelf, confirm the store for the journal of releases, and
now and then compare the clocks and drop what is over.

A store that is down stops none of it: what could not be written waits for the next second.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from ..catalog.cache import CatalogSnapshot
from ..errors import ClockUntrusted, StoreError, StoreUnavailable
from ..service import Aggregator
from ..structured_logging import FaultLog, log_event
from .durability_log import DurabilityLog

SECONDS = 1.0
TENDING_SECONDS = 600.0
REPLICATING_SECONDS = 60.0
CLOCK_SECONDS = 10.0
LONGEST_STOP = 2.0  # a store that hangs keeps nobody from leaving
DOOR = "ticker"


class BackgroundThread:
    """One daemon thread of one process."""

    def __init__(
        self,
        aggregator: Aggregator,
        faults: FaultLog,
        seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        """Stand beside this aggregator; `seconds` is a clock that never goes back."""
        self._aggregator = aggregator
        self._faults = faults
        self._seconds = seconds
        self._tends = self._replicates = self._looks = seconds()
        self._replicated: CatalogSnapshot | None = None
        self._waited = False
        self._durability = DurabilityLog(aggregator.store)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="veilcount-ticker", daemon=True)

    def start(self) -> None:
        """Look at the clock before the first request is judged by it, and begin."""
        self._guarded(self._look_at_clock)
        self._thread.start()

    def stop(self) -> None:
        """End, after the tick that is under way."""
        self._stopping.set()
        self._thread.join(LONGEST_STOP)

    def tick(self) -> None:
        """Do what is due now."""
        self._guarded(self._do_what_is_due)

    def _guarded(self, act: Callable[[], None]) -> None:
        try:
            act()
        except ClockUntrusted as error:
            self._faults.log("clock", DOOR, error, reason=str(error))
        except StoreError as error:
            self._faults.log("store", DOOR, error, reason=str(error))
        except Exception as error:  # noqa: BLE001 - one bad tick must not end all that come after
            self._faults.log("failed", DOOR, error)

    def _do_what_is_due(self) -> None:
        self._durability.examine()
        self._aggregator.known()
        self._replicate()
        if self._seconds() >= self._looks:
            self._guarded(self._look_at_clock)
        self._guarded(self._aggregator.confirm)
        self._aggregator.flush()
        if self._seconds() >= self._tends:
            self._aggregator.tend()
            self._tends = self._seconds() + TENDING_SECONDS

    def _replicate(self) -> None:
        """Bring the copies of the records up to date, soon after a change and now and then.

        A log-in changes none of what is copied.
        """
        known = self._aggregator.known()
        last = self._replicated
        same = (
            last is not None and last.catalog is known.catalog and last.api_keys == known.api_keys
        )
        if same and self._seconds() < self._replicates:
            return
        with suppress(StoreUnavailable):  # no news while the records are away
            self._aggregator.replicate()
            self._replicated = known
        self._replicates = self._seconds() + REPLICATING_SECONDS

    def _look_at_clock(self) -> None:
        """Compare the clocks; what is wrong is logged."""
        self._looks = self._seconds() + CLOCK_SECONDS
        self._aggregator.look_at_clock()
        self._say_if_retention_waits()
        self._aggregator.guard.refuse_if_doubted()

    def _say_if_retention_waits(self) -> None:
        waits = self._aggregator.retention.waiting
        if waits and not self._waited:
            why = (
                "the date is not confirmed: `veilcount store confirm-clock`, or 24 hours of running"
            )
            log_event("retention waits", logging.WARNING, reason=why)
        self._waited = waits

    def _run(self) -> None:
        self.tick()
        while not self._stopping.wait(SECONDS):
            self.tick()
