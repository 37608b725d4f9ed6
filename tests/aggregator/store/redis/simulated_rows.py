"""Many rows at once, without a Python object for each."""

from __future__ import annotations

from datetime import date, timedelta
from functools import cache

import numpy as np

from veilcount_aggregator.errors import StoreError
from veilcount_aggregator.store import SeriesReports
from veilcount_aggregator.store.redis.store import RedisStore
from veilcount_aggregator.store.series_reports import Bytes, Counters
from veilcount_analysis.series.series import Series
from veilcount_shared.collection import parse_collections

from ....client.device_fixtures import definitions_text
from ..series_fixtures import LINKED

GROUP = 2_000


def rows(many: int, seed: int) -> Bytes:
    return np.random.default_rng(seed).integers(0, 256, (many, 12), np.uint8)


def row_reports(
    who: Bytes, period: int = 0, which: Series = LINKED, limit: int = 1 << 40
) -> SeriesReports:
    """Return the answer of each row to one period; every third message is like another."""
    many = len(who)
    return SeriesReports.of_one(
        series=which,
        rows=who,
        epochs=np.full(many, which.epoch(period)),
        periods=np.full(many, period),
        segments=np.zeros(many, np.int64),
        slots=np.full(many, period if which.linked else 0),
        messages=(np.arange(many) % 3).astype(np.uint8).reshape(-1, 1),
        default_verdicts=np.zeros(many, np.uint8),
        new_pseudonym_limit=limit,
    )


def count(store: RedisStore, who: Bytes, period: int = 0, which: Series = LINKED) -> int:
    """Commit the answers of all rows, in groups; return how many were counted."""
    groups = (who[first : first + GROUP] for first in range(0, len(who), GROUP))
    return sum(
        int((store.commit([row_reports(group, period, which)], {})[0] == 0).sum())
        for group in groups
    )


def is_taken(store: RedisStore) -> bool:
    """Whether a store takes ten reports of rows that are always the same."""
    try:
        count(store, rows(10, 1))
    except StoreError:
        return False
    return True


VALUES = 20_000


@cache
def million(segments: int) -> Series:
    """Return the series, with so many segments: 7.5 MB a tally, where whole."""
    return _series(VALUES, 7, segments, periods=63)


@cache
def wide(values: int, *, periods: int) -> Series:
    """Return a series of four cells with a counter for each value."""
    return _series(values, 9, 4, periods)


def _series(values: int, epsilon: int, segments: int, periods: int) -> Series:
    start, labels = date(2026, 1, 1), [str(segment) for segment in range(segments)]
    text = definitions_text(
        "acme",
        {"epsilon": epsilon, "from": start, "until": start + timedelta(periods)},
        theme={"question": "Which?", "values_file": "values", "segments": {"s": labels}},
    )
    names = [f"v{value}" for value in range(values)]
    return Series(parse_collections(text, lambda _: names)["theme"])


def random_reports(
    which: Series, many: int, seed: int, *, cells: int = 1, places: Counters | None = None
) -> SeriesReports:
    """Return reports of random pseudonyms and messages, spread over the first so many cells.

    `places` has the place of each among all cells of all periods instead.
    """
    generator = np.random.default_rng(seed)
    messages = generator.integers(0, which.counters, many)
    width = 8 * np.arange(which.collection.message_bytes)[::-1]
    place = np.arange(many) % cells if places is None else places
    periods = place // which.collection.cells
    return SeriesReports.of_one(
        series=which,
        rows=generator.integers(0, 256, (many, 12), np.uint8),
        epochs=periods,
        periods=periods,
        segments=place % which.collection.cells,
        slots=np.zeros(many, np.int64),
        messages=(messages[:, None] >> width & 255).astype(np.uint8),
        default_verdicts=np.zeros(many, np.uint8),
        new_pseudonym_limit=1 << 40,
    )
