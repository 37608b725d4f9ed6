"""A simulated population: the exact joint distribution of its tally, and messages as devices send
them.

Small designs are compared whole: the simulation's own code runs over every way its draws can fall,
and gives each possible tally the probability that the client's code gives it.
"""

from __future__ import annotations

import tracemalloc
from collections import defaultdict
from fractions import Fraction
from functools import partial
from typing import cast

import numpy as np
import pytest
from numpy.random import Generator
from numpy.typing import NDArray

from veilcount_analysis import tally
from veilcount_analysis.mechanisms import handler_of
from veilcount_analysis.mechanisms.mean import MeanHandler
from veilcount_analysis.mechanisms.subset_selection import supports
from veilcount_analysis.mechanisms.window import draw_levels
from veilcount_analysis.simulation import Population, population, simulate, simulate_messages
from veilcount_analysis.simulation.population import count_inputs as counted_held
from veilcount_shared import Collection
from veilcount_shared.collection import Model
from veilcount_shared.domain import GRID, Number
from veilcount_shared.mechanisms import (
    MeanMechanism,
    ProjectiveGeometry,
    SquareWave,
    SubsetSelection,
)
from veilcount_shared.randomness import RandomSource

from ..aggregator.aggregator_fixtures import make_collection
from ..enumeration import enumerate_distribution
from ..statistical.distributions import with_epsilon
from .estimation.collection_fixtures import of_number, of_values, question

Ints = NDArray[np.int64]
Small = SubsetSelection | ProjectiveGeometry | SquareWave
Tallies = dict[tuple[int, ...], float]


# -- the exact joint distribution ------------------------------------------------------------------


class EnumeratedGenerator:
    """What a simulation asks of a numpy generator, one bit at a time, exact for its floats."""

    def __init__(self, randomness: RandomSource) -> None:
        self._randomness = randomness

    def binomial(self, n: Ints, p: NDArray[np.float64] | float) -> Ints:
        trials, chances = np.broadcast_arrays(n, p)
        drawn = [
            sum(self._randomness.bernoulli(*float(chance).as_integer_ratio()) for _ in range(count))
            for count, chance in zip(trials.ravel(), chances.ravel(), strict=True)
        ]
        return np.array(drawn, np.int64).reshape(trials.shape)

    def multivariate_hypergeometric(self, colors: Ints, nsample: int, method: str) -> Ints:
        left, drawn = colors.copy(), np.zeros_like(colors)
        for _ in range(nsample):
            ball = self._randomness.below(int(left.sum()))
            color = int(np.searchsorted(np.cumsum(left), ball, side="right"))
            left[color] -= 1
            drawn[color] += 1
        return drawn

    def integers(self, high: int, size: int) -> Ints:
        return np.array([self._randomness.below(high) for _ in range(size)], np.int64)


def simulated(mechanism: Small, held: list[int]) -> Tallies:
    def run(randomness: RandomSource) -> tuple[int, ...]:
        generator, counts = cast("Generator", EnumeratedGenerator(randomness)), np.array(held)
        if isinstance(mechanism, SquareWave):
            return tuple(map(int, draw_levels(mechanism, counts, generator)))
        if isinstance(mechanism, SubsetSelection):  # few devices: not one by one
            return tuple(map(int, supports(mechanism, counts, generator)))
        return tuple(map(int, handler_of(mechanism).draw_counters(counts, generator)))

    return {counters: float(weight) for counters, weight in enumerate_distribution(run).items()}


def sent(mechanism: Small, held: list[int]) -> Tallies:
    """The distribution of the tally, from the client's code: the devices' own, convolved."""
    total: dict[tuple[int, ...], Fraction] = {counted(mechanism, []): Fraction(1)}
    for x in np.repeat(np.arange(len(held)), held).tolist():
        following: dict[tuple[int, ...], Fraction] = defaultdict(Fraction)
        for message, weight in enumerate_distribution(partial(mechanism.randomize, x)).items():
            one = counted(mechanism, [message])
            for counters, before in total.items():
                summed = tuple(map(sum, zip(counters, one, strict=True)))
                following[summed] += before * weight
        total = following
    return {counters: float(weight) for counters, weight in total.items()}


def counted(mechanism: Small, messages: list[int]) -> tuple[int, ...]:
    if isinstance(mechanism, SubsetSelection):
        members = [x for message in messages for x in mechanism.members(message)]
        return tuple(map(members.count, range(mechanism.k)))
    return tuple(map(messages.count, range(mechanism.messages)))


