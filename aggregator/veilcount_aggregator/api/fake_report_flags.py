"""Cached results of the poisoning tests, by series.

A test reads all counters, so it runs again only when the number of reports has grown by 1 %: about
700 times between a thousand reports and a million.
"""

from __future__ import annotations

from veilcount_shared.collection import Model
from veilcount_shared.mechanisms import ProjectiveGeometry, SubsetSelection

from ..mechanisms import poisoning_test
from ..series.series import Series
from ..store import Store

GROWN = 1.01


class FakeReportFlags:
    """The last result of each series' poisoning test."""

    def __init__(self) -> None:
        """Begin without results."""
        self._seen: dict[str, tuple[int, bool]] = {}

    def is_flagged(self, store: Store, series: Series) -> bool:
        """Whether the counters contain what no honest population would send."""
        sizes = store.report_counts(series)
        answers = sum(sizes.values())
        looked_at, failed = self._seen.get(series.fingerprint, (0, False))
        if answers < max(1, looked_at * GROWN):
            return failed
        found = poisoning_test(series.collection, store.counters(series, list(sizes)))
        self._seen[series.fingerprint] = answers, found.failed
        return found.failed


def is_tested(series: Series) -> bool:
    """Whether a poisoning test exists for this series."""
    collection = series.collection
    return collection.model is Model.LOCAL and isinstance(
        collection.mechanism, SubsetSelection | ProjectiveGeometry
    )
