"""Settings drawn at random, with a weight on corners: epsilon, n, domain, truth and estimand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.random import Generator

from veilcount_analysis.estimation import IntervalTarget
from veilcount_analysis.estimation.mean import DecodedMean
from veilcount_analysis.estimation.range_queries import TreeReports
from veilcount_analysis.estimation.response_distribution import ResponseDistribution
from veilcount_analysis.estimation.square_wave_em import get_wave
from veilcount_analysis.estimation.weighted_estimator import WeightedMean
from veilcount_analysis.mechanisms.range_tree import tree_reading
from veilcount_analysis.releases.discrete_laplace import DiscreteLaplaceNoise
from veilcount_analysis.releases.opendp_noise import calibrated_scale
from veilcount_analysis.simulation import Population, simulate
from veilcount_shared import Collection
from veilcount_shared.domain import GRID, Number
from veilcount_shared.mechanisms import (
    DistributionMechanism,
    MeanMechanism,
    RangeTree,
    select_mechanism,
)
from veilcount_shared.mechanisms.square_wave import BUCKETS

from ..analysis.estimation.collection_fixtures import (
    mean,
    of_number,
    of_values,
    question,
    shares,
    sums,
)
from .coverage_harness import (
    LEVEL,
    Coverage,
    Floats,
    Ints,
    Setting,
    coverage,
    level_probabilities,
    mean_errors,
)

TARGETS = tuple(IntervalTarget)
ROUND_OFF = 1e-9
UNIT = Number(Fraction(0), Fraction(1))
MIDDLES = ((np.arange(BUCKETS) + 0.5) / BUCKETS)[np.newaxis]

HalfWidth = Callable[[Collection, MeanMechanism, int], float]
Draw = Callable[[Generator, int, float], Setting]
Ends = tuple[Floats, Floats]


# -- corners ---------------------------------------------------------------------------------------


def an_epsilon(rng: Generator) -> str:
    """From 0.1 to 12, small and large ones alike."""
    return f"{np.exp(rng.uniform(np.log(0.1), np.log(12))):.2f}"


def a_size(rng: Generator, most: int) -> int:
    """From 1 to the most, each order of magnitude as likely as the next."""
    return int(np.exp(rng.uniform(0, np.log(most + 1))))


def people(rng: Generator, k: int, n: int) -> Ints:
    """How many of n hold each of k values: all one, two halves, one rare, falling, or even."""
    order = rng.permutation(k)
    shares = np.zeros(k)
    match rng.integers(5):
        case 0:
            shares[order[0]] = 1
        case 1:
            shares[order[:2]] = 1
        case 2:
            shares[order[:2]] = 1, 0.02
        case 3:
            shares[order] = np.arange(1, k + 1) ** -1.3
        case _:
            shares[:] = 1
    return np.asarray(rng.multinomial(n, shares / shares.sum()))


def numbers(rng: Generator, n: int, mechanism: MeanMechanism) -> tuple[Floats, Ints]:
    """Numbers of [0, 1], and how many of n have each.

    All one, at two ends, all but a few at one end, any one, any four; or any of those that are
    sent without rounding, and one more.
    """
    match rng.integers(6):
        case 0:
            return np.array([rng.choice([0.0, 0.5, 1.0])]), np.array([n])
        case 1:
            high = int(rng.integers(0, n + 1))
            return np.array([0.0, 1.0]), np.array([n - high, high])
        case 2:
            one = int(rng.integers(0, min(n, 3) + 1))
            return np.array([0.0, 1.0]), np.array([n - one, one])
        case 3:
            return np.array([rng.uniform()]), np.array([n])
        case 4:
            return np.sort(rng.uniform(size=4)), rng.multinomial(n, np.full(4, 1 / 4))
        case _:
            starts = np.array([float(start) for start in mechanism.means])
            starts = (starts - starts[0]) / (starts[-1] - starts[0])
            some = np.append(rng.choice(starts, 2), [0.0, 1.0, rng.uniform()])
            return some, rng.multinomial(n, rng.dirichlet(np.ones(5)))


@dataclass(frozen=True)
class Survey:
    """Who is asked what, and the estimand's true value: of these, or of a population like them."""

    collection: Collection
    held: Ints
    target: IntervalTarget
    true: Floats
    points: Ints | None = None  # of the grid, that are held; by default, all inputs in turn

    def setting(
        self, name: str, look: Callable[[Ints], Ends], rng: Generator, rounds: int, width: float
    ) -> Setting:
        """A setting whose coverage is counted over seeded rounds."""
        start, n = int(rng.integers(1 << 31)), int(self.held.sum())

        def measure() -> Coverage:
            rng, covered = np.random.default_rng(start), 0
            for _ in range(rounds):
                held = rng.multinomial(n, self.held / n) if self.target.sampled else self.held
                whom = held if self.points is None else Population(self.points, held)
                low, high = look(simulate(self.collection, whom, rng))
                covered += holds(low, self.true, high, width)
            return Coverage(covered, rounds)

        epsilon = float(self.collection.unit_epsilon)
        about = f"{self.target}, epsilon {epsilon:g}, n {n}, held {self.held.max()}"
        return Setting(f"{name}, {about}", measure)


