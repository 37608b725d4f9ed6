"""The rows cover all that is valid, and what is refused is refused with a reason."""

from __future__ import annotations

from itertools import product

from .cells import (
    AXES,
    FIRST_ROWS,
    chosen_rows,
    is_valid,
    refused_pairs,
    rows,
    uncovered,
    valid_subsets,
)

MOST_ROWS = 80


def test_every_valid_pair_is_in_a_row() -> None:
    """And every valid triple of linkage, presence and life, one by one and by each shuffler.

    Printed with the refused pairs.
    """
    for pair, reason in refused_pairs().items():
        print(" x ".join(f"{axis} {member}" for axis, member in pair), "refused:", reason)

    assert not uncovered(rows())
    assert len(rows()) <= MOST_ROWS
    assert all(map(is_valid, rows()))


def test_the_file_has_the_rows_that_are_chosen() -> None:
    assert rows() == chosen_rows(), "`python -m tests.matrix.cells` writes them anew"


def test_a_row_that_is_left_out_is_noticed() -> None:
    for row in rows()[len(FIRST_ROWS) :]:
        assert uncovered([other for other in rows() if other != row]), row


def test_every_member_of_every_axis_is_in_a_valid_combination() -> None:
    members = {member for subset in valid_subsets() if len(subset) == 2 for member in subset}

    assert members == {(axis, member) for axis in AXES for member in AXES[axis]}


def test_a_pair_is_refused_or_covered() -> None:
    """No reason is empty, and none of a pair that some valid combination has."""
    pairs = {
        ((axis, member), (other, another))
        for axis, other in product(AXES, AXES)
        if list(AXES).index(axis) < list(AXES).index(other)
        for member, another in product(AXES[axis], AXES[other])
    }
    refused = refused_pairs()

    assert pairs == refused.keys() | {subset for subset in valid_subsets() if len(subset) == 2}
    assert not refused.keys() & valid_subsets()
    assert all(refused.values())