def differ(one: Tallies, two: Tallies) -> float:
    return sum(abs(one.get(each, 0) - two.get(each, 0)) for each in {*one, *two}) / 2


SMALL: dict[str, tuple[Small, list[int]]] = {
    "coin": (SubsetSelection.for_epsilon(Fraction(1), 2, 1), [2, 1]),
    "response": (SubsetSelection.for_epsilon(Fraction(2), 3, 1), [2, 0, 1]),
    "pairs of 3": (SubsetSelection.for_epsilon(Fraction(1), 3, 2), [1, 2, 0]),
    "pairs of 4": (SubsetSelection.for_epsilon(Fraction(1), 4, 2), [1, 0, 1, 1]),
    "triples of 4": (SubsetSelection.for_epsilon(Fraction(1, 2), 4, 3), [0, 2, 0, 0]),
    "pairs of 5": (SubsetSelection.for_epsilon(Fraction(1, 2), 5, 2), [0, 0, 1, 0, 1]),
    "plane of 2": (ProjectiveGeometry.for_epsilon(Fraction(1), 5, 2, 3), [1, 0, 0, 0, 1]),
    "plane of 4": (ProjectiveGeometry.for_epsilon(Fraction(2), 21, 4, 3), [0] * 20 + [1]),
    "window": (SquareWave.for_epsilon(Fraction(1), 5, 2), [2, 0, 0, 1]),
    "wide window": (SquareWave.for_epsilon(Fraction(3), 4, 3), [1, 2]),
}


@pytest.mark.parametrize("name", SMALL)
def test_every_tally_of_a_small_population_has_its_exact_probability(name: str) -> None:
    """One per cent more epsilon has another distribution."""
    mechanism, held = SMALL[name]
    found = simulated(mechanism, held)

    assert differ(found, sent(mechanism, held)) < 1e-14
    assert differ(found, sent(with_epsilon(mechanism, Fraction(101, 100)), held)) > 1e-5


@pytest.mark.parametrize("name", ["pairs of 3", "triples of 4", "pairs of 5"])
def test_counts_drawn_item_by_item_have_another_distribution(name: str) -> None:
    mechanism, held = SMALL[name]
    exact = sent(mechanism, held)
    alone: Tallies = {(): 1.0}
    for place in range(len(held)):
        chances: dict[int, float] = defaultdict(float)
        for counters, weight in exact.items():
            chances[counters[place]] += weight
        alone = {
            (*counters, count): weight * chance
            for counters, weight in alone.items()
            for count, chance in chances.items()
        }

    assert differ(alone, exact) > 0.4


