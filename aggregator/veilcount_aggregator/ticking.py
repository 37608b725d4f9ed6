"""What a worker does beside its requests, each second: examine whether the store is durable, write
the figures of the service, look at the shelf, and now and then drop what is over.

A store that is down stops none of it: what could not be written waits for the next second.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from .aggregator import Aggregator
from .durability_log import DurabilityLog
from .errors import StoreError
from .logs import Faults

SECONDS = 1.0
TENDING_SECONDS = 600.0
LONGEST_STOP = 2.0  # a store that hangs keeps nobody from leaving
DOOR = "ticker"


class Ticker:
    """One daemon thread of one process."""

    def __init__(
        self,
        aggregator: Aggregator,
        faults: Faults,
        seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        """Stand beside this aggregator; `seconds` is a clock that never goes back."""
        self._aggregator = aggregator
        self._faults = faults
        self._seconds = seconds
        self._tends = seconds()
        self._durability = DurabilityLog(aggregator.store)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="veilcount-ticker", daemon=True)

    def start(self) -> None:
        """Begin, with a first look at what is over."""
        self._thread.start()

    def stop(self) -> None:
        """End, after the tick that is under way."""
        self._stopping.set()
        self._thread.join(LONGEST_STOP)

    def tick(self) -> None:
        """Do what is due now."""
        try:
            self._do_what_is_due()
        except StoreError as error:
            self._faults.tell("store", DOOR, error, why=str(error))
        except Exception as error:  # noqa: BLE001 - one bad tick must not end all that come after
            self._faults.tell("failed", DOOR, error)

    def _do_what_is_due(self) -> None:
        self._durability.examine()
        self._aggregator.known()
        self._aggregator.flush()
        if self._seconds() >= self._tends:
            self._aggregator.tend()
            self._tends = self._seconds() + TENDING_SECONDS

    def _run(self) -> None:
        self.tick()
        while not self._stopping.wait(SECONDS):
            self.tick()
