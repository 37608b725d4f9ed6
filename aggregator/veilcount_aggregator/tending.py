"""What a server does by itself, now and then: drop the spent slots of epochs that are over.

Any worker may do it, and several at once: dropping twice is dropping once.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date

from .series import Series
from .store import Store


def tend(store: Store, series: Iterable[Series], day: date) -> int:
    """Drop what is over on a UTC day; return how many series had something to drop."""
    return sum(_tend(store, each, day) for each in series)


def _tend(store: Store, series: Series, day: date) -> bool:
    epochs = 1 if series.linked else series.collection.periods
    over = next((epoch for epoch in range(epochs) if not series.over(epoch, day)), epochs)
    if over:
        store.drop(series, over)
    return over > 0
