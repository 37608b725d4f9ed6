"""Covers are drawn from the blanket: of each message, the least probability over all inputs.

Where a device draws a level, part or moment beforehand, a cover draws it with the same probability,
and then a message from the blanket of that draw.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest

from veilcount_client.testing import SeededRandomSource
from veilcount_shared.domain.strings import BUCKET_BITS
from veilcount_shared.errors import TrustModelError
from veilcount_shared.mechanisms import (
    DistributionMechanism,
    HashedStrings,
    MeanMechanism,
    Moments,
    PairTables,
    ProjectiveGeometry,
    RangeTree,
    SquareWave,
    SubsetSelection,
    TrendMechanism,
    select_mechanism,
)
from veilcount_shared.mechanisms.projective_geometry import points
from veilcount_shared.randomness import RandomSource

from ..enumeration import Distribution, enumerate_distribution
from ..statistical.distributions import fits
from .test_exact_privacy import AnyMechanism, distributions, named, plane, subset

EPSILONS = [Fraction(1, 10), Fraction(1), Fraction(2), Fraction(4), Fraction(8)]
EXPECTED = 8  # draws of each message, for the chi-square

Parted = RangeTree | Moments | HashedStrings | PairTables
Covered = AnyMechanism | Parted


def to_scale(least: Distribution) -> Distribution:
    whole = sum(least.values())
    return {message: probability / whole for message, probability in least.items()}


def blanket_of_rows(rows: list[Distribution]) -> Distribution:
    """The least probability of each message over all inputs, to scale."""
    return to_scale({message: min(row[message] for row in rows) for message in rows[0]})


def stated_blanket(mechanism: ProjectiveGeometry | SubsetSelection) -> Distribution:
    """The same from P and from which inputs a message supports, where none can be enumerated.

    Subsets are of one member.
    """
    size, own = mechanism.messages, getattr(mechanism, "support_size", 1)
    inside, outside = mechanism.P / own, (1 - mechanism.P) / (size - own)
    supports = getattr(mechanism, "supports", int.__eq__)
    least = {
        message: inside if all(supports(message, x) for x in range(mechanism.k)) else outside
        for message in range(size)
    }
    return to_scale(least)


def joined(parts: list[Distribution]) -> Distribution:
    """The blanket of a device that draws one of several parts, evenly."""
    every = [probability / len(parts) for part in parts for _, probability in sorted(part.items())]
    return dict(enumerate(every))


def blanket(mechanism: Covered) -> Distribution:
    """The blanket of any mechanism, from the code that runs or the rows that it states."""
    match mechanism:
        case RangeTree(levels=levels):
            return joined([stated_blanket(level) for level in levels])
        case HashedStrings(geometry=geometry, parts=parts):
            return joined([stated_blanket(geometry)] * parts)
        case PairTables(subsets=subsets, width=width):
            return {
                pair << 8 * width | message: chance / len(subsets)
                for pair, subset in enumerate(subsets)
                for message, chance in blanket_of_rows(distributions(subset)).items()
            }
        case Moments(mean=mean):
            rows = [dict(enumerate(row)) for row in mean.transition_matrix]
            return joined([blanket_of_rows(rows)] * len(mechanism.moments))
        case MeanMechanism() | DistributionMechanism():
            return blanket_of_rows([dict(enumerate(row)) for row in mechanism.transition_matrix])
    return blanket_of_rows(distributions(mechanism))


def check_cover(mechanism: Covered) -> None:
    """Fail unless `cover` draws each message with the probability that the blanket has.

    Three of the differences are shown: pytest would compare thousands line by line, for minutes.
    """
    differences = enumerate_distribution(mechanism.cover).items() ^ blanket(mechanism).items()
    assert not sorted(differences)[:3]


def mechanisms(epsilon: Fraction) -> Iterator[Covered]:
    """Each kind, of each encoding, small enough for its inputs and messages to be listed."""
    yield from (subset(epsilon, k, 0) for k in (2, 3, 5, 7))
    yield from (subset(epsilon, k, w) for k, w in [(7, 3), (5, 4), (16, 2)])
    yield from (plane(epsilon, 0, q, t) for q, t in [(2, 3), (3, 3), (4, 3)])
    yield from (plane(epsilon, k, q, t) for k, q, t in [(10, 2, 4), (8, 3, 3), (26, 5, 3)])
    yield from (SquareWave.for_epsilon(epsilon, *shape) for shape in [(2, 1), (8, 4), (13, 5)])
    yield MeanMechanism.for_epsilon(epsilon)
    yield DistributionMechanism.for_epsilon(epsilon)
    yield RangeTree.for_epsilon(epsilon)
    yield Moments.for_epsilon(epsilon, 2)
    yield Moments.for_epsilon(epsilon, 3)
    yield PairTables.for_epsilon(epsilon, (2, 2))
    yield PairTables.for_epsilon(epsilon, (2, 3, 2))
    if epsilon <= 4:  # beyond, so few buckets share a hyperplane
        yield HashedStrings.for_epsilon(epsilon, 8, 2)
        yield HashedStrings.for_epsilon(epsilon, 6, 5)


CASES = [
    pytest.param(mechanism, id=f"{named(mechanism)[:40]}-{epsilon}")  # type: ignore[arg-type] # any has fields
    for epsilon in EPSILONS
    for mechanism in mechanisms(epsilon)
]


@pytest.mark.parametrize("mechanism", CASES)
def test_a_cover_has_the_distribution_that_all_inputs_have_in_common(mechanism: Covered) -> None:
    check_cover(mechanism)
    assert all(map(mechanism.valid, blanket(mechanism)))


@pytest.mark.parametrize("epsilon", [Fraction(step, 10) for step in range(5, 81, 5)])
def test_in_every_mechanism_of_a_definition_some_input_does_not_support_a_message(
    epsilon: Fraction,
) -> None:
    """Uniform covers need this; a plane's first points lie on one hyperplane, a window's middle."""
    windows = [MeanMechanism.for_epsilon(epsilon), DistributionMechanism.for_epsilon(epsilon)]
    strings = HashedStrings.for_epsilon(epsilon, BUCKET_BITS, 2).geometry
    selected = [select_mechanism(k, epsilon).mechanism for k in (500, 2_000, 40_000, 1 << 20)]
    planes = [*selected, *RangeTree.for_epsilon(epsilon).levels, strings]

    assert all(2 * mechanism.window.width <= mechanism.messages for mechanism in windows)
    for geometry in planes:
        if isinstance(geometry, ProjectiveGeometry):
            assert geometry.k > points(geometry.q, geometry.t - 1)


def test_a_trend_has_no_covers() -> None:
    with pytest.raises(TrustModelError, match=r"trend: .* cannot be shuffled"):
        TrendMechanism.for_epsilon(Fraction(1), 12, 3).cover(SeededRandomSource(1))


# -- seeded draws ----------------------------------------------------------------------------------


def drawn_covers(mechanism: Covered) -> tuple[list[int], list[int]]:
    """All messages, and how often seeded covers are each."""
    messages = sorted(blanket(mechanism))
    randomness = SeededRandomSource(36)
    counts = Counter(mechanism.cover(randomness) for _ in range(EXPECTED * 4 * len(messages)))
    assert set(counts) <= set(messages)
    return messages, [counts[message] for message in messages]


def seen_as(mechanism: Covered, counts: list[int]) -> bool:
    least = blanket(mechanism)
    shares = np.array([float(least[message]) for message in sorted(least)])
    return fits(np.array(counts), shares)


AT_FOUR = [
    *(subset(Fraction(4), k, w) for k, w in [(4, 1), (16, 2), (9, 4)]),
    plane(Fraction(4), 40, 8, 3),
    MeanMechanism.for_epsilon(Fraction(4)),
    DistributionMechanism.for_epsilon(Fraction(4)),
    RangeTree.for_epsilon(Fraction(4)),
    Moments.for_epsilon(Fraction(4), 3),
    HashedStrings.for_epsilon(Fraction(2), 6, 2),
]


@pytest.mark.parametrize("mechanism", AT_FOUR, ids=lambda mechanism: type(mechanism).__name__)
def test_seeded_covers_have_this_distribution_and_those_that_favour_one_message_do_not(
    mechanism: Covered,
) -> None:
    _, counts = drawn_covers(mechanism)
    favoured = [*counts[:-1], counts[-1] + 12 * EXPECTED]

    assert seen_as(mechanism, counts)
    assert not seen_as(mechanism, favoured)


# -- wrong covers are caught -----------------------------------------------------------------------


class Flat(RangeTree):
    """A mistake: uniform over all messages, so that most covers fall on one level."""

    def cover(self, randomness: RandomSource) -> int:
        return randomness.below(self.messages)


class Unsorted(SubsetSelection):
    """A mistake: the cover of a random value, which is likelier in the subset than others."""

    def cover(self, randomness: RandomSource) -> int:
        return self.randomize(0, randomness)


def test_covers_of_ranges_that_are_uniform_over_all_messages_are_caught() -> None:
    """Of 2,341 messages the top level, which one device in four reports on, has 4."""
    flat = Flat(RangeTree.for_epsilon(Fraction(4)).levels)
    randomness = SeededRandomSource(36)
    counts = Counter(flat.cover(randomness) for _ in range(4 * EXPECTED * flat.messages))

    assert flat.messages == 2_341
    assert not seen_as(flat, [counts[message] for message in range(flat.messages)])
    with pytest.raises(AssertionError):
        check_cover(flat)


def test_covers_drawn_from_a_value_are_caught() -> None:
    with pytest.raises(AssertionError):
        check_cover(Unsorted.for_epsilon(Fraction(1), 5, 1))


def test_uniform_covers_of_a_plane_whose_inputs_share_a_hyperplane_are_caught() -> None:
    """No definition selects one: the hyperplane of both inputs is likelier for all of them."""
    with pytest.raises(AssertionError):
        check_cover(plane(Fraction(1), 2, 2, 3))
