"""How a cost grows with a size: a fixed cost and a power of the size, fitted together.

A fixed cost would hide the growth at small sizes, so it is fitted too. An index of n entries and a
sort take n log n, which no power describes: whether that fits as well is a verdict of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls
from scipy.stats import f as fisher

EXPONENTS = np.arange(0, 250) / 100
LEVEL = 0.95
MOST, WIDEST = 1.05, 0.15  # an exponent, and its interval


@dataclass(frozen=True, slots=True)
class Growth:
    """A cost is a + b size^exponent, within an interval by the fit's likelihood."""

    exponent: float
    low: float
    high: float
    is_log_linear: bool  # a + b n + c n log n fits as well as a power within the interval

    @classmethod
    def fitted_to(cls, sizes: Sequence[float], costs: Sequence[float]) -> Growth:
        """Fit by least squares of relative errors, for each exponent in turn; of four sizes."""
        n, y = np.asarray(sizes, np.float64), np.asarray(costs, np.float64)
        squares, free = np.array([_rest(y, n**power) for power in EXPONENTS]), len(y) - 3
        allowed = squares.min() * (1 + fisher.ppf(LEVEL, 1, free) / free)
        inside = EXPONENTS[squares <= allowed]
        return cls(
            float(EXPONENTS[squares.argmin()]),
            float(inside[0]),
            float(inside[-1]),
            bool(_rest(y, n, n * np.log(n)) <= allowed),
        )

    @property
    def is_narrow(self) -> bool:
        """Whether the interval tells one kind of growth from another."""
        return self.high - self.low <= WIDEST + 1e-9

    def is_met(self, *, has_log: bool = False) -> bool:
        """Whether it is surely in proportion at most, or n log n where that is the work."""
        return self.is_narrow and (self.exponent <= MOST or (has_log and self.is_log_linear))

    def __str__(self) -> str:
        return f"{self.exponent:.2f} ({self.low:.2f} to {self.high:.2f})"


def _rest(y: NDArray[np.float64], *terms: NDArray[np.float64]) -> float:
    """Return the squares that a fixed cost and some of each term, none negative, leave."""
    columns = np.stack([np.ones(len(y)), *(term / term[-1] * y[-1] for term in terms)], axis=1)
    return float(nnls(columns / y[:, np.newaxis], np.ones(len(y)))[1] ** 2)
