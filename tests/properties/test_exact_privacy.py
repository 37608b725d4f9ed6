"""Given that a report is sent, its message keeps epsilon: all random outcomes of the real code."""

from __future__ import annotations

import copy
from fractions import Fraction
from functools import cache, partial
from random import Random

import pytest

from veilcount_shared.collection import Collection, Measure, Presence
from veilcount_shared.domain import GRID, Boolean, Choice, Cross
from veilcount_shared.epsilon import exp_lower
from veilcount_shared.mechanisms import (
    DistributionMechanism,
    MeanMechanism,
    ProjectiveGeometry,
    SquareWave,
    SubsetSelection,
)
from veilcount_shared.mechanisms.mean import TABLES
from veilcount_shared.mechanisms.selection import best_subset
from veilcount_shared.periods import Unit
from veilcount_shared.randomness import WORDS, RandomSource

from ..enumeration import Distribution, enumerate_distribution, max_likelihood_ratio
from .definition_harness import calendar_of, parse_definition

ONE = Fraction(1)
EPSILONS = [Fraction(1, 10), Fraction(1), Fraction(2), Fraction(8)]

TwoLevel = SubsetSelection | ProjectiveGeometry | SquareWave
AnyMechanism = TwoLevel | MeanMechanism | DistributionMechanism

SUBSETS = [(k, 0) for k in (2, 3, 5, 7)]  # the planner's own w
SIZES = [(7, 3), (5, 4), (16, 2)]  # drawn as masks; the last one as members, by other code
ORDERS = [(2, 3), (2, 4), (3, 3), (4, 3), (5, 3), (8, 3)]
PLANES = [(0, q, t) for q, t in ORDERS]  # every point is an input
PADDED = [(2, 2, 3), (10, 2, 4), (8, 3, 3), (16, 4, 3), (26, 5, 3), (40, 8, 3)]
WINDOWS = [(2, 1), (8, 4), (13, 5), (40, 11)]


def subset(epsilon: Fraction, k: int, w: int) -> SubsetSelection:
    return SubsetSelection.for_epsilon(epsilon, k, w or best_subset(k, exp_lower(epsilon)))


