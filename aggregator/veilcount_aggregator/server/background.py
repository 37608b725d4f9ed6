"""Periodic work of a worker: every second it checks the store's durability, reloads definitions and
keys, confirms the store for the release journal, and writes service counters and uses of keys. It
compares clocks every ten seconds, refreshes record copies every minute and drops ended epochs every
ten minutes.
Rows of final drops are deleted for half of each second until none is left, also those that an
earlier process left.

An unavailable store stops none of it: what could not be written is retried the next second.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from veilcount_serving.structured_logging import FaultLog, log_event

from ..errors import ClockUntrusted, StoreError, StoreUnavailable
from ..records.cache import CatalogSnapshot
from ..service import Aggregator
from ..store import Durability, DurabilityState, HealthStore


class DurabilityLog:
    """Logs changes of a store's durability: each weakness once, and the recovery. Not thread-safe.

    A line names the setting, the server and the command, such as after a `CONFIG SET` at runtime or
    a replica with other settings. `durability=relaxed` is logged once, when a worker starts.
    """

    def __init__(self, store: HealthStore) -> None:
        self._store = store
        self._last: Durability | None = None

    def examine(self) -> None:
        """Have the store examine itself, and log what changed."""
        with suppress(
            StoreError
        ):  # an unavailable store acknowledges nothing, and is logged elsewhere
            durability = self._store.durability()
            if durability != self._last:
                self._log(durability)
                self._last = durability

    def _log(self, found: Durability) -> None:
        last_weaknesses = set(self._last.weaknesses if self._last else ())
        for weakness in found.weaknesses:
            if weakness not in last_weaknesses:
                level = logging.ERROR if weakness.blocks else logging.WARNING
                log_event("durability", level, reason=str(weakness))
        if self._last is None and found.durable is not DurabilityState.YES and not found.blocking:
            log_event("durability", logging.WARNING, reason=f"not durable: {found.why}")
        elif last_weaknesses and not found.weaknesses:
            log_event("durability", reason=f"durable again: {found.why}")


SECONDS = 1.0
RETENTION_SECONDS = 600.0
DELETION_SECONDS = 0.5  # of each tick, so that the other work of a tick is never late
DELETION_PAUSE = 0.002  # between two steps, for commits that wait
REPLICATION_SECONDS = 60.0
REPEAT_SECONDS = 5.0  # until the copies of a master that did not answer are refreshed again
CLOCK_SECONDS = 10.0
STOP_SECONDS = 2.0  # a store that hangs must not block shutdown
NAME = "background"


class BackgroundThread:
    """The daemon thread that does the periodic work of one process."""

    def __init__(
        self,
        aggregator: Aggregator,
        faults: FaultLog,
        seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        """Work for this aggregator; `seconds` is a monotonic clock."""
        self._aggregator = aggregator
        self._faults = faults
        self._seconds = seconds
        self._next_retention = self._next_replication = self._next_clock_check = seconds()
        self._replicated: CatalogSnapshot | None = None
        self._rows_left = True  # an earlier process may have left some
        self._waited = False
        self._durability = DurabilityLog(aggregator.store)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="veilcount-background", daemon=True)

    def start(self) -> None:
        """Check the clock before the first request depends on it, and start."""
        self._guarded(self._check_clock)
        self._thread.start()

    def stop(self) -> None:
        """Stop after the current tick."""
        self._stopping.set()
        self._thread.join(STOP_SECONDS)

    def tick(self) -> None:
        """Do the work that is due."""
        self._guarded(self._run_due)
        self._faults.log_ended()

    def _guarded(self, act: Callable[[], None]) -> None:
        try:
            act()
        except ClockUntrusted as error:
            self._faults.log("clock", NAME, error, reason=str(error))
        except StoreError as error:
            self._faults.log("store", NAME, error, reason=str(error))
        except Exception as error:  # noqa: BLE001 - one bad tick must not end all that come after
            self._faults.log("failed", NAME, error)

    def _run_due(self) -> None:
        self._durability.examine()
        self._aggregator.known()
        self._replicate()
        if self._seconds() >= self._next_clock_check:
            self._guarded(self._check_clock)
        self._guarded(self._aggregator.confirm)
        self._aggregator.flush()
        if self._seconds() >= self._next_retention:
            self._aggregator.drop_expired()
            self._next_retention = self._seconds() + RETENTION_SECONDS
            self._rows_left = True
        if self._rows_left:
            self._delete_rows()

    def _delete_rows(self) -> None:
        """Delete rows of final drops for a while; after an error, not before the next retention."""
        self._rows_left = False
        ends = self._seconds() + DELETION_SECONDS
        while (left := self._aggregator.delete_rows()) and self._seconds() < ends:
            if self._stopping.wait(DELETION_PAUSE):
                break
        self._rows_left = left

    def _replicate(self) -> None:
        """Refresh the copies of the records, after a change and every minute.

        A log-in changes none of the copied records.
        """
        snapshot = self._aggregator.known()
        last = self._replicated
        same = (
            last is not None
            and last.catalog is snapshot.catalog
            and last.api_keys == snapshot.api_keys
            and last.gateway_secrets is snapshot.gateway_secrets
        )
        if same and self._seconds() < self._next_replication:
            return
        wait = REPLICATION_SECONDS
        with suppress(StoreUnavailable):  # there is nothing new while the records are unavailable
            if not self._aggregator.catalog_cache.replicate():
                wait = REPEAT_SECONDS
            self._replicated = snapshot
        self._next_replication = self._seconds() + wait

    def _check_clock(self) -> None:
        """Compare the clocks; log what is wrong."""
        self._next_clock_check = self._seconds() + CLOCK_SECONDS
        self._aggregator.look_at_clock()
        self._log_paused_retention()
        self._aggregator.guard.refuse_if_doubted()

    def _log_paused_retention(self) -> None:
        waits = self._aggregator.retention.waiting
        if waits and not self._waited:
            why = (
                "the date is not confirmed: `veilcount store confirm-clock`, or 24 hours of running"
            )
            log_event("retention paused", logging.WARNING, reason=why)
        self._waited = waits

    def _run(self) -> None:
        self.tick()
        while not self._stopping.wait(SECONDS):
            self.tick()
