"""How a cost grows: the power of a size that fits best, and how sure that is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import t as student

LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class Power:
    """A cost grows as size^exponent; the interval is of the fit, and needs three sizes."""

    exponent: float
    low: float
    high: float

    @classmethod
    def fitted_to(cls, sizes: Sequence[float], costs: Sequence[float]) -> Power:
        """Fit a line through the logarithms, by least squares; its slope is the exponent."""
        x, y = np.log(sizes), np.log(costs)
        x = x - x.mean()
        slope = float(x @ y / (x @ x))
        rest = y - y.mean() - slope * x
        free = len(x) - 2
        if free < 1:
            return cls(slope, -np.inf, np.inf)
        error = float(np.sqrt(rest @ rest / free / (x @ x)))
        half = float(student.ppf((1 + LEVEL) / 2, free)) * error
        return cls(slope, slope - half, slope + half)

    def __str__(self) -> str:
        """As it stands in a table."""
        return f"{self.exponent:.2f} ({self.low:.2f} to {self.high:.2f})"