# -- the parts -------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(1), Fraction(4)], ids=str)
def test_a_number_is_rounded_to_a_start_as_on_the_device(epsilon: Fraction) -> None:
    mechanism = MeanMechanism.for_epsilon(epsilon)
    points = np.array([0, 1, GRID // 7, GRID // 2, 3 * GRID // 4, GRID - 1, GRID])
    low, up = MeanHandler(mechanism).rounded(points)
    for point, start, chance in zip(points.tolist(), low.tolist(), up.tolist(), strict=True):
        exact = enumerate_distribution(partial(mechanism.start, point))

        assert set(exact) <= {start, start + 1}
        assert abs(float(exact.get(start + 1, Fraction(0))) - chance) < 1e-14


def test_so_many_devices_are_rounded_up_as_the_chance_says() -> None:
    """Counted at once or one by one: within five standard deviations."""
    point, many = GRID // 7, 40_000
    low, up = MeanHandler(MeanMechanism.for_epsilon(Fraction(1))).rounded(np.array([point]))
    higher, share = int(low[0]) + 1, float(up[0])
    at_once = counted_held(MEAN, Population(np.array([point]), np.array([many])), rng())
    one_by_one = handler_of(MEAN.mechanism).draw_inputs(np.full(many, point), rng())

    assert at_once.sum() == many
    for found in (at_once[higher], (one_by_one == higher).sum()):
        assert abs(found - many * share) < 5 * (many * share * (1 - share)) ** 0.5


MEAN = of_number(0, 100)
CENTRAL = {"epsilon": None, "model": '"central"', "budget": 1}
AGES = make_collection(boolean=None, range="[0, 100]", **CENTRAL)
SENDERS = {
    "boolean": make_collection(),
    "response": of_values(10, "3"),
    "mask": of_values(16),
    "mask of 69": of_values(256),
    "packed": of_values(300, "4"),
    "plane": of_values(600),
    "mean": MEAN,
    "distribution": question('range = [0, 100]\nmeasure = "distribution"'),
    "ranges": question('range = [0, 100]\nmeasure = "ranges"'),
    "hidden": question('values = ["a", "b", "c"]\npresence = "hidden"'),
    "cross": make_collection(cross='{plan = ["free", "paid"]}'),
    "curator": make_collection(**CENTRAL),
    "curator's number": AGES,
}


def rng() -> Generator:
    return np.random.default_rng(20260101)


def inputs_of(which: Collection, devices: int) -> Ints:
    grid = isinstance(which.domain, Number) and which.model is Model.LOCAL
    return rng().integers(GRID + 1 if grid else which.inputs, size=devices)


@pytest.mark.parametrize("which", SENDERS.values(), ids=SENDERS)
def test_simulated_messages_are_as_of_devices_and_tallies_have_all(which: Collection) -> None:
    sent = inputs_of(which, 500)
    rows = simulate_messages(which, sent, rng())
    messages = [which.unpack(row.tobytes()) for row in rows]
    held = Population(*np.unique(sent, return_counts=True))
    one, again = (simulate(which, held, rng()) for _ in range(2))

    assert rows.dtype == np.uint8
    assert tally(which, rows).tolist() == tally(which, messages).tolist()
    assert one.shape == tally(which, []).shape
    assert one.sum() == 500 * getattr(which.mechanism, "w", 1)
    assert one.tolist() == again.tolist()


# -- populations -----------------------------------------------------------------------------------


def test_values_become_inputs_as_on_a_device() -> None:
    """Known values their place, an unknown one `other`, a number its point of the grid."""
    browsers = question('values = ["firefox", "chrome"]\nother = "other"')
    held = population(browsers, ["chrome", "lynx", "chrome", "firefox", None], rng())
    minutes = population(MEAN, [0, 50, 50.0, 1000], rng())

    assert held.inputs.tolist() == [0, 1, 2]
    assert held.devices.tolist() == [1, 2, 2]
    assert minutes.inputs.tolist() == [0, GRID // 2, GRID]
    assert minutes.devices.tolist() == [1, 2, 1]


def test_values_that_fit_nowhere_are_drawn() -> None:
    """Uniformly, each device by itself: of 4,000 some 1,000 hold each of four values."""
    held = population(of_values(4), ["?"] * 4000, rng())

    assert held.inputs.tolist() == [0, 1, 2, 3]
    assert abs(held.devices - 1000).max() < 5 * 1000**0.5


def test_a_curators_numbers_are_whole() -> None:
    """39.6 years are 40; the counters are the truth."""
    counters = simulate(AGES, population(AGES, [39.6, 40, 7], rng()), rng())

    assert np.flatnonzero(counters).tolist() == [7, 40]
    assert counters[40] == 2


@pytest.mark.parametrize(
    ("inputs", "devices", "reason"),
    [
        ([0, 1], [1], "one number of devices"),
        ([0], [-1], "0 to 999,999,999"),
        ([0], [10**9], "0 to 999,999,999"),
    ],
)
def test_a_population_counts_devices(inputs: list[int], devices: list[int], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        Population(np.array(inputs), np.array(devices))


def test_an_input_that_the_domain_does_not_have_is_refused() -> None:
    with pytest.raises(ValueError, match="from 0 to 3"):
        simulate(of_values(4), Population(np.array([4]), np.array([1])), rng())
    with pytest.raises(ValueError, match="from 0 to 4,294,967,296"):
        simulate_messages(MEAN, np.array([GRID + 1]), rng())
    with pytest.raises(ValueError, match="give 4 counts"):
        simulate(of_values(4), np.array([1, 2, 3]), rng())


@pytest.mark.parametrize("epsilon", ["1", "4", "8"])
def test_a_million_devices_take_less_than_four_bytes_each(epsilon: str) -> None:
    """Over 1,024 values: a plane, subsets of 18, randomized response."""
    held = rng().multinomial(10**6, np.full(1024, 1 / 1024))
    tracemalloc.start()
    simulate(of_values(1024, epsilon), held, rng())
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert most < 4_000_000
