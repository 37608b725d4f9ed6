"""Means of a range's measures that also have a distribution: few reports, skewed answers."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np
from scipy import stats

from veilcount_analysis.estimation import IntervalTarget
from veilcount_analysis.mechanisms import estimate_mean
from veilcount_analysis.simulation import simulate
from veilcount_shared.collection import Measure
from veilcount_shared.domain import Number

from .definitions import ask
from .measured_figures import Measured, intervals

EPSILON, SIZES = 4, (50, 200, 500)
BUCKETS = 256
MIDDLES = (np.arange(BUCKETS) + 0.5) / BUCKETS


def range_means(rounds: int) -> Iterator[Measured]:
    """Estimate the mean of answers from a beta distribution, for a population and a cohort."""
    for measure in (Measure.RANGES, Measure.DISTRIBUTION):
        for target in IntervalTarget:
            for n in SIZES:
                yield _measured(measure, target, n, rounds)


def _measured(measure: Measure, target: IntervalTarget, n: int, rounds: int) -> Measured:
    question = ask(Number(Fraction(0), Fraction(1)), EPSILON, measure=measure)
    generator = np.random.default_rng(n)
    shares = np.diff(stats.beta(1, 14).cdf(np.linspace(0, 1, BUCKETS + 1)))
    people = generator.multinomial(n, shares, size=rounds)
    found = [
        estimate_mean(question, simulate(question, one, generator), target=target.value)
        for one in people
    ]
    points, low, high = (
        np.array([getattr(mean, name) for mean in found]) for name in ("mean", "low", "high")
    )
    truth = shares @ MIDDLES if target.sampled else people @ MIDDLES / n
    return intervals(f"mean of {measure}, {target}", n, points, (low, high), truth)
