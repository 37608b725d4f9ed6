"""Moments of several numbers: the exact privacy of a report, its products, the definition."""

from __future__ import annotations

import copy
from fractions import Fraction
from functools import partial

import pytest

from veilcount_client.recording.value_check import value_problem
from veilcount_client.testing import SeededRandomSource
from veilcount_shared.domain import GRID, Features, Number
from veilcount_shared.epsilon import exp_lower
from veilcount_shared.errors import DefinitionError
from veilcount_shared.mechanisms import MeanMechanism, Moments
from veilcount_shared.mechanisms.moments import product_point, square_point
from veilcount_shared.randomness import RandomSource

from ..enumeration import enumerate_distribution, max_likelihood_ratio
from .definition_harness import parse_definition

ONE = Fraction(1)
SIZE = GRID + 1
LINES = 'features = {age = [0, 100], hours = [0, 60]}\nmeasure = "moments"'
#: points of two numbers: ends, middles, and some between
INPUTS = [
    one * SIZE + two
    for one, two in [(0, 0), (0, GRID), (GRID, GRID), (GRID // 2, GRID // 3), (GRID // 7, GRID)]
]


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), ONE, Fraction(2), Fraction(8)])
def test_a_report_keeps_epsilon_between_any_numbers(epsilon: Fraction) -> None:
    """Every moment has the same probability, whatever the numbers are."""
    mechanism = Moments.for_epsilon(epsilon, 2)
    found = [enumerate_distribution(partial(mechanism.randomize, x)) for x in INPUTS]
    levels = mechanism.levels

    assert all(len(each) == mechanism.messages for each in found)
    assert (mechanism.epsilon, mechanism.inputs) == (epsilon, 5 * mechanism.mean.inputs)
    assert "one of 5 moments of 2 numbers" in mechanism.describe()
    for each in found:
        of_moment = [sum(each[m] for m in range(k * levels, (k + 1) * levels)) for k in range(5)]
        assert of_moment == [Fraction(1, 5)] * 5
    assert 1 < max_likelihood_ratio(found) <= exp_lower(epsilon)


@pytest.mark.parametrize("x", INPUTS)
def test_every_moment_is_unbiased(x: int) -> None:
    mechanism = Moments.for_epsilon(ONE, 2)
    found = enumerate_distribution(partial(mechanism.randomize, x))
    one, two = (Fraction(2 * point, GRID) - 1 for point in divmod(x, SIZE))

    expected = [one, two, one * one, one * two, two * two]
    for place, moment in enumerate(expected):
        decoded = list(mechanism.mean.decoded)
        if place not in {2, 4}:  # squares are reported on [0, 1]
            decoded = [2 * each - 1 for each in decoded]
        mean = sum(
            5 * found[place * mechanism.levels + level] * value
            for level, value in enumerate(decoded)
        )
        assert abs(mean - moment) <= Fraction(1, GRID)


@pytest.mark.parametrize("epsilon", [ONE, Fraction(4)])
def test_a_square_is_reported_exactly_and_with_the_noise_of_half_the_range(
    epsilon: Fraction,
) -> None:
    """At 33 points of the grid: E[decoded] = x^2, and a quarter of the variance of [-1, 1].

    Planted: the square as a product of [-1, 1], which has up to four times that variance.
    """
    mechanism = Moments.for_epsilon(epsilon, 2)
    mean, square = mechanism.mean, mechanism.moments.index((0, 0))
    most = max(variance(mean, point, range=2) for point in POINTS) / 4 * Fraction(105, 100)
    for point in POINTS:
        number = Fraction(2 * point, GRID) - 1
        reported = mechanism.point(point * SIZE, square)

        assert reported == square_point(point) == number**2 * GRID
        assert abs(expectation(mean, reported) - number**2) < Fraction(1, 10**17)
        assert variance(mean, reported, range=1) <= most
        assert variance(mean, product_point(point, point), range=2) > 2 * most


