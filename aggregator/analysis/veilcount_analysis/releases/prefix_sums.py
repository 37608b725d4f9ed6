"""Strategies for running totals: what noise is added to, and how totals follow from it.

The totals of d periods are A x, where A is the lower triangle of ones. A strategy is a matrix R of
integers: noise is added to R x, and the totals are A R^+ (R x + z), the least-squares ones. A unit
lies in one period, so it moves R x by one column of R [matrix mechanism, LMHMR15].

- *summed*: R = 1. Each period's value, added up: the error grows with the root of the periods.
- *tree*: each whole range of b^j periods, for a b of `BRANCHES`. A period is in about log_b d of
  them [DNPR10, CSS11], and least squares reconciles the ranges, which favours a large b [HRMS10,
  QYL13].
- *square root*: the matrix square root of A, c_j = c_(j-1) (2 j - 1) / (2 j), here in 1024ths. The
  least error known, up to constants, where the cost is in L2 [HUU23].

Which is best follows from the number of periods and the kind of noise alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from .noise_kinds import NoiseDistribution, NoiseKind

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

MAX_PERIODS = 731
BRANCHES = (2, 8, 11, 13, 16)  # of a tree; up to 731 periods none errs 4 % less
_SQUARE_ROOT_GRAIN = 1024


@dataclass(frozen=True, slots=True, eq=False)
class PrefixStrategy:
    """A matrix of integers that noise is added to, and the one that totals follow by."""

    name: str
    rows: Ints  # R
    totals: Floats  # A R^+

    @classmethod
    def from_rows(cls, name: str, rows: Ints) -> PrefixStrategy:
        """Return a strategy of full column rank."""
        exact = rows.astype(np.float64)
        # A (R'R)^-1 R', from the solution of (R'R) Y = R'
        return cls(name, rows, np.linalg.solve(exact.T @ exact, exact.T).cumsum(axis=0))

    @property
    def l1(self) -> int:
        """The L1 norm of the heaviest column: what one step in one period moves."""
        return int(abs(self.rows).sum(axis=0).max())

    @property
    def l2_squared(self) -> int:
        """The square of its L2 norm."""
        return int((self.rows**2).sum(axis=0).max())

    def predicted_error(self, kind: NoiseKind, share: float = 0) -> float:
        """Return the root mean square error of the totals, less a share of the last, but for a
        factor that all have in common."""
        norm = self.l1 if kind is NoiseKind.LAPLACE else sqrt(self.l2_squared)
        rows = self.totals - share * self.totals[-1]
        return norm * sqrt(float((rows**2).sum(axis=1).mean()))

    def half_widths(self, noise: NoiseDistribution, alpha: float) -> Floats:
        """Return how far each total goes to either side, but with probability alpha."""
        return noise.weighted_half_widths(self.totals, alpha)


@lru_cache(maxsize=16)
def best_strategy(periods: int, kind: NoiseKind, share: float = 0) -> PrefixStrategy:
    """Return the strategy with the least predicted error of totals, less a share of the last."""
    return min(strategies(periods), key=lambda strategy: strategy.predicted_error(kind, share))


def strategies(periods: int) -> list[PrefixStrategy]:
    """Return all strategies for a number of periods."""
    return [
        PrefixStrategy.from_rows("summed", np.eye(periods, dtype=np.int64)),
        *(
            PrefixStrategy.from_rows(tree_name(b), _whole_ranges(periods, b))
            for b in BRANCHES
            if b <= periods
        ),
        PrefixStrategy.from_rows("square root", _square_root(periods)),
    ]


def tree_name(b: int) -> str:
    """Return the name of a tree's strategy."""
    return f"{b}-ary tree"


def _whole_ranges(periods: int, b: int) -> Ints:
    """Return the whole ranges of b^j periods, the single periods first."""
    rows, length = [], 1
    while length <= periods:
        for start in range(0, periods - length + 1, length):
            row = np.zeros(periods, np.int64)
            row[start : start + length] = 1
            rows.append(row)
        length *= b
    return np.array(rows)


def _square_root(periods: int) -> Ints:
    steps = np.arange(1, periods)
    weights = np.cumprod(np.concatenate([[1.0], (2 * steps - 1) / (2 * steps)]))
    whole = np.rint(weights * _SQUARE_ROOT_GRAIN).astype(np.int64)
    lag = np.arange(periods)[:, None] - np.arange(periods)[None, :]
    return np.where(lag >= 0, whole[abs(lag)], 0)
