"""The product's figures are those of the formulas, to what float arithmetic leaves: 1e-9.

On seeded reports of real people and of invented ones. Each row also rejects a figure that is off by
a millionth of itself, whichever it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import partial
from math import isclose
from typing import Any, NamedTuple

import numpy as np
import pytest

from veilcount_analysis.estimation import IntervalTarget, LookCount
from veilcount_analysis.estimation.clopper_pearson import lower, upper
from veilcount_analysis.estimation.estimate_pair import EstimatePair
from veilcount_analysis.estimation.mean import DecodedMean
from veilcount_analysis.estimation.mean_noise import decoded_levels
from veilcount_analysis.estimation.moments import MomentMeans
from veilcount_analysis.estimation.proportions import SupportCounts
from veilcount_analysis.estimation.raking import CellSupports, Margins, RakedShares
from veilcount_analysis.estimation.response_distribution import ResponseDistribution
from veilcount_analysis.estimation.square_wave_em import get_wave
from veilcount_analysis.estimation.trend import TrendCounts
from veilcount_analysis.estimation.weighted_estimator import WeightedMean
from veilcount_analysis.mechanisms.handler import share_handler
from veilcount_analysis.releases import NoiseKind, PartNoise
from veilcount_analysis.releases.moment_intervals import mean_figure
from veilcount_shared.domain import Number
from veilcount_shared.mechanisms import (
    DistributionMechanism,
    MeanMechanism,
    ProjectiveGeometry,
    SubsetSelection,
    TrendMechanism,
    select_mechanism,
)

from ..analysis.estimation.collection_fixtures import of_number, of_values, question, received
from .formulas import (
    ONE,
    Raked,
    Supports,
    average,
    clopper_pearson,
    cohort_ends,
    decimal,
    decoded,
    fieller_normal,
    inside,
    mover,
    normal_quantile,
    score_ends,
    transitions,
    trend,
)
from .people import CLASSES, HIGHEST, LOWEST, Ints, adult, by_class, invented

TOLERANCE, NOTHING, OFF = 1e-9, 1e-13, 1e-6
ALPHA = Decimal("0.05")
SAMPLED = {True: IntervalTarget.POPULATION, False: IntervalTarget.COHORT}
PEOPLE = {"adult": adult, "invented": invented}
Row = tuple[list[float], list[Decimal]]


class Case(NamedTuple):
    """A row of the oracle: figures of the product, and the same by the formulas."""

    name: str
    figures: Callable[[], Row]

    def __str__(self) -> str:
        return self.name


@pytest.fixture(autouse=True)
def fifty_digits() -> Iterator[None]:
    with localcontext(prec=50):
        yield


# -- mechanisms ------------------------------------------------------------------------------------


def of_mechanism(k: int, epsilon: str) -> Row:
    mechanism = select_mechanism(k, epsilon).mechanism
    if isinstance(mechanism, SubsetSelection):
        exact = Supports.of_subsets(Fraction(epsilon), k, mechanism.w)
    else:
        assert isinstance(mechanism, ProjectiveGeometry)
        exact = Supports.of_hyperplanes(Fraction(epsilon), mechanism.q, mechanism.t)
    response = ResponseDistribution.from_mechanism(mechanism)
    shares = np.array([0.0, 0.25, 1.0])
    product = [response.P, response.Q, response.gap]
    oracle = [exact.P, exact.Q, exact.gap]
    for sampled in (True, False):
        product += response.variance(shares, sampled=sampled).tolist()
        oracle += [exact.variance(Decimal(share), sampled=sampled) for share in shares.tolist()]
    return product, oracle


def of_window(measure: str, epsilon: str) -> Row:
    collection = question(f'range = [0, 1]\nmeasure = "{measure}"', epsilon)
    mechanism = collection.mechanism
    assert isinstance(mechanism, MeanMechanism | DistributionMechanism)
    window = mechanism.window
    rows = transitions(Fraction(epsilon), window.width, window.levels)
    values = getattr(mechanism, "values", range(window.levels))
    levels = decoded(rows, values)
    if isinstance(mechanism, MeanMechanism):
        return [*decoded_levels(mechanism).tolist(), float(mechanism.P)], [
            *levels,
            inside(Fraction(epsilon), window.width, window.levels),
        ]
    middle = [Decimal(level) * 255 / 256 + Decimal(1) / 512 for level in levels]
    return get_wave(mechanism).decoded[0].tolist(), middle


# -- shares ----------------------------------------------------------------------------------------


def supports_of(people: Ints, epsilon: str) -> tuple[SupportCounts, Supports]:
    collection = of_values(len(people), epsilon)
    mechanism = collection.mechanism
    assert isinstance(mechanism, SubsetSelection)
    counters = received(collection, people)
    evidence = share_handler(collection).support_counts(counters, np.arange(len(people)))
    return evidence, Supports.of_subsets(Fraction(epsilon), len(people), mechanism.w)


def flat(ends: Any) -> list[float]:
    return [float(end) for pair in zip(*ends, strict=True) for end in pair]


def of_shares(name: str, epsilon: str, *, sampled: bool) -> Row:
    """Points, errors, and score intervals, of classes of age."""
    people = by_class(PEOPLE[name]()).sum(axis=(1, 2))
    evidence, exact = supports_of(people, epsilon)
    target, z, n = SAMPLED[sampled], normal_quantile(ALPHA), evidence.n
    assert not evidence.few(float(ALPHA), target).any()
    counts = evidence.counts.tolist()
    points = [exact.share(decimal(Fraction(count, n))) for count in counts]
    errors = [(exact.variance(share, sampled=sampled) / n).sqrt() for share in points]
    ends = [end for x in counts for end in score_ends(x, n, exact, z, sampled=sampled)]
    product = [*evidence.points.tolist(), *evidence.error(target).tolist()]
    return [*product, *flat(evidence.interval(float(ALPHA), target))], [*points, *errors, *ends]


def of_few(name: str, epsilon: str, *, sampled: bool) -> Row:
    """Exact intervals: of every thousandth person, or so."""
    people = by_class(PEOPLE[name]()).sum(axis=(1, 2))
    evidence, exact = supports_of(people * 60 // people.sum() + 1, epsilon)
    target = SAMPLED[sampled]
    assert evidence.few(float(ALPHA), target).all()
    oracle: list[Decimal] = []
    for count in evidence.counts.tolist():
        if sampled:
            oracle += map(exact.share, clopper_pearson(count, evidence.n, ALPHA))
        else:
            oracle += cohort_ends(count, evidence.n, exact, ALPHA)
    return flat(evidence.interval(float(ALPHA), target)), oracle


def of_difference(epsilon: str) -> Row:
    """Of men and women of Adult, by class of age."""
    sides = [supports_of(by_class(adult())[:, sex].sum(axis=1), epsilon) for sex in (0, 1)]
    (one, exact), (two, _) = sides
    pair = EstimatePair(one, two, IntervalTarget.POPULATION, None, LookCount.ONE)
    z = normal_quantile(ALPHA)
    oracle: list[Decimal] = []
    for counts in zip(one.counts.tolist(), two.counts.tolist(), strict=True):
        both = [
            (exact.share(decimal(Fraction(x, n))), score_ends(x, n, exact, z, sampled=True))
            for x, n in zip(counts, (one.n, two.n), strict=True)
        ]
        oracle += mover(*both)
    return flat(pair.interval(float(ALPHA))), oracle


def of_clopper_pearson() -> Row:
    cells = [(0, 40), (3, 40), (40, 40), (17, 120)]
    product = [float(end(hits, n, 0.025)) for hits, n in cells for end in (lower, upper)]
    return product, [end for hits, n in cells for end in clopper_pearson(hits, n, ALPHA)]


# -- numbers ---------------------------------------------------------------------------------------


def of_mean(name: str, epsilon: str) -> Row:
    """The mean age, by few levels, and its error."""
    collection = of_number(LOWEST, HIGHEST, epsilon)
    mechanism, domain = collection.mechanism, collection.domain
    assert isinstance(mechanism, MeanMechanism)
    assert isinstance(domain, Number)
    counters = age_counters(mechanism, name)
    window = mechanism.window
    rows = transitions(Fraction(epsilon), window.width, window.levels)
    width = HIGHEST - LOWEST
    levels = [LOWEST + width * level for level in decoded(rows, mechanism.values)]
    mean, variance = average(levels, counters.tolist())
    n = int(counters.sum())
    shown = DecodedMean.from_counters(mechanism, domain, counters)
    error = shown.error(IntervalTarget.POPULATION)
    return [shown.mean, float(error[0])], [mean, (variance / n).sqrt()]


def age_counters(mechanism: MeanMechanism | DistributionMechanism, name: str) -> Ints:
    """The counters of reports of these ages, to the nearest start of a window."""
    people = PEOPLE[name]().sum(axis=(1, 2))
    starts = np.rint(np.linspace(0, mechanism.inputs - 1, len(people))).astype(np.int64)
    rows = np.array(mechanism.transition_matrix, np.float64)[starts]
    counters: Ints = np.random.default_rng(8).multinomial(people, rows).sum(axis=0)
    return counters


def of_square_wave(name: str, epsilon: str) -> Row:
    """The mean of a distribution's reports, and its error."""
    mechanism = question('range = [0, 1]\nmeasure = "distribution"', epsilon).mechanism
    assert isinstance(mechanism, DistributionMechanism)
    counters, window = age_counters(mechanism, name), mechanism.window
    rows = transitions(Fraction(epsilon), window.width, window.levels)
    levels = [x * 255 / 256 + ONE / 512 for x in decoded(rows, range(window.levels))]
    mean, variance = average(levels, counters.tolist())
    shown = WeightedMean.from_counters(
        Number(Fraction(0), Fraction(1)), counters, get_wave(mechanism).numbers
    )
    error = float(shown.error(IntervalTarget.POPULATION)[0])
    return [float(shown.points[0]), error], [mean, (variance / int(counters.sum())).sqrt()]


