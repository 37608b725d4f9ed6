"""What a figure's error is, measured: one row of the part `figures`, the same at every revision."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike


@dataclass(frozen=True, slots=True)
class Measured:
    """One item at one n: what is None is no figure of this item.

    `found` is a share: of true differences or strings, by an item that looks for them.
    """

    item: str
    n: int
    error: float | None = None  # the root of the mean square
    width: float | None = None  # of an interval, on average
    coverage: float | None = None
    found: float | None = None
    ms: float | None = None  # of CPU, for one call


#: an item of `figures`: its rows from so many rounds, seeded
Item = Callable[[int], Iterable[Measured]]
FIGURES = ("error", "width", "coverage", "found", "ms")


def intervals(
    item: str, n: int, points: ArrayLike, ends: tuple[ArrayLike, ArrayLike], truth: ArrayLike
) -> Measured:
    """Return error, mean width and coverage of intervals, of any shape."""
    low, high = (np.asarray(end) for end in ends)
    errors, covered = np.asarray(points) - truth, (low <= truth) & (truth <= high)
    error = float(np.sqrt(np.mean(errors**2)))
    return Measured(item, n, error, float((high - low).mean()), float(covered.mean()))


def cells(row: Measured) -> Iterator[tuple[str, float]]:
    """Yield the names and values of a row's figures."""
    for name in FIGURES:
        value = getattr(row, name)
        if value is not None:
            yield name, value
