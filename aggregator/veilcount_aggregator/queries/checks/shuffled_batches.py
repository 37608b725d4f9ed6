"""Checks of the batches that shufflers hand over."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from veilcount_analysis.series.series import Series
from veilcount_serving.findings import CheckResult, problems_or_ok, warn, wrong

from ...records.shuffled_batches.batch_counts import BATCH, RECORD_DIFFERS, SECOND_BATCH
from ...records.shuffled_batches.batch_states import batch_states
from ...records.shuffler_keys import load_shuffler_keys
from .store_snapshot import StoreSnapshot

#: how long a batch may take from the end of its grace: its shuffler may be down for a night
SOON = timedelta(days=2)
ASK = "ask whoever runs the shuffler: `veilcount shuffler status` there says why"


def shuffled_batches(stored: StoreSnapshot) -> Iterator[CheckResult]:
    """Check that a shuffler is trusted, and that each batch has come whole and once."""
    by_shuffler = [
        series for series in stored.catalog.series.values() if series.collection.batch is not None
    ]
    message = f"{len(by_shuffler)} definitions travel by shuffler; no batch is missing"
    yield from problems_or_ok(_problems(stored, by_shuffler), message)


def _problems(stored: StoreSnapshot, by_shuffler: list[Series]) -> Iterator[CheckResult]:
    counts = stored.store.service_counts()
    refused = {counter.word for counter in counts if counter.what == BATCH and by_shuffler}
    if RECORD_DIFFERS in refused:
        why = "a shuffler's record was refused: its batch is another than the record states"
        yield wrong(why, f"believe neither: {ASK}")
    if SECOND_BATCH in refused:
        why = "a second batch was refused: who received both sees what is in both"
        yield wrong(
            why, "stop its shuffler: the store was restored from a backup, or there are two"
        )
    keys = load_shuffler_keys(stored.store)
    for series in by_shuffler:
        name = series.collection.name
        if keys.trusted(name, stored.today) is None:
            yield wrong(f"{name}: no shuffler is trusted", "`veilcount shuffler trust FILE`")
        for batch in batch_states(stored.store, stored.store, series, stored.now - SOON):
            if not batch.healthy:
                yield warn(f"{name}, period {batch.period}: {batch.text}", ASK)