def of_moments(epsilon: str) -> Row:
    """Of one number: its mean, that of its square, and the variance, less the mean's own."""
    mechanism = of_number(0, 1, epsilon).mechanism
    assert isinstance(mechanism, MeanMechanism)
    window = mechanism.window
    rows = transitions(Fraction(epsilon), window.width, window.levels)
    exact = [2 * level - 1 for level in decoded(rows, mechanism.values)]
    counters = np.stack([age_counters(mechanism, name) for name in PEOPLE])
    shown = MomentMeans.from_levels(1, counters, 2 * decoded_levels(mechanism) - 1)
    (mean, spread), (square, spread_of_squares) = (average(exact, row.tolist()) for row in counters)
    n, squares = (int(row.sum()) for row in counters)
    second = (square + 1) / 2
    product = [*shown.points.tolist(), *shown.variances.tolist()]
    product.append(float(shown.numbers().variances[0]))
    oracle = [mean, second, spread / n, spread_of_squares / 4 / squares]
    return product, [*oracle, second - mean**2 + spread / n]


def of_trend(periods: int, epsilon: str) -> Row:
    mechanism = TrendMechanism.for_epsilon(Fraction(epsilon), periods, 1)
    sizes = [1 << level for level in range(mechanism.levels)]
    generator = np.random.default_rng(periods)
    reports = np.array([700 for size in sizes for _ in range(periods // size)])
    rises = generator.binomial(reports, generator.uniform(0.4, 0.6, len(reports)))
    counts = TrendCounts(float(mechanism.gap), mechanism.levels, periods, rises, reports)
    gap = 2 * inside(Fraction(epsilon), 1, 2) - 1
    product: list[float] = []
    for period in range(1, periods + 1):
        shown = counts.after(period)
        assert shown is not None
        product += [shown.points[1], shown.error(IntervalTarget.COHORT)[1]]
    rows = trend(rises.tolist(), reports.tolist(), gap, periods)
    return product, [figure for row in rows for figure in row]


# -- populations and releases ----------------------------------------------------------------------


def of_raking(name: str, epsilon: str) -> Row:
    """Who earns more, by age and sex of those who answer: those of Adult are the population."""
    collection = of_values(2, epsilon)
    classes, cells = by_class(PEOPLE[name]()) + 1, by_class(adult()).sum(axis=2)
    whole = int(cells.sum())
    ages, sexes = (
        tuple(Fraction(int(cell), whole) for cell in cells.sum(axis=axis)) for axis in (1, 0)
    )
    evidence, hits = [], []
    for place, people in enumerate(classes.reshape(-1, 2)):
        counters = received(collection, people, place)
        side = share_handler(collection).support_counts(counters, np.array([1]))
        evidence.append(side)
        hits.append(int(side.counts[0]))
    digits = np.stack(np.unravel_index(np.arange(2 * CLASSES), (CLASSES, 2)), axis=1)
    margins = Margins(digits, (np.array(ages, float), np.array(sexes, float)))
    raked = RakedShares(CellSupports.from_counts(evidence), margins)
    reports = [side.n for side in evidence]
    exact = Raked(reports, hits, ages, sexes, Supports.of_subsets(Fraction(epsilon), 2, 1))
    share, variance = exact.figures()
    product = [*raked.population.tolist(), float(raked.points[0]), float(raked.variance[0])]
    return product, [*exact.population(), share, variance]


def of_release(name: str, scale: int) -> Row:
    """The mean age from noised distances to both ends, under normal noise."""
    people = PEOPLE[name]().sum(axis=(1, 2))
    ages = np.arange(len(people))
    up, down = (int(people @ distance) + 3 * scale for distance in (ages, ages[::-1]))
    noise = PartNoise("distances", 1, float(scale), 0.0, 0, NoiseKind.GAUSSIAN)
    product = mean_figure([up, down], noise, float(ALPHA))
    ends = fieller_normal(up, down, Decimal(scale), normal_quantile(ALPHA))
    return list(product), [Decimal(up) / (up + down), *ends]


CASES = [
    *(
        Case(f"mechanism {k} at {epsilon}", partial(of_mechanism, k, epsilon))
        for k, epsilon in [(2, "1"), (8, "0.5"), (16, "4"), (300, "1"), (1_024, "2"), (5_000, "8")]
    ),
    *(
        Case(f"{measure} at {epsilon}", partial(of_window, measure, epsilon))
        for measure in ("mean", "distribution")
        for epsilon in ("0.5", "1", "4")
    ),
    *(
        Case(f"{kind.__name__} {name}, {target}", partial(kind, name, "2", sampled=target.sampled))
        for kind in (of_shares, of_few)
        for name in PEOPLE
        for target in IntervalTarget
    ),
    Case("difference", partial(of_difference, "1")),
    Case("Clopper-Pearson", of_clopper_pearson),
    *(
        Case(f"{kind.__name__} {name}", partial(kind, name, "1"))
        for kind in (of_mean, of_square_wave, of_raking)
        for name in PEOPLE
    ),
    Case("moments", partial(of_moments, "2")),
    *(Case(f"trend {periods}", partial(of_trend, periods, "1")) for periods in (1, 7, 12)),
    *(Case(f"release {name}", partial(of_release, name, 400)) for name in PEOPLE),
]


def differing(product: list[float], oracle: list[Decimal]) -> list[int]:
    pairs = enumerate(zip(product, oracle, strict=True))
    return [
        place
        for place, (figure, exact) in pairs
        if not isclose(figure, float(exact), rel_tol=TOLERANCE, abs_tol=NOTHING)
    ]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_figures_are_those_of_the_formulas(case: Case) -> None:
    """Planted: each figure that is not 0, off by a millionth of itself."""
    product, oracle = case.figures()

    assert differing(product, oracle) == []
    for place, figure in enumerate(product):
        perturbed = [*product[:place], figure * (1 + OFF), *product[place + 1 :]]
        assert differing(perturbed, oracle) == ([place] if abs(figure) > 1e-6 else [])
