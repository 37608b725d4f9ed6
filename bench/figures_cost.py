"""What each figure costs a page: CPU milliseconds of one call, on reports of its own.

A first call is left out: it imports scipy and fills tables that depend on no reports.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from statistics import median

import numpy as np
from numpy.random import Generator

from veilcount_analysis.estimation import IntervalTarget, LookCount
from veilcount_analysis.estimation.covered_supports import CoveredSupports
from veilcount_analysis.estimation.difference import detectable
from veilcount_analysis.estimation.estimate_pair import EstimatePair
from veilcount_analysis.estimation.joint_difference import p_of_any, pooled
from veilcount_analysis.estimation.proportions import SupportCounts
from veilcount_analysis.estimation.raking import CellSupports, Margins, RakedShares
from veilcount_analysis.estimation.trend import TrendCounts
from veilcount_analysis.mechanisms.handler import share_handler
from veilcount_analysis.releases import NoiseKind, PartNoise, draw_release, price_query
from veilcount_analysis.releases.moment_intervals import mean_figure, variance_figure
from veilcount_analysis.releases.noise import simulated_source
from veilcount_shared.mechanisms import TrendMechanism

from .definitions import choice
from .figures_central import AGES
from .measured_figures import Measured
from .stopwatch import cpu_us

CALLS, ALPHA = 5, 0.05
PERIODS, VALUES, LISTED, N = 365, 20, 300, 5_000
GROUPS = (5, 4)
Call = Callable[[], object]


def costs(_rounds: int) -> Iterator[Measured]:
    """Time every figure of a page."""
    for name, n, prepare in COSTS:
        calls = [prepare(np.random.default_rng(seed)) for seed in range(CALLS + 1)]
        yield Measured(f"cost: {name}", n, ms=median([cpu_us(call) for call in calls][1:]) / 1e3)


def _trend(generator: Generator) -> Call:
    mechanism = TrendMechanism.for_epsilon(Fraction(1), PERIODS, 1)
    lengths = [1 << level for level in range(mechanism.levels)]
    reports = np.array([N // len(lengths) for size in lengths for _ in range(PERIODS // size)])
    rises = generator.binomial(reports, 0.5)
    gap, levels = float(mechanism.gap), mechanism.levels

    def page() -> None:
        counts = TrendCounts(gap, levels, PERIODS, rises, reports)
        for period in range(1, PERIODS + 1):
            if shown := counts.after(period):
                shown.interval(ALPHA, IntervalTarget.COHORT)
                shown.poisoned(0.01)

    return page


def _release(query: str) -> Callable[[Generator], Call]:
    def prepare(generator: Generator) -> Call:
        counters = np.bincount(generator.integers(100, size=N), minlength=100)
        priced = price_query({"query": query, "epsilon": "0.5"}, AGES)
        noise = simulated_source(NoiseKind.LAPLACE, generator)
        return lambda: draw_release(priced, counters, noise=noise)

    return prepare


def _moment(figure: Callable[..., object], sums: int) -> Callable[[Generator], Call]:
    def prepare(generator: Generator) -> Call:
        noise = PartNoise("sums", 99, 198.0, 0.0, 0, NoiseKind.LAPLACE)
        released = generator.integers(10_000, 200_000, sums).tolist()
        return lambda: figure(released, noise, ALPHA)

    return prepare


def _sides(generator: Generator, k: int, epsilon: int, covers: int) -> Iterator[SupportCounts]:
    response = share_handler(choice(k, epsilon)).response
    chances = response.Q + response.gap * generator.dirichlet(np.ones(k))
    for _ in "ab":
        counts = generator.binomial(N, chances)
        if covers:
            mixed = counts + generator.binomial(covers, 1 / k, k)
            yield CoveredSupports(N, mixed, response, k, covers, 1 / k)
        else:
            yield SupportCounts(N, counts, response, k)


def _pair(
    call: Callable[[EstimatePair], object],
    target: IntervalTarget = IntervalTarget.POPULATION,
    epsilon: int = 1,
    covers: int = 0,
) -> Callable[[Generator], Call]:
    def prepare(generator: Generator) -> Call:
        one, two = _sides(generator, VALUES, epsilon, covers)
        return lambda: call(EstimatePair(one, two, target, None, LookCount.ONE))

    return prepare


def _p_value(pair: EstimatePair) -> object:
    return pair.p_value(ALPHA)


def _detectable(pair: EstimatePair) -> object:
    return detectable(pair, ALPHA / VALUES)


def _overall(generator: Generator) -> Call:
    one, two = _sides(generator, LISTED, 4, 0)
    handler, target = share_handler(choice(LISTED, 4)), IntervalTarget.POPULATION

    def test() -> float:
        together = pooled(one, two)
        sides = (handler.share_covariance(side, together, target) for side in (one, two))
        return p_of_any(one, two, np.sum([matrix for matrix in sides if matrix is not None], 0))

    return test


def _raking(generator: Generator) -> Call:
    response, cells = share_handler(choice(VALUES, 1)).response, GROUPS[0] * GROUPS[1]
    sizes = generator.integers(100, 500, cells)
    rows = [SupportCounts(int(n), generator.binomial(n, 0.3, VALUES), response, 1) for n in sizes]
    digits = np.stack(np.unravel_index(np.arange(cells), GROUPS), axis=1)
    shares = tuple(np.full(size, 1 / size) for size in GROUPS)

    def page() -> None:
        raked = RakedShares(CellSupports.from_counts(rows), Margins(digits, shares))
        raked.interval(ALPHA)
        raked.poisoned(0.01)

    return page


COHORT = IntervalTarget.COHORT
#: figure, n, and what returns a call with reports of its own
COSTS: tuple[tuple[str, int, Callable[[Generator], Call]], ...] = (
    (f"trend of {PERIODS} periods", N, _trend),
    ("central mean", N, _moment(mean_figure, 2)),
    ("central variance", N, _moment(variance_figure, 3)),
    ("central median", N, _release("median")),
    (f"detectable, {VALUES} values", N, _pair(_detectable)),
    (f"p, {VALUES} values", N, _pair(_p_value)),
    (f"p, {VALUES} values, cohort", N, _pair(_p_value, COHORT, epsilon=4)),
    (f"p, {VALUES} values, covers", N, _pair(_p_value, epsilon=4, covers=142)),
    (f"p, {VALUES} values, cohort and covers", N, _pair(_p_value, COHORT, 4, 142)),
    (f"one test of {LISTED} values", N, _overall),
    (f"raking, {VALUES} values", N, _raking),
)
