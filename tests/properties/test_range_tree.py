"""Ranges of a number: the tree, its messages, its definition, and the exact privacy of the whole.

A tree has a few hundred messages, so unlike a subset of 69 of 256 its distribution is enumerated at
every epsilon, as it is shipped.
"""

from __future__ import annotations

import copy
from fractions import Fraction
from functools import cache, partial

import pytest

from veilcount_client.testing import SeededRandomSource
from veilcount_shared.collection import Measure, lint
from veilcount_shared.domain import GRID
from veilcount_shared.epsilon import exp_lower, threshold
from veilcount_shared.errors import MessageOutOfRange
from veilcount_shared.mechanisms import ProjectiveGeometry, RangeTree, SubsetSelection
from veilcount_shared.mechanisms.finite_field import POLYNOMIALS, is_prime
from veilcount_shared.mechanisms.square_wave import find_bucket
from veilcount_shared.randomness import RandomSource

from ..enumeration import Distribution, enumerate_distribution, max_likelihood_ratio
from .definition_harness import parse_definition

ONE = Fraction(1)
EPSILONS = [Fraction(each) for each in ("0.000001", "0.1", "0.5", "1", "2", "3", "4", "8", "16")]
NODES = (4, 16, 64, 256)
BUCKET = GRID // 256
SOME = (0, 1, 3, 4, 15, 16, 63, 64, 100, 127, 128, 200, 254, 255)  # both sides of every level

DEFAULT_EPSILONS = [EPSILONS[0], ONE, EPSILONS[-1]]  # --full takes all
every_epsilon = pytest.mark.parametrize(
    "epsilon",
    [
        pytest.param(
            epsilon, marks=() if epsilon in DEFAULT_EPSILONS else pytest.mark.full, id=str(epsilon)
        )
        for epsilon in EPSILONS
    ],
)


def owned(level: SubsetSelection | ProjectiveGeometry) -> int:
    return level.support_size if isinstance(level, ProjectiveGeometry) else 1


@cache
def distributions(mechanism: RangeTree, buckets: tuple[int, ...] = SOME) -> dict[int, Distribution]:
    """The distribution of a number in each of some buckets, over all outcomes."""
    return {
        bucket: enumerate_distribution(partial(mechanism.randomize, bucket * BUCKET))
        for bucket in buckets
    }


# -- the tree and its messages ---------------------------------------------------------------------


@every_epsilon
def test_four_levels_of_nodes_share_messages_numbered_without_a_gap(epsilon: Fraction) -> None:
    """So a tally counts messages as they are, one counter each, and no number is wasted."""
    mechanism = RangeTree.for_epsilon(epsilon)
    counts = [level.messages for level in mechanism.levels]
    numbered = [mechanism.level(message) for message in range(mechanism.messages)]

    assert tuple(level.inputs for level in mechanism.levels) == NODES
    assert {level.epsilon for level in mechanism.levels} == {mechanism.epsilon} == {epsilon}
    assert mechanism.counters == mechanism.messages == sum(counts)
    assert list(mechanism.starts) == [sum(counts[:place]) for place in range(4)]
    assert numbered == [place for place, count in enumerate(counts) for _ in range(count)]
    assert mechanism.bits == (mechanism.messages - 1).bit_length() <= 12
    for bucket, nodes in {0: [0, 0, 0, 0], 100: [1, 6, 25, 100], 255: [3, 15, 63, 255]}.items():
        assert [mechanism.node(level, bucket) for level in range(4)] == nodes


# -- the levels' mechanisms ------------------------------------------------------------------------


def variance(k: int, epsilon: Fraction, own: Fraction, both: Fraction) -> Fraction:
    """Of a share at the even spread, with own messages an input and some that two share."""
    e = exp_lower(epsilon)
    hit = e * own / (e * own + 1 - own)
    cross = (e * both + own - both) / (e * own + 1 - own)
    support = (hit + (k - 1) * cross) / k
    return support * (1 - support) / (hit - cross) ** 2


def geometries(k: int, epsilon: Fraction) -> list[tuple[Fraction, int, int]]:
    """All planes with room for k points and at most 4,096 of them, by the README's rule."""
    found = []
    limit = Fraction("2.2") * (exp_lower(epsilon) + 1) + 1
    for q in (q for q in range(2, 65) if (is_prime(q) or q in POLYNOMIALS) and q <= limit):
        t = next(t for t in range(3, 20) if sum(q**i for i in range(t)) >= k)
        v, r, s = (sum(q**i for i in range(size)) for size in (t, t - 1, t - 2))
        if v <= 4096:
            found.append((variance(k, epsilon, Fraction(r, v), Fraction(s, v)), q, t))
    return found


@every_epsilon
@pytest.mark.parametrize("place", range(4))
def test_a_level_has_the_least_variance_of_planes_and_response(
    epsilon: Fraction, place: int
) -> None:
    """Found here by looking at all of them, with the formulas of the README."""
    level, k = RangeTree.for_epsilon(epsilon).levels[place], NODES[place]
    response = variance(k, epsilon, Fraction(1, k), Fraction(0))
    planes = geometries(k, epsilon)

    if isinstance(level, SubsetSelection):
        assert level.w == 1
        assert all(response <= found for found, _, _ in planes)
    else:
        assert (level.q, level.t) == min(planes)[1:]
        assert min(planes)[0] < response
    assert level.a == threshold(epsilon, owned(level), level.messages)


