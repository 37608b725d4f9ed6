"""Comparisons: the interval of a difference, and whether one of the detectable size is seen."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from veilcount_analysis.estimation import DifferenceEstimate, ShareEstimates, compare
from veilcount_analysis.estimation.confidence_intervals import Floats
from veilcount_analysis.mechanisms import estimate
from veilcount_analysis.simulation import simulate

from .definitions import choice
from .measured_figures import Measured, intervals

VALUES, EPSILON = 5, 1
SIZES = (500, 2_000, 20_000)  # reports of each side
ITEM = "difference of a share"


def differences(rounds: int) -> Iterator[Measured]:
    """Compare samples that differ in one value by what a comparison states as detectable."""
    for n in SIZES:
        generator, even = np.random.default_rng(n), np.full(VALUES, 1 / VALUES)
        detectable = float(_compared(n, even, even, generator).detectable[0])
        one, two = (_shares(1 / VALUES + sign * detectable / 2) for sign in (1, -1))
        compared = [_compared(n, one, two, generator) for _ in range(rounds)]
        points, low, high = (
            np.array([getattr(found, name)[0] for found in compared])
            for name in ("difference", "low", "high")
        )
        measured = intervals(ITEM, n, points, (low, high), one[0] - two[0])
        yield replace(measured, found=float(np.mean([found.differs[0] for found in compared])))


def _shares(first: float) -> Floats:
    """Return shares of which all but the first are equal."""
    share = max(first, 0.0)
    return np.array([share, *[(1 - share) / (VALUES - 1)] * (VALUES - 1)])


def _compared(
    n: int, one: Floats, two: Floats, generator: np.random.Generator
) -> DifferenceEstimate:
    return compare(_sample(n, one, generator), _sample(n, two, generator))


def _sample(n: int, shares: Floats, generator: np.random.Generator) -> ShareEstimates:
    question = choice(VALUES, EPSILON)
    counters = simulate(question, generator.multinomial(n, shares), generator)
    sample = estimate(question, counters, target="population")
    if not isinstance(sample, ShareEstimates):
        raise TypeError("listed values have shares")
    return sample
