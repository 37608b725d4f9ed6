"""Least squares over a trend's intervals once more, in Fractions: by the normal equations."""

from __future__ import annotations

from collections.abc import Collection
from decimal import Decimal
from fractions import Fraction
from functools import cache
from typing import TypeVar

Row = list[Fraction]
Exact = TypeVar("Exact", Fraction, Decimal)


def intervals(periods: int) -> list[range]:
    """The periods of each interval that ends within them, the shortest intervals first."""
    lengths = [1 << level for level in range(periods.bit_length())]
    return [
        range(begin, begin + length)
        for length in lengths
        for begin in range(0, periods - length + 1, length)
    ]


@cache
def exact_weights(periods: int, missing: Collection[int] = frozenset()) -> list[Row]:
    """The weight of each interval in the share after each period: tril(1) (B'B)^-1 B'."""
    held = intervals(periods)
    rows = [[Fraction(period in interval) for period in range(periods)] for interval in held]
    for place in missing:
        rows[place] = [Fraction(0)] * periods
    normal = [
        [sum((row[one] * row[two] for row in rows), Fraction(0)) for two in range(periods)]
        for one in range(periods)
    ]
    counted = [[Fraction(p <= share) for p in range(periods)] for share in range(periods)]
    return [
        [sum(map(Fraction.__mul__, row, solution), Fraction(0)) for row in rows]
        for solution in solved(normal, counted)
    ]


def solved(matrix: list[list[Exact]], rights: list[list[Exact]]) -> list[list[Exact]]:
    """The solution of a regular system for each right side, by one elimination."""
    rows = [list(line) for line in matrix]
    for right in rights:
        for line, value in zip(rows, right, strict=True):
            line.append(value)
    for place in range(len(matrix)):
        pivot = next(row for row in rows[place:] if row[place])
        rows.remove(pivot)
        rows.insert(place, [value / pivot[place] for value in pivot])
        for other, row in enumerate(rows):
            if other != place and row[place]:
                factor = row[place]
                rows[other] = [
                    value - factor * own for value, own in zip(row, rows[place], strict=True)
                ]
    return [[row[at] for row in rows] for at in range(len(matrix), len(matrix) + len(rights))]