def test_levels_that_form_no_tree_are_refused() -> None:
    levels, strong = RangeTree.for_epsilon(ONE).levels, RangeTree.for_epsilon(Fraction(2)).levels

    with pytest.raises(ValueError, match="4, 16, 64 and 256"):
        RangeTree(levels[::-1])
    with pytest.raises(ValueError, match="the same epsilon"):
        RangeTree((*levels[:3], strong[3]))
    with pytest.raises(ValueError, match="0, 1, 2"):
        RangeTree((levels[0], SubsetSelection.for_epsilon(ONE, 16, 4), *levels[2:]))


# -- exact privacy ---------------------------------------------------------------------------------


@every_epsilon
def test_the_distribution_is_a_quarter_of_each_levels_and_keeps_epsilon(epsilon: Fraction) -> None:
    """A node's own messages share P evenly, all others of the level the rest; nothing is lost."""
    mechanism = RangeTree.for_epsilon(epsilon)
    every_bucket = distributions(mechanism)
    for bucket in (0, 100, 255):
        found = every_bucket[bucket]
        expected = {}
        for message in range(mechanism.messages):
            level = mechanism.levels[mechanism.level(message)]
            own = mechanism.supports(message, bucket)
            evenly = owned(level) if own else level.messages - owned(level)
            expected[message] = (level.P if own else 1 - level.P) / evenly / 4

        assert found == expected
        assert sum(found.values()) == 1
    assert 1 < max_likelihood_ratio(list(every_bucket.values())) <= exp_lower(epsilon)


@every_epsilon
@pytest.mark.parametrize("place", range(4))
def test_one_more_in_any_levels_threshold_is_caught(epsilon: Fraction, place: int) -> None:
    """Past its own check, 1 in 2^64 too many: the enumeration sees it in any of the levels."""
    mechanism = copy.copy(RangeTree.for_epsilon(epsilon))
    level = copy.copy(mechanism.levels[place])
    object.__setattr__(level, "a", level.a + 1)
    levels = (*mechanism.levels[:place], level, *mechanism.levels[place + 1 :])
    object.__setattr__(mechanism, "levels", levels)

    assert max_likelihood_ratio(list(distributions(mechanism, (0, 255)).values())) > exp_lower(
        epsilon
    )


class Curious(RangeTree):
    """A mistake that would help accuracy: large numbers are reported more coarsely."""

    def randomize(self, grid: int, randomness: RandomSource) -> int:
        level = randomness.below(2) + (2 if grid < GRID // 2 else 0)
        node = self.node(level, find_bucket(grid))
        return self.starts[level] + self.levels[level].randomize(node, randomness)


def test_a_level_that_depends_on_the_number_is_caught() -> None:
    curious = Curious(RangeTree.for_epsilon(ONE).levels)

    with pytest.raises(AssertionError, match="a message of its own"):
        max_likelihood_ratio(list(distributions(curious).values()))


# -- the definition --------------------------------------------------------------------------------

LINES = 'range = [0, 240]\nmeasure = "ranges"'


def test_every_message_survives_packing_and_no_other_does() -> None:
    collection = parse_definition(LINES)
    messages = range(collection.mechanism.messages)

    assert [collection.unpack(collection.pack(message)) for message in messages] == [*messages]
    with pytest.raises(MessageOutOfRange):
        collection.unpack(collection.pack(collection.mechanism.messages))


VALUES = [0, 240, 120, 33.3, -1, 1e300, float("-inf"), Fraction(1, 3), float("nan"), "?", None]


def test_a_definition_keeps_epsilon_for_values_of_all_kinds() -> None:
    collection = parse_definition(LINES)
    numbers = [
        enumerate_distribution(lambda randomness, v=v: collection.randomize(v, randomness))  # type: ignore[misc]
        for v in VALUES[:-3]
    ]
    sent = [
        collection.randomize(value, SeededRandomSource(seed)) for seed, value in enumerate(VALUES)
    ]

    assert max_likelihood_ratio(numbers) <= exp_lower(ONE)
    assert all(map(collection.mechanism.valid, sent))


def test_too_few_answers_for_ranges_are_remarked() -> None:
    few = lint(parse_definition(f"{LINES}\nanswers = 1"), answers=1_000)
    many = lint(parse_definition(f"{LINES}\nanswers = 1"), answers=100_000)

    assert [remark.key for remark in few] == ["epsilon"]
    assert "share of a quarter of the range is known to +/- 16%" in few[0].text
    assert not many


@pytest.mark.parametrize("takes", ["first", "last", "max", "sum"])
def test_ranges_take_what_any_number_takes(takes: str) -> None:
    collection = parse_definition(f"{LINES}\ntakes = '{takes}'\nunit = 'day'\nanswers = 4")

    assert (collection.takes, collection.measure) == (takes, Measure.RANGES)
    assert isinstance(collection.mechanism, RangeTree)
    assert collection.message_bytes == 2
