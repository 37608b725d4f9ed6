"""Messages of subset selection: each subset has one encoding, its shortest."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from math import ceil, comb, log2

import pytest
from hypothesis import given
from hypothesis import strategies as st

from veilcount_client.testing import SeededRandomSource
from veilcount_shared.mechanisms import SubsetSelection
from veilcount_shared.mechanisms.selection import subset_bits

ONE = Fraction(1)


SHAPES = [(k, w) for k in (2, 3, 4, 5, 8, 9, 16, 17, 100) for w in (1, 2, 3, 4, 7, 50) if w < k]


@pytest.mark.parametrize(("k", "w"), SHAPES)
def test_a_subset_is_sent_in_its_shortest_encoding(k: int, w: int) -> None:
    """A label for w = 1; else w packed labels or a k-bit mask, the mask where they are equal."""
    mechanism, label = SubsetSelection.for_epsilon(ONE, k, w), ceil(log2(k))

    assert mechanism.bits == (label if w == 1 else min(k, w * label))
    assert mechanism.masked == (w > 1 and k <= w * label)
    assert mechanism.messages == comb(k, w)
    assert subset_bits(k, w) == mechanism.bits


@pytest.mark.parametrize(("k", "w"), [(5, 1), (7, 3), (4, 2), (16, 2), (17, 2), (9, 2), (10, 2)])
def test_exactly_the_w_subsets_are_valid_each_in_one_encoding(k: int, w: int) -> None:
    """Over all bit strings of a message's length, and one bit more.

    A second encoding would be a channel, a repeated member a double vote.
    """
    mechanism = SubsetSelection.for_epsilon(ONE, k, w)
    valid = [message for message in range(-2, 1 << mechanism.bits + 1) if mechanism.valid(message)]

    assert len(valid) == mechanism.messages
    assert {mechanism.members(message) for message in valid} == {*combinations(range(k), w)}


def test_packed_members_have_the_smallest_in_the_lowest_bits() -> None:
    mechanism = SubsetSelection.for_epsilon(ONE, 100, 3)

    assert mechanism.members(5 | 40 << 7 | 99 << 14) == (5, 40, 99)


@given(st.sampled_from(SHAPES), st.integers(0, 2**32))
def test_every_randomized_message_is_valid(shape: tuple[int, int], seed: int) -> None:
    mechanism = SubsetSelection.for_epsilon(ONE, *shape)
    message = mechanism.randomize(seed % mechanism.k, SeededRandomSource(seed))

    assert mechanism.valid(message)
    assert len(mechanism.members(message)) == mechanism.w
