"""The exact law of small designs, from what each input owns: not by the code under test."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import combinations

from veilcount_shared.mechanisms import ProjectiveGeometry, SquareWave, SubsetSelection

Row = Sequence[Fraction]


def rows_of(design: SubsetSelection | ProjectiveGeometry | SquareWave) -> list[Row]:
    """The exact probability of every message, for every input."""
    if isinstance(design, SquareWave):
        return list(design.rows)
    owned = [[owns(design, x, message) for message in every(design)] for x in range(design.k)]
    return [
        [design.P / sum(row) if each else (1 - design.P) / row.count(False) for each in row]
        for row in owned
    ]


def every(design: SubsetSelection | ProjectiveGeometry) -> Iterable[object]:
    """All messages: subsets as tuples, hyperplanes as numbers."""
    if isinstance(design, SubsetSelection):
        return list(combinations(range(design.k), design.w))
    return range(design.messages)


def owns(design: SubsetSelection | ProjectiveGeometry, x: int, message: object) -> bool:
    """Whether an input owns a message."""
    if isinstance(message, tuple):
        return x in message
    assert isinstance(design, ProjectiveGeometry)
    assert isinstance(message, int)
    return design.supports(message, x)
