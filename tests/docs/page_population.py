"""A simulated population that has answered before a page estimates."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from veilcount_aggregator.records.definitions import load_catalog
from veilcount_aggregator.store import CODES, ROW_BYTES, SeriesReports, Store
from veilcount_analysis.kinds.labels import places_of
from veilcount_analysis.kinds.numbers import Mean
from veilcount_analysis.kinds.registry import kind_of
from veilcount_analysis.kinds.values import Values
from veilcount_analysis.series.series import Series
from veilcount_analysis.simulation import simulate_messages
from veilcount_analysis.simulation.true_values import TrueValues
from veilcount_shared import Collection
from veilcount_shared.schedule import period_start
from veilcount_shared.verdict import Verdict

UNLIMITED = 1 << 40

Rows = NDArray[np.uint8]


def answered(store: Store, words: Sequence[str], now: datetime) -> None:
    """Have people answer once in each period that has begun: `theme 10000 light=2 dark=7`."""
    name, people, *truth = words
    series = load_catalog(store).by_name[name][0]
    generator = np.random.default_rng(1)
    rows = generator.integers(256, size=(int(people), ROW_BYTES)).astype(np.uint8)
    for period in range(series.collection.periods):
        if period_start(series.collection, period) <= now:
            spends = _answers(series, period, rows, truth, generator)
            codes = store.commit([spends], {})[0]
            assert (codes == CODES[Verdict.COUNTED]).all()


def _place(collection: Collection, word: str) -> int:
    return int(places_of(collection, [word]).places[0])


def _answers(
    series: Series, period: int, rows: Rows, truth: Sequence[str], generator: Generator
) -> SeriesReports:
    """Return the answers of one period, a person's segment the same in each."""
    collection, kind = series.collection, kind_of(series.collection)
    values = TrueValues.parse("truth", truth)
    if isinstance(kind, Values | Mean):
        people = kind.population(values, len(rows))
    else:  # open strings have no values to spread over
        people = values.population(len(rows), np.zeros(0, np.int64), partial(_place, collection))
    inputs = people.each()
    none = np.zeros(len(rows), np.int64)
    slot = period * collection.per_day if series.linked else 0
    return SeriesReports.of_one(
        series=series,
        rows=rows,
        epochs=none + series.epoch(period),
        periods=none + period,
        segments=np.arange(len(rows)) % collection.cells,
        slots=none + slot,
        messages=simulate_messages(collection, generator.permutation(inputs), generator),
        default_verdicts=np.full(len(rows), CODES[Verdict.COUNTED], np.uint8),
        new_pseudonym_limit=UNLIMITED,
    )