POINTS = [place * GRID // 32 for place in range(33)]


def expectation(mean: MeanMechanism, point: int) -> Fraction:
    """The expectation of what a report of a point decodes to, in [0, 1]."""
    chances = enumerate_distribution(partial(mean.randomize, point))
    return sum((chances[level] * value for level, value in enumerate(mean.decoded)), Fraction(0))


def variance(mean: MeanMechanism, point: int, *, range: int) -> Fraction:  # noqa: A002 - its width
    """The variance, where the grid stands for a range of this width."""
    chances = enumerate_distribution(partial(mean.randomize, point))
    squares = (chances[level] * value**2 for level, value in enumerate(mean.decoded))
    return range**2 * (sum(squares, Fraction(0)) - expectation(mean, point) ** 2)


def test_one_more_in_the_threshold_is_caught() -> None:
    mean = copy.copy(MeanMechanism.for_epsilon(ONE))
    window = copy.copy(mean.window)
    object.__setattr__(window, "a", window.a + 1)
    object.__setattr__(mean, "window", window)
    wrong = Moments(mean, 2)

    assert max_likelihood_ratio(
        [enumerate_distribution(partial(wrong.randomize, x)) for x in INPUTS]
    ) > exp_lower(ONE)


class Curious(Moments):
    """A mistake: large numbers report their square."""

    def randomize(self, x: int, randomness: RandomSource) -> int:
        moment = randomness.below(2) + (2 if self.digit(x, 0) > GRID // 2 else 0)
        return moment * self.levels + self.mean.randomize(self.point(x, moment), randomness)


def test_a_moment_that_depends_on_the_numbers_is_caught() -> None:
    curious = Curious(MeanMechanism.for_epsilon(ONE), 2)

    with pytest.raises(AssertionError, match="a message of its own"):
        max_likelihood_ratio(
            [enumerate_distribution(partial(curious.randomize, x)) for x in INPUTS]
        )


@pytest.mark.parametrize(
    ("one", "two", "product"),
    [
        (0, 0, GRID),
        (0, GRID, 0),
        (GRID, GRID, GRID),
        (GRID // 2, 0, GRID // 2),
        (GRID // 4, GRID // 4, GRID // 8 * 5),
    ],
)
def test_a_product_of_points_is_the_point_of_the_product(one: int, two: int, product: int) -> None:
    assert product_point(one, two) == product_point(two, one) == product


@pytest.mark.parametrize(
    ("number", "square"),
    [(0, GRID), (GRID, GRID), (GRID // 2, 0), (GRID // 4, GRID // 4), (GRID // 2 + 1, 0)],
)
def test_a_square_of_a_point_is_the_point_of_the_square_in_half_the_range(
    number: int, square: int
) -> None:
    assert square_point(number) == square


# -- values ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "points"),
    [
        ({"age": 50, "hours": 30}, 1),
        ({"age": 500, "hours": -1, "more": 3}, 1),
        ({"age": 50}, 20),
        ({"age": 50, "hours": "thirty"}, 20),
        ((50, 30), 20),
        (None, 20),
    ],
)
def test_what_is_no_number_is_drawn_and_a_developer_gets_an_error(
    value: object, points: int
) -> None:
    domain = Features((("age", Number(Fraction(0), Fraction(100))), ("hours", HOURS)))
    found = {domain.input(value, SeededRandomSource(seed)) for seed in range(20)}
    problem = value_problem(parse_definition(LINES), value, closest=True)

    assert len(found) == points
    assert all(0 <= point < domain.size for point in found)
    assert (problem is None) == (points == 1)


HOURS = Number(Fraction(0), Fraction(60))


# -- the definition --------------------------------------------------------------------------------


def test_features_are_in_the_order_of_their_names() -> None:
    turned = 'features = {hours = [0, 60], age = [0, 100]}\nmeasure = "moments"'
    collection = parse_definition(LINES)

    assert collection.fingerprint == parse_definition(turned).fingerprint


@pytest.mark.parametrize(
    ("lines", "key", "fix"),
    [
        ("features = {age = [0, 1]}", "features", "2 to 12"),
        ("features = {}", "features", "give a table"),
        ('features = ["age"]', "features", "give a table"),
        ("features = {age = [0, 1], hours = 3}", "features.hours", "two numbers"),
        ("features = {age = [0, 1], hours = [3, 2]}", "features.hours", "low below high"),
        (f"{LINES}\nboolean = true", "values", "exactly one"),
        (LINES.replace("moments", "mean"), "measure", '"moments"'),
        (LINES.partition("\n")[0], "measure", '"moments"'),
        ('range = [0, 1]\nmeasure = "moments"', "measure", "only for features"),
        (f'{LINES}\npresence = "hidden"', "presence", "use values"),
        (f'{LINES}\nother = "x"', "other", "remove it"),
        ('features = {"a b" = [0, 1], c = [0, 1]}\nmeasure = "moments"', "features", "letters"),
    ],
)
def test_a_wrong_definition_of_features_is_refused(lines: str, key: str, fix: str) -> None:
    with pytest.raises(DefinitionError) as refused:
        parse_definition(lines)

    assert key in refused.value.key
    assert fix in refused.value.fix
