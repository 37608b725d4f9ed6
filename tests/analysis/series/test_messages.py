"""Columns of messages are judged as each message is, and counted as `veilcount_shared` has it."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from veilcount_analysis import tally
from veilcount_analysis.mechanisms import valid_messages
from veilcount_analysis.mechanisms.handler import HANDLERS
from veilcount_analysis.series.series import Series
from veilcount_analysis.simulation import simulate_messages
from veilcount_shared import Collection
from veilcount_shared.mechanisms import SubsetSelection

from ...aggregator.aggregator_fixtures import make_collection
from ...aggregator.store.series_fixtures import message
from ..estimation.collection_fixtures import falling, of_values


def values(count: int) -> str:
    return str([f"v{place}" for place in range(count)])


COLLECTIONS = {
    "coin": make_collection(),
    "w is 1": make_collection(boolean=None, values=values(5), epsilon=3),
    "mask": make_collection(boolean=None, values=values(12), epsilon=1),
    "mask of whole bytes": make_collection(boolean=None, values=values(16), epsilon=1),
    "members": make_collection(boolean=None, values=values(200), epsilon=4),
    "plane": make_collection(boolean=None, values=values(2000), epsilon=1),
    "mean": make_collection(boolean=None, range="[0, 10]", measure='"mean"'),
    "distribution": make_collection(boolean=None, range="[0, 10]", measure='"distribution"'),
    "ranges": make_collection(boolean=None, range="[0, 10]", measure='"ranges"'),
    "moments": make_collection(
        boolean=None, features="{a = [0, 1], b = [0, 9]}", measure='"moments"'
    ),
    "tables of one byte": make_collection(
        boolean=None, questions="{a = [1, 2], b = [1, 2, 3], c = [1, 2, 3, 4]}", tables="true"
    ),
    "tables": make_collection(
        boolean=None, questions=f"{{a = [1, 2], b = {values(5)}, c = {values(20)}}}", tables="true"
    ),
    "several, at most two": make_collection(
        boolean=None, values=values(5), choose='"several"', most=2
    ),
    "several": make_collection(boolean=None, values=values(5), choose='"several"'),
    "trend": make_collection(measure='"trend"', changes=1),
    "open": make_collection(boolean=None, values='"open"', epsilon=4),
    "trusted": make_collection(epsilon=None, model='"central"', budget=1),
    "trusted range": make_collection(
        boolean=None, range="[0, 999]", epsilon=None, model='"central"', budget=1
    ),
}
every = pytest.mark.parametrize("collection", COLLECTIONS.values(), ids=COLLECTIONS)


def rows(
    collection: Collection, messages: list[int]
) -> np.ndarray[tuple[int, int], np.dtype[np.uint8]]:
    packed = b"".join(each.to_bytes(collection.message_bytes, "big") for each in messages)
    return np.frombuffer(packed, np.uint8).reshape(-1, collection.message_bytes)


def some(collection: Collection) -> list[int]:
    """Return all messages of a narrow collection; of a wide one, many, true ones among them."""
    bits = 8 * collection.message_bytes
    if bits <= 16:
        return list(range(1 << bits))
    random = np.random.default_rng(1)
    drawn = [int.from_bytes(random.bytes(bits // 8), "big") for _ in range(2000)]
    chance = Random(1)
    true = [message(Series(collection), chance) for _ in range(200)]
    flipped = [each ^ 1 << int(random.integers(bits)) for each in true for _ in range(5)]
    low = [each & ((1 << collection.message_bits) - 1) for each in drawn]
    return [*drawn, *low, *true, *flipped, 0, (1 << bits) - 1]


@every
def test_columns_are_judged_as_each_message_is(collection: Collection) -> None:
    messages = some(collection)
    expected = [collection.mechanism.valid(message) for message in messages]

    assert valid_messages(collection, rows(collection, messages)).tolist() == expected
    assert True in expected


@every
def test_another_width_is_no_message(collection: Collection) -> None:
    for width in {collection.message_bytes - 1, collection.message_bytes + 1} - {0}:
        assert not valid_messages(collection, np.zeros((3, width), np.uint8)).any()


def test_every_kind_of_design_is_here() -> None:
    """A new one must come along."""
    mechanisms = {type(collection.mechanism).__name__ for collection in COLLECTIONS.values()}
    subsets = [
        each.mechanism
        for each in COLLECTIONS.values()
        if isinstance(each.mechanism, SubsetSelection)
    ]

    assert mechanisms == {mechanism.__name__ for mechanism in HANDLERS}
    assert {(mechanism.w > 1, mechanism.masked) for mechanism in subsets} >= {
        (False, False),
        (True, True),
        (True, False),
    }


#: one input a report, a mask, a list of members, a hyperplane
SHAPES = [(10, "4"), (10, "0.5"), (64, "2.5"), (300, "1")]


@pytest.mark.parametrize(("k", "epsilon"), SHAPES)
def test_parts_add_up_to_the_whole_in_integers_and_in_rows(k: int, epsilon: str) -> None:
    collection = of_values(k, epsilon)
    inputs = np.repeat(np.arange(k), falling(k, 1000))
    rows = simulate_messages(collection, inputs, np.random.default_rng(2))
    whole = tally(collection, np.tile(rows, (300, 1)))
    parts = [tally(collection, rows[:400]), tally(collection, rows[400:])]
    integers = [int.from_bytes(row) for row in rows]

    assert (whole == 300 * sum(parts)).all()
    assert not tally(collection, []).any()
    assert (tally(collection, integers) == sum(parts)).all()