def holds(low: Floats, true: Floats, high: Floats, width: float) -> bool:
    """Whether all the intervals hold, if each had this many times its width."""
    low, high = (low + high - width * (high - low)) / 2, (low + high + width * (high - low)) / 2
    return bool(((low <= true + ROUND_OFF) & (true - ROUND_OFF <= high)).all())


# -- shares ----------------------------------------------------------------------------------------


def share(rng: Generator, _rounds: int, width: float) -> Setting:
    """One share, `absent` among them: exactly."""
    epsilon, k, n = an_epsilon(rng), 1 + a_size(rng, 65_535), a_size(rng, 20_000)
    true = float(rng.choice([0, 1, rng.uniform(), 10 ** rng.uniform(-4, 0)]))
    target, mechanism = TARGETS[rng.integers(2)], select_mechanism(max(k, 2), epsilon).mechanism
    response = ResponseDistribution.from_mechanism(mechanism)
    name = f"share {true:.4g} of {k} values, {target}, epsilon {epsilon}, n {n}"
    return Setting(name, lambda: Coverage(coverage(response, n, true, target, width=width)))


def group_share(rng: Generator, rounds: int, width: float) -> Setting:
    """The share of one group of values, of all reports or of those in a larger group."""
    epsilon, k, n = an_epsilon(rng), 3 + a_size(rng, 600), 1 + a_size(rng, 3_000)
    target, held = TARGETS[rng.integers(2)], people(rng, k, n)
    order = rng.permutation(k)
    size = 1 + int(rng.integers(k - 1))
    group = order[:size]
    within = order[: int(rng.integers(size, k)) + 1] if rng.random() < 0.4 else None
    whole = n if within is None else int(held[within].sum())
    if not whole:
        within, whole = None, n
    survey = Survey(of_values(k, epsilon), held, target, np.array([held[group].sum() / whole]))

    def look(counters: Ints) -> Ends:
        shown = sums(survey.collection, counters, [group], within=within, target=target.value)
        return shown.low, shown.high

    part = "all" if within is None else f"{len(within)} values"
    return survey.setting(f"share of {size} of {k} values within {part}", look, rng, rounds, width)


