"""Exact distributions of small designs, from what each input owns: not by the code under test."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import combinations

from veilcount_shared.mechanisms import ProjectiveGeometry, SquareWave, SubsetSelection

Row = Sequence[Fraction]


def rows_of(mechanism: SubsetSelection | ProjectiveGeometry | SquareWave) -> list[Row]:
    """The exact probability of every message, for every input."""
    if isinstance(mechanism, SquareWave):
        return list(mechanism.transition_matrix)
    owned = [
        [owns(mechanism, x, message) for message in every(mechanism)] for x in range(mechanism.k)
    ]
    return [
        [mechanism.P / sum(row) if each else (1 - mechanism.P) / row.count(False) for each in row]
        for row in owned
    ]


def every(mechanism: SubsetSelection | ProjectiveGeometry) -> Iterable[object]:
    """All messages: subsets as tuples, hyperplanes as numbers."""
    if isinstance(mechanism, SubsetSelection):
        return list(combinations(range(mechanism.k), mechanism.w))
    return range(mechanism.messages)


def owns(mechanism: SubsetSelection | ProjectiveGeometry, x: int, message: object) -> bool:
    if isinstance(message, tuple):
        return x in message
    assert isinstance(mechanism, ProjectiveGeometry)
    assert isinstance(message, int)
    return mechanism.supports(message, x)
