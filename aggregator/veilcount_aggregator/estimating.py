"""Counters to estimates, each with its interval.

The exact P and Q of the definition leave exactness here, once, as the nearest floats.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from veilcount_shared import Collection
from veilcount_shared.design import Mean, Plane, Subset
from veilcount_shared.domain import Number

from .counting import Counters

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Frequencies:
    """The share of each value in the population, in domain order, with its own interval."""

    n: int
    frequency: Floats
    low: Floats
    high: Floats


@dataclass(frozen=True, slots=True)
class Average:
    """The mean of a number in the population, with its interval."""

    n: int
    mean: float
    low: float
    high: float


def estimate(
    collection: Collection, counters: Counters, level: float = 0.95
) -> Frequencies | Average:
    """Return what the counters of one series say, at a confidence level for each figure."""
    z = NormalDist().inv_cdf((1 + level) / 2)
    design, domain = collection.design, collection.domain
    if isinstance(design, Subset):
        return _frequencies(design, counters, int(counters.sum()) // design.w, z)
    if isinstance(design, Plane):
        return _frequencies(design, _supports(design, counters), int(counters.sum()), z)
    if isinstance(design, Mean) and isinstance(domain, Number):
        return _average(design, domain, counters, z)
    raise TypeError(f"{collection.name}: no estimate is known for a {type(design).__name__}")


def _average(design: Mean, domain: Number, counters: Counters, z: float) -> Average:
    """Average the decoded levels; the spread of what was received covers noise and sampling."""
    n = int(counters.sum())
    decoded = np.array([float(value) for value in design.decoded])
    mean = float(counters @ decoded) / n
    error = z * np.sqrt((float(counters @ decoded**2) / n - mean**2) / n)
    low, span = float(domain.low), float(domain.high - domain.low)
    return Average(n, *(float(low + share * span) for share in (mean, mean - error, mean + error)))


def _frequencies(design: Subset | Plane, supports: Counters, n: int, z: float) -> Frequencies:
    """Debias the supports; map Wilson's interval for the support probability, which is linear."""
    p, q = float(design.P), float(design.Q)
    share = supports / n
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z * np.sqrt(share * (1 - share) / n + (z / (2 * n)) ** 2) / (1 + z * z / n)
    low, high = ((end - q) / (p - q) for end in (middle - half, middle + half))
    return Frequencies(n, (share - q) / (p - q), low, high)


def _supports(design: Plane, cells: Counters) -> Counters:
    """Return for each input how many reports lie on a hyperplane through it, cell by cell."""
    supports = np.zeros(design.k, np.int64)
    for cell in np.flatnonzero(cells):
        held = [x for x in range(design.k) if design.supports(int(cell), x)]
        supports[held] += cells[cell]
    return supports
