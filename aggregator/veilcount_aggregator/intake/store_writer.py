"""Writes groups to the store with the service counters that are due, and counts what that takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..records.service_counters import ServiceCounters
from ..store import Codes, IntakeStore, SeriesReports, ServiceCounter

COMMITS = ServiceCounter("commits", "", -1, "")
COMMIT_MICROSECONDS = ServiceCounter("commit_microseconds", "", -1, "")


class StoreWriter:
    """Commits to one store."""

    def __init__(
        self, store: IntakeStore, service_counters: ServiceCounters, seconds: Callable[[], float]
    ) -> None:
        """Write to this store; `seconds` is a clock that never goes back."""
        self._store = store
        self._service_counters = service_counters
        self._seconds = seconds

    def commit(self, reports: Sequence[SeriesReports]) -> list[Codes]:
        """Return each report's verdict once it is durable."""
        notes = self._service_counters.take()
        begun = self._seconds()
        try:
            codes = self._store.commit(reports, notes)
        except BaseException:
            self._service_counters.restore(notes)
            raise
        took = round((self._seconds() - begun) * 1e6)
        self._service_counters.count(COMMITS)
        self._service_counters.count(COMMIT_MICROSECONDS, took)
        return codes
