"""Metrics of the batches that shufflers hand over; of a secret count there are none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from veilcount_analysis.series.series import Series

from ...records.shuffled_batches.batch_counts import BATCH, UNFINISHED, UNREADABLE
from ...records.shuffled_batches.batch_states import missing_parts
from ...store import BatchStore
from .exposition import Labels, metric
from .service_metrics import Words


def batch_metrics(store: BatchStore, series: Mapping[str, Series], words: Words) -> Iterator[str]:
    """Yield refused parts by reason, what could not be read, and what is missing."""
    counts = words.get(BATCH, {})
    others = {UNFINISHED, UNREADABLE}
    refused = [((("reason", word),), n) for word, n in counts.items() if word not in others]
    says = "Parts and records of batches that were refused, by reason."
    yield from metric("batches_refused_total", "counter", says, refused)
    says = "Reports in batches that could not be read."
    rows = [((), counts.get(UNREADABLE, 0))]
    yield from metric("batch_unreadable_total", "counter", says, rows)
    says = "Batches that were dropped since parts never came."
    rows = [((), counts.get(UNFINISHED, 0))]
    yield from metric("batches_unfinished_total", "counter", says, rows)
    missing: Counter[Labels] = Counter()
    for one_series in series.values():
        if one_series.collection.batch is not None:
            label = ("collection", one_series.collection.name)
            missing[(label,)] += missing_parts(store, one_series)
    says = "Parts of batches that have begun and are not complete."
    yield from metric("batch_parts_missing", "gauge", says, missing.items())
