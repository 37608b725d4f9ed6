"""What retention does on a day it may act: drop the epochs that are over, sweep older drops.

Any worker may do it, and several at once: dropping twice is dropping once. Whether a day may be
acted on is decided in `retention`.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, date, datetime, time

from ..errors import StoreError
from ..series.series import RECOVERABLE, Series, utc_day
from ..store import Store


def collect_garbage(store: Store, series: Iterable[Series], now: datetime) -> int:
    """Drop what is over at an instant, sweep what was dropped before; return the epochs dropped.

    What fails in one series, or in one shard of it, is raised once all others had their turn.
    """
    dropped, errors = 0, []
    for each in series:
        try:
            dropped += _tend(store, each, now)
        except StoreError as error:
            errors.append(error)
    if errors:
        raise errors[0]
    return dropped


def _tend(store: Store, series: Series, now: datetime) -> int:
    over = epochs_over(series, utc_day(now))
    if not over:
        return 0
    try:
        return store.mark_dropped(series, over, _midnight(series.due(over - 1)), now)
    finally:
        store.delete_dropped(series, RECOVERABLE, now)


def epochs_over(series: Series, day: date) -> int:
    """Return how many epochs of a series are over on a UTC day."""
    epochs = 1 if series.linked else series.collection.periods
    return next((epoch for epoch in range(epochs) if not series.over(epoch, day)), epochs)


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)