def plane(epsilon: Fraction, k: int, q: int, t: int) -> ProjectiveGeometry:
    return ProjectiveGeometry.for_epsilon(epsilon, k or (q**t - 1) // (q - 1), q, t)


def two_level(epsilon: Fraction) -> list[TwoLevel]:
    subsets = [subset(epsilon, *shape) for shape in (*SUBSETS, *SIZES)]
    planes = [plane(epsilon, *shape) for shape in PLANES + PADDED]
    return [*subsets, *planes, *(SquareWave.for_epsilon(epsilon, *shape) for shape in WINDOWS)]


def named(mechanism: AnyMechanism) -> str:
    keys = mechanism.canonical()
    return "-".join(str(keys[key]) for key in keys if key not in {"a", "values"})


def with_epsilons() -> list[object]:
    return [
        pytest.param(mechanism, id=f"{named(mechanism)}-eps={epsilon}")
        for epsilon in EPSILONS
        for mechanism in two_level(epsilon)
    ]


@cache
def distributions(mechanism: AnyMechanism, inputs: tuple[int, ...] = ()) -> list[Distribution]:
    """The distribution of each input, by running `randomize` over every random outcome."""
    return [
        enumerate_distribution(lambda randomness, x=x: mechanism.randomize(x, randomness))  # type: ignore[misc] # mypy infers no x
        for x in inputs or range(mechanism.inputs)
    ]


def supported(mechanism: SubsetSelection | ProjectiveGeometry) -> list[set[int]]:
    """The messages that hold each input, as the server counts them."""
    messages = distributions(mechanism)[0]
    if isinstance(mechanism, ProjectiveGeometry):
        return [{m for m in messages if mechanism.supports(m, x)} for x in range(mechanism.k)]
    return [{m for m in messages if x in mechanism.members(m)} for x in range(mechanism.k)]


def check_supports(
    mechanism: SubsetSelection | ProjectiveGeometry, found: list[Distribution]
) -> None:
    """Fail unless every input supports itself with P and any other with Q, exactly."""
    holders, p, q = supported(mechanism), mechanism.P, mechanism.Q
    for x, each in enumerate(found):
        for y, messages in enumerate(holders):
            assert sum(each.get(m, Fraction(0)) for m in messages) == (p if x == y else q)


def raised(mechanism: TwoLevel) -> TwoLevel:
    """The same mechanism with its threshold one too high, past its own check."""
    wrong = copy.copy(mechanism)
    object.__setattr__(wrong, "a", mechanism.a + 1)
    return wrong


# -- every mechanism, on every small domain --------------------------------------------------------


@pytest.mark.parametrize("mechanism", with_epsilons())
def test_exactly_the_valid_messages_are_sent_and_none_reveals_more_than_epsilon(
    mechanism: TwoLevel,
) -> None:
    """The worst ratio of two inputs' probabilities stays at or below e^epsilon, in Fractions."""
    found = distributions(mechanism)

    assert all(sum(each.values()) == 1 for each in found)
    assert all(len(each) == mechanism.messages for each in found)
    assert all(mechanism.valid(message) for each in found for message in each)
    assert 1 <= max_likelihood_ratio(found) <= exp_lower(mechanism.epsilon)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("mechanism", with_epsilons())
def test_the_server_debiases_with_exactly_these_probabilities(mechanism: TwoLevel) -> None:
    """An input's own set is hit with P, any other input's with Q: no quantization is left over."""
    found = distributions(mechanism)
    if isinstance(mechanism, SquareWave):
        assert [dict(enumerate(row)) for row in mechanism.transition_matrix] == found
    else:
        check_supports(mechanism, found)


# -- numbers ---------------------------------------------------------------------------------------


def grid_points() -> tuple[int, ...]:
    random = Random(1)
    drawn = (random.randrange(GRID + 1) for _ in range(5))
    return (0, 1, GRID // 3, GRID // 2, GRID // 2 + 1, GRID - 1, GRID, *drawn)


@pytest.mark.parametrize("epsilon", [*EPSILONS, *map(Fraction, ("0.000001", "0.25", "3", "6.5"))])
def test_the_mean_is_exactly_unbiased_and_keeps_epsilon_between_any_two_numbers(
    epsilon: Fraction,
) -> None:
    """Rounding to a start mixes two rows; the mixture stays within the rows' own ratio."""
    mechanism, points = MeanMechanism.for_epsilon(epsilon), grid_points()
    found, decoded = distributions(mechanism, points), mechanism.decoded
    means = [sum(p * decoded[level] for level, p in each.items()) for each in found]

    assert means == [Fraction(point, GRID) for point in points]
    assert max_likelihood_ratio(found) <= exp_lower(epsilon)
    assert all(sum(each.values()) == 1 for each in found)
    assert all(mechanism.valid(message) for each in found for message in each)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("row", range(len(TABLES)))
def test_every_table_is_unbiased_at_an_epsilon_it_was_not_made_for(row: int) -> None:
    """The levels decide the variance only: privacy and unbiasedness hold for any of them."""
    levels, width, half = TABLES[row]
    lower = tuple(-value for value in reversed(half) if value or levels % 2 == 0)
    mechanism = MeanMechanism(
        SquareWave.for_epsilon(Fraction("1.3"), levels, width), (*lower, *half)
    )
    points = (0, GRID // 7, GRID // 2, GRID)
    found = distributions(mechanism, points)

    assert max_likelihood_ratio(found) <= exp_lower(Fraction("1.3"))
    for point, each in zip(points, found, strict=True):
        assert sum(p * mechanism.decoded[y] for y, p in each.items()) == Fraction(point, GRID)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_distribution_keeps_epsilon_between_buckets(epsilon: Fraction) -> None:
    mechanism = DistributionMechanism.for_epsilon(epsilon)
    points = (0, (100 << 24) - 1, 100 << 24, GRID // 2, GRID - 1, GRID)
    buckets = (0, 99, 100, 128, 255, 255)
    found = distributions(mechanism, points)

    assert max_likelihood_ratio(found) <= exp_lower(epsilon)
    assert found == [dict(enumerate(mechanism.transition_matrix[bucket])) for bucket in buckets]


# -- wrong distributions are rejected --------------------------------------------------------------


@pytest.mark.one_in(2)
@pytest.mark.parametrize("mechanism", with_epsilons())
def test_a_threshold_one_too_high_is_caught(mechanism: TwoLevel) -> None:
    """The checker above is sharp enough to see 1 in 2^64."""
    ratio = max_likelihood_ratio(distributions(raised(mechanism)))

    assert ratio > exp_lower(mechanism.epsilon)


class Shortcut(SubsetSelection):
    """A mistake that keeps epsilon: tails draw from all inputs, the own one included."""

    def randomize(self, x: int, randomness: RandomSource) -> int:
        return x if randomness.bernoulli(self.a) else randomness.below(self.k)


class Leaky(SubsetSelection):
    """A mistake that does not: tails move to the next input, so the others are never sent."""

    def randomize(self, x: int, randomness: RandomSource) -> int:
        return x if randomness.bernoulli(self.a) else (x + 1) % self.k


class Tilted(ProjectiveGeometry):
    """A wrong distribution: the missing hyperplanes are not drawn evenly."""

    def randomize(self, x: int, randomness: RandomSource) -> int:
        message = ProjectiveGeometry.randomize(self, x, randomness)
        if self.supports(message, x) or randomness.bernoulli(1, 2):
            return message
        return next(m for m in range(self.messages) if not self.supports(m, x))


def test_a_subset_that_is_drawn_wrongly_is_caught() -> None:
    """`Shortcut` keeps epsilon, but not the probabilities that the server divides by."""
    shortcut, leaky = Shortcut.for_epsilon(ONE, 5, 1), Leaky.for_epsilon(ONE, 5, 1)

    with pytest.raises(AssertionError):
        check_supports(shortcut, distributions(shortcut))
    with pytest.raises(AssertionError, match="a message of its own"):
        max_likelihood_ratio(distributions(leaky))


def test_a_plane_that_favours_a_hyperplane_is_caught() -> None:
    """P alone is right; the ratio is not."""
    mechanism = Tilted.for_epsilon(ONE, 7, 2, 3)

    assert max_likelihood_ratio(distributions(mechanism)) > exp_lower(ONE)
    with pytest.raises(AssertionError):
        check_supports(mechanism, distributions(mechanism))


def test_a_randomizer_that_takes_raw_words_is_refused() -> None:
    with pytest.raises(TypeError, match="below"):
        enumerate_distribution(lambda randomness: randomness.word())


# -- whole collections, values and all -------------------------------------------------------------

Domain = Boolean | Choice | Cross
UNKNOWN = [None, "never heard of it", float("nan"), (), ("x", "y"), b"", 10**400]


def collection(domain: Domain, epsilon: Fraction, *, hidden: bool = False) -> Collection:
    presence = Presence.HIDDEN if hidden else Presence.PUBLIC
    return calendar_of(
        Unit.DAY, "2026-12-01", "2026-12-08", domain=domain, epsilon=epsilon, presence=presence
    )


def choice(size: int, other: str | None = None) -> Choice:
    return Choice(tuple("abcdefgh"[:size]), other)


WHOLE: list[Domain] = [
    *(Boolean(), choice(2), choice(5), choice(4, "other"), Choice((10, 20, 30))),
    Cross(Boolean(), (("size", choice(3)),)),
    Cross(choice(2, "other"), (("arm", choice(2)),)),
]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("hidden", [False, True])
@pytest.mark.parametrize("domain", WHOLE, ids=lambda domain: type(domain).__name__)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_a_collection_keeps_epsilon_for_values_known_unknown_and_absent(
    epsilon: Fraction, domain: Domain, *, hidden: bool
) -> None:
    """An unknown value is drawn before the randomizer: a mixture of its inputs' distributions."""
    question = collection(domain, epsilon, hidden=hidden)
    values = [*domain.labels, *UNKNOWN]
    found = [enumerate_distribution(partial(question.randomize, value)) for value in values]
    if hidden:
        found.append(enumerate_distribution(question.randomize_absent))

    assert max_likelihood_ratio(found) <= exp_lower(epsilon)
    assert all(sum(each.values()) == 1 for each in found)
    assert all(question.mechanism.valid(message) for each in found for message in each)


@pytest.mark.parametrize("measure", [Measure.MEAN, Measure.DISTRIBUTION, Measure.RANGES])
def test_a_range_keeps_epsilon_for_any_two_numbers(measure: Measure) -> None:
    question = parse_definition(f'range = [0, 240]\nmeasure = "{measure}"')
    values = [0, 240, 120, 33.3, -1, 1e300, float("inf"), -float("inf"), Fraction(1, 3), 10**400]
    found = [enumerate_distribution(partial(question.randomize, v)) for v in values]

    assert max_likelihood_ratio(found) <= exp_lower(ONE)


def test_the_enumeration_weighs_every_branch() -> None:
    def thrown(randomness: RandomSource) -> int:
        first = randomness.below(6)
        if first == 5:
            return randomness.below(6)
        return 7 if randomness.bernoulli(1) else first

    rare = Fraction(1, WORDS)
    once = Fraction(1, 6) * (1 - rare)
    again = Fraction(1, 36)

    expected = {0: once + again, 4: once + again, 5: again, 7: Fraction(5, 6) * rare}
    found = enumerate_distribution(thrown)
    assert {key: found[key] for key in expected} == expected
    assert sum(found.values()) == 1
