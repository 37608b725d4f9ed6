"""A definition of nearly a million counters a tally, quickly made, and cells of segments."""

from __future__ import annotations

from functools import cache

import numpy as np

from veilcount_aggregator.series.series import Series
from veilcount_aggregator.store import MemoryLimits, SeriesReports
from veilcount_aggregator.store.memory_limit import DEFAULT_LIMITS
from veilcount_shared.collection import parse_collections

VALUES = 20_000
TEXT = """
app = "acme"
[theme]
question = "Which?"
values_file = "values"
epsilon = 7
unit = "day"
linkage = "period"
segments = {{ {segments} }}
from = 2026-01-01
until = 2026-03-05
"""


@cache
def million(*sizes: int) -> Series:
    """Return the series, with segments of so many values each: 7.5 MB a tally, where whole."""
    segments = ", ".join(
        f"s{at} = {[str(value) for value in range(size)]}" for at, size in enumerate(sizes)
    )
    values = [f"v{value}" for value in range(VALUES)]
    return Series(parse_collections(TEXT.format(segments=segments), lambda _: values)["theme"])


def reports(
    which: Series, many: int, seed: int, *, cells: int = 1, memory: MemoryLimits = DEFAULT_LIMITS
) -> SeriesReports:
    """Return reports of random pseudonyms and messages, spread over the first so many cells."""
    generator = np.random.default_rng(seed)
    messages = generator.integers(0, which.counters, many)
    width = 8 * np.arange(which.collection.message_bytes)[::-1]
    place = np.arange(many) % cells
    periods = place // which.collection.cells
    return SeriesReports(
        series=which,
        rows=generator.integers(0, 256, (many, 12), np.uint8),
        epochs=periods,
        periods=periods,
        segments=place % which.collection.cells,
        slots=np.zeros(many, np.int64),
        messages=(messages[:, None] >> width & 255).astype(np.uint8),
        default_verdicts=np.zeros(many, np.uint8),
        new_pseudonym_limit=1 << 40,
        memory=memory,
    )
