"""Health of the store, read with a time limit."""

from __future__ import annotations

import threading
from concurrent.futures import Future

from .health import StoreHealth
from .interface import HealthStore

SECONDS = 2.0


class StoreProbe:
    """Reads the health of a store, waiting at most `SECONDS`.

    One read at a time: while a store hangs, all callers share one thread that waits for it.
    """

    def __init__(self, store: HealthStore) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._pending: Future[StoreHealth] | None = None

    def health(self) -> StoreHealth:
        """Return the store's health, or raise what keeps it from being read."""
        with self._lock:
            if self._pending is None or self._pending.done():
                self._pending = Future()
                threading.Thread(target=self._read, args=(self._pending,), daemon=True).start()
            pending = self._pending
        return pending.result(SECONDS)

    def _read(self, pending: Future[StoreHealth]) -> None:
        try:
            pending.set_result(self._store.health())
        except Exception as error:  # noqa: BLE001 - raised again in the callers
            pending.set_exception(error)
