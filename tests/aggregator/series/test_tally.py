"""Messages become counters, whatever their packing, and counters of parts add up."""

from __future__ import annotations

import numpy as np
import pytest

from tests.aggregator.estimation.collection_fixtures import falling, of_values
from veilcount_aggregator import tally
from veilcount_aggregator.analysis.simulation import simulate_messages

#: one input a report, a mask, a list of members, a hyperplane
SHAPES = [(10, "4"), (10, "0.5"), (64, "2.5"), (300, "1")]


@pytest.mark.parametrize(("k", "epsilon"), SHAPES)
def test_parts_add_up_to_the_whole_in_integers_and_in_rows(k: int, epsilon: str) -> None:
    """More rows than are spread out at once."""
    collection = of_values(k, epsilon)
    inputs = np.repeat(np.arange(k), falling(k, 1000))
    rows = simulate_messages(collection, inputs, np.random.default_rng(2))
    whole = tally(collection, np.tile(rows, (300, 1)))
    parts = [tally(collection, rows[:400]), tally(collection, rows[400:])]
    integers = [int.from_bytes(row) for row in rows]

    assert (whole == 300 * sum(parts)).all()
    assert not tally(collection, []).any()
    assert (tally(collection, integers) == sum(parts)).all()