def share_of_answered(rng: Generator, rounds: int, width: float) -> Setting:
    """The share of one value among the devices that answered, where presence is hidden."""
    epsilon, k, n = an_epsilon(rng), 2 + a_size(rng, 30), 1 + a_size(rng, 5_000)
    target, held = TARGETS[rng.integers(2)], people(rng, k + 1, n)
    if not held[:-1].sum():
        held = np.roll(held, 1)
    place, collection = int(rng.integers(k)), of_values(k, epsilon, 'presence = "hidden"')
    survey = Survey(collection, held, target, held[place : place + 1] / held[:-1].sum())

    def look(counters: Ints) -> Ends:
        shown = shares(collection, counters, among="answered", values=[place], target=target.value)
        return shown.low, shown.high

    name = f"share of {held[:-1].sum()} that answered, {k} values"
    return survey.setting(name, look, rng, rounds, width)


def shares_together(rng: Generator, rounds: int, width: float) -> Setting:
    epsilon, k, n = an_epsilon(rng), 2 + a_size(rng, 400), a_size(rng, 5_000)
    target, held = TARGETS[rng.integers(2)], people(rng, k, n)
    survey = Survey(of_values(k, epsilon), held, target, held / n)

    def look(counters: Ints) -> Ends:
        shown = shares(survey.collection, counters, simultaneous=True, target=target.value)
        return shown.low, shown.high

    return survey.setting(f"{k} shares together", look, rng, rounds, width)


# -- means -----------------------------------------------------------------------------------------


def half_width_of(collection: Collection, mechanism: MeanMechanism, n: int) -> float:
    """Half the cohort's interval: the same whatever was received."""
    received = np.zeros(mechanism.messages, np.int64)
    received[0] = n
    shown = mean(collection, received, target="cohort")
    return (shown.high - shown.low) / 2


def exact_mean_coverage(
    mechanism: MeanMechanism, held: tuple[Floats, Ints], half: float
) -> Coverage:
    """The probability that the cohort's mean is within half of its estimate."""
    errors, chances = mean_errors(mechanism, *held)
    return Coverage(float(chances[np.abs(errors) <= half + ROUND_OFF].sum()))


def simulated_mean_coverage(
    mechanism: MeanMechanism,
    held: tuple[Floats, Ints],
    half: float,
    *,
    rounds: int,
    start: int,
    truly: MeanMechanism | None = None,
) -> Coverage:
    """The same for large n: of the estimates of simulated counters."""
    places, counts = held
    rng, total = np.random.default_rng(start), np.zeros((rounds, mechanism.messages))
    levels = level_probabilities(truly or mechanism, places)
    for chances, count in zip(levels, counts, strict=True):
        total += rng.multinomial(count, chances, size=rounds)
    decoded = np.array([float(level) for level in mechanism.decoded])
    errors = (total @ decoded - float(places @ counts)) / counts.sum()
    return Coverage(int((np.abs(errors) <= half + ROUND_OFF).sum()), rounds)


def normal_half_width(_collection: Collection, mechanism: MeanMechanism, n: int) -> float:
    """What the half-width would be if the noise were normal."""
    return 1.959964 * float(np.sqrt(float(mechanism.variance) / 4 / n))


def cohort_mean(
    rng: Generator, rounds: int, width: float, half_width: HalfWidth = half_width_of
) -> Setting:
    """The mean of exactly these numbers: exactly for few, else simulated."""
    epsilon, n = an_epsilon(rng), a_size(rng, int(rng.choice([40, 3_000])))
    collection = of_number(epsilon=epsilon)
    mechanism = collection.mechanism
    assert isinstance(mechanism, MeanMechanism)
    held, start = numbers(rng, n, mechanism), int(rng.integers(1 << 31))

    def measure() -> Coverage:
        half = width * half_width(collection, mechanism, n)
        if n <= 12:
            return exact_mean_coverage(mechanism, held, half)
        return simulated_mean_coverage(mechanism, held, half, rounds=40 * rounds, start=start)

    return Setting(f"cohort mean, epsilon {epsilon}, n {n}, numbers {held}", measure)


