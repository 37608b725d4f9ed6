"""Log of changes in a store's durability: each weakness once, and the recovery.

A line names the setting, the server and the command, such as after a `CONFIG SET` at runtime or a
replica with other settings. `durability=relaxed` is logged once at the start of each worker.
"""

from __future__ import annotations

import logging
from contextlib import suppress

from ..errors import StoreError
from ..store import Durability, DurabilityState, Store
from ..structured_logging import log_event

EVENT = "durability"


class DurabilityLog:
    """Logs the durability of one store. Not thread-safe."""

    def __init__(self, store: Store) -> None:
        """Log nothing yet."""
        self._store = store
        self._last: Durability | None = None

    def examine(self) -> None:
        """Have the store examine itself, and log what changed."""
        with suppress(
            StoreError
        ):  # an unavailable store acknowledges nothing, and is logged elsewhere
            found = self._store.durability()
            if found != self._last:
                self._log(found)
                self._last = found

    def _log(self, found: Durability) -> None:
        known = set(self._last.weaknesses if self._last else ())
        for each in found.weaknesses:
            if each not in known:
                level = logging.ERROR if each.blocks else logging.WARNING
                log_event(EVENT, level, reason=str(each))
        if self._last is None and found.durable is not DurabilityState.YES and not found.blocking:
            log_event(EVENT, logging.WARNING, reason=f"not durable: {found.why}")
        elif known and not found.weaknesses:
            log_event(EVENT, reason=f"durable again: {found.why}")
