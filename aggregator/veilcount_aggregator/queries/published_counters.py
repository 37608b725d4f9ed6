"""Published counters, read as those of a store are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from veilcount_analysis.counts import CountersSource
from veilcount_analysis.mechanisms import handler_of
from veilcount_analysis.series.packed_rows import Counters
from veilcount_analysis.series.series import Series

from ..records.definitions import Catalog
from ..store import Cell, ServiceCounter
from .snapshot import Tallies


@dataclass(frozen=True, slots=True)
class PublishedCounters:
    """The part of a store that an estimate of a local collection reads."""

    source: CountersSource

    def report_counts(self, series: Series) -> dict[Cell, int]:
        """Return how many reports each tally holds."""
        count = handler_of(series.collection.mechanism).report_count
        counts = {Cell(*at): count(one) for at, one in self.source.counters.items()}
        return {cell: number for cell, number in counts.items() if number}

    def counters(self, _: Series, cells: Sequence[Cell]) -> Counters:
        """Return the counters of cells together."""
        return sum((self.source.counters.get(cell, self._none) for cell in cells), self._none)

    def service_counts(self) -> dict[ServiceCounter, int]:
        """Return nothing: rejected reports are not published."""
        return {}

    @property
    def _none(self) -> Counters:
        return np.zeros(self.source.series.counters, np.int64)


def published_snapshot(source: CountersSource) -> Tallies:
    """Return published counters as queries read a store, as of the last published day."""
    series = source.series
    catalog = Catalog({series.fingerprint: series}, {series.collection.name: (series,)})
    return Tallies(catalog, PublishedCounters(source), source.today)