def population_mean(rng: Generator, rounds: int, width: float) -> Setting:
    """The mean of a population that a sample answers for."""
    epsilon, n = an_epsilon(rng), a_size(rng, int(rng.choice([40, 3_000])))
    collection, target = of_number(epsilon=epsilon), IntervalTarget.POPULATION
    mechanism = collection.mechanism
    assert isinstance(mechanism, MeanMechanism)
    places, held = numbers(rng, n, mechanism)
    points = np.rint(places * GRID).astype(np.int64)
    survey = Survey(collection, held, target, np.array([places @ held / n]), points)

    def look(counters: Ints) -> Ends:
        return DecodedMean.from_counters(mechanism, UNIT, counters).interval(1 - LEVEL, target)

    return survey.setting(f"mean of {places}", look, rng, rounds, width)


# -- how a number is spread ------------------------------------------------------------------------


def mean_of_distribution(rng: Generator, rounds: int, width: float) -> Setting:
    """The unbiased mean from the square wave, which does not depend on its histogram."""
    epsilon, n = an_epsilon(rng), a_size(rng, 30_000)
    target, held = TARGETS[rng.integers(2)], people(rng, BUCKETS, n)
    collection = question('range = [0, 1]\nmeasure = "distribution"', epsilon)
    mechanism = collection.mechanism
    assert isinstance(mechanism, DistributionMechanism)
    wave, survey = get_wave(mechanism), Survey(collection, held, target, MIDDLES @ held / n)

    def look(counters: Ints) -> Ends:
        decoded = WeightedMean.from_counters(UNIT, counters, wave.numbers)
        return decoded.interval(1 - LEVEL, target)

    return survey.setting("mean of a distribution", look, rng, rounds, width)


def ranges_of(rng: Generator, rounds: int, width: float) -> Setting:
    """A share between two bounds, the mean, or the curve's band at every edge at once."""
    epsilon, n = an_epsilon(rng), a_size(rng, 30_000)
    target, held = TARGETS[rng.integers(2)], people(rng, BUCKETS, n)
    collection = question('range = [0, 1]\nmeasure = "ranges"', epsilon)
    mechanism = collection.mechanism
    assert isinstance(mechanism, RangeTree)
    first, last = np.sort(rng.choice(BUCKETS + 1, 2, replace=False))
    within = np.zeros((1, BUCKETS))
    within[0, first:last] = 1
    figures = {"share": within, "mean": MIDDLES, "curve": np.tri(BUCKETS - 1, BUCKETS)}
    figure = list(figures)[rng.integers(3)]
    parts, survey = figures[figure], Survey(collection, held, target, figures[figure] @ held / n)

    def look(counters: Ints) -> Ends:
        reading = tree_reading(mechanism)
        if figure == "mean":
            mean = WeightedMean.from_counters(UNIT, counters, reading.numbers)
            return mean.interval(1 - LEVEL, target)
        reports = TreeReports(reading.weights, UNIT, counters, LEVEL, target)
        shown = reports.read(parts, len(parts))
        return shown.low, shown.high

    return survey.setting(f"{figure} of ranges", look, rng, rounds, width)


# -- central releases ------------------------------------------------------------------------------


def central_noise(rng: Generator, _rounds: int, width: float) -> Setting:
    """The half-width of a released count or sum, from the noise's exact distribution."""
    epsilon, sensitivity = Fraction(an_epsilon(rng)), a_size(rng, 1_000)
    scale = calibrated_scale(sensitivity, epsilon)
    alpha = float(rng.choice([0.05, 0.025]))  # of two parts each has half
    half, ratio = DiscreteLaplaceNoise(scale).half_width(alpha), np.exp(-1 / scale)
    name = f"release, sensitivity {sensitivity}, epsilon {epsilon}, alpha {alpha}"

    def measure() -> Coverage:
        reach = int(width * half)
        inside = np.arange(-reach, reach + 1)
        covered = float((ratio ** np.abs(inside)).sum() * (1 - ratio) / (1 + ratio))
        return Coverage(covered)

    return Setting(name, measure)
