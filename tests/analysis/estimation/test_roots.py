"""Roots of many functions at once: smooth ones, and such with jumps."""

from __future__ import annotations

import numpy as np

from veilcount_analysis.estimation.confidence_intervals import Floats
from veilcount_analysis.estimation.roots import TOLERANCE, last_positive

ROOTS = np.array([1e-3, 0.3, 1.2345, 2.2, 2.9])


def test_each_row_has_its_own_root_whatever_its_shape() -> None:
    """A cubic, a step, a staircase, an exponential and a line, in few calls."""
    calls = 0

    def values(x: Floats) -> Floats:
        nonlocal calls
        calls += 1
        away = ROOTS - x
        shapes = (away * (1 + x * x), np.sign(away), np.floor(10 * away) + 0.5)
        return np.choose(np.arange(5), [*shapes, np.expm1(away), away])

    low, high = np.zeros(5), np.full(5, 3.0)
    found = last_positive(values, low, high, (values(low), values(high)))

    assert np.abs(found - ROOTS).max() <= TOLERANCE
    assert (values(found) > 0).all()
    assert calls < 30


def test_a_row_without_an_interval_is_settled() -> None:
    same = np.array([1.0, 2.0])

    assert last_positive(lambda x: 1.5 - x, same, same, (same, same)).tolist() == [1.0, 2.0]
