"""What a design is made of: messages, fields, planes, the planner's and the numbers' tables."""

from __future__ import annotations

import json
from fractions import Fraction
from hashlib import sha256
from itertools import combinations, product
from math import ceil, comb, log2
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from veilcount_client.testing import SeededRandomSource
from veilcount_shared.domain import GRID
from veilcount_shared.errors import EpsilonError
from veilcount_shared.mechanisms import (
    DistributionMechanism,
    Identity,
    MeanMechanism,
    ProjectiveGeometry,
    SquareWave,
    SubsetSelection,
    select_mechanism,
)
from veilcount_shared.mechanisms.finite_field import POLYNOMIALS, FiniteField, get_field, is_prime
from veilcount_shared.mechanisms.mean import TABLES
from veilcount_shared.mechanisms.selection import (
    LONG_BITS,
    MAX_INPUTS,
    MAX_ORDER,
    SHORT_BITS,
    subset_bits,
)

ONE = Fraction(1)
VECTORS = Path(__file__).parents[1] / "vectors"


def vectors(name: str) -> list[Any]:
    """Pinned once, by hand, after the prototypes found the same; never made anew by a test."""
    found: list[Any] = json.loads((VECTORS / name).read_text(encoding="utf-8"))
    return found


# -- subsets ---------------------------------------------------------------------------------------

SHAPES = [(k, w) for k in (2, 3, 4, 5, 8, 9, 16, 17, 100) for w in (1, 2, 3, 7, 50) if w < k]


@pytest.mark.parametrize(("k", "w"), SHAPES)
def test_a_subset_is_sent_in_its_shortest_spelling(k: int, w: int) -> None:
    """A label for w = 1; else w packed labels or a k-bit mask, the mask where they are equal."""
    mechanism, label = SubsetSelection.for_epsilon(ONE, k, w), ceil(log2(k))

    assert mechanism.bits == (label if w == 1 else min(k, w * label))
    assert mechanism.masked == (w > 1 and k <= w * label)
    assert mechanism.messages == comb(k, w)


@pytest.mark.parametrize(("k", "w"), SHAPES)
def test_the_planner_knows_a_subsets_length(k: int, w: int) -> None:
    assert subset_bits(k, w) == SubsetSelection.for_epsilon(ONE, k, w).bits


def test_at_a_tie_the_mask_is_taken() -> None:
    tied, packed = SubsetSelection.for_epsilon(ONE, 16, 4), SubsetSelection.for_epsilon(ONE, 16, 3)

    assert (tied.masked, tied.bits) == (True, 16)
    assert (packed.masked, packed.bits) == (False, 12)


@pytest.mark.parametrize(("k", "w"), [(5, 1), (7, 3), (4, 2), (16, 2), (17, 2), (9, 2), (10, 2)])
def test_exactly_the_w_subsets_are_valid_each_in_one_spelling(k: int, w: int) -> None:
    """Over all bit strings of a message's length, and one bit more."""
    mechanism = SubsetSelection.for_epsilon(ONE, k, w)
    valid = [message for message in range(-2, 1 << mechanism.bits + 1) if mechanism.valid(message)]
    expected = set(combinations(range(k), w))

    assert len(valid) == mechanism.messages
    assert {mechanism.members(message) for message in valid} == expected


def packed(mechanism: SubsetSelection, *members: int) -> int:
    return sum(member << place * mechanism.label_bits for place, member in enumerate(members))


def test_packed_members_lie_with_the_smallest_lowest() -> None:
    mechanism = SubsetSelection.for_epsilon(ONE, 100, 3)

    assert mechanism.members(packed(mechanism, 5, 40, 99)) == (5, 40, 99)
    assert mechanism.valid(packed(mechanism, 5, 40, 99))


@pytest.mark.parametrize(
    "members", [(40, 5, 99), (5, 5, 99), (5, 99, 99), (5, 40, 100), (99, 40, 5)]
)
def test_unsorted_repeated_or_foreign_members_are_malformed(members: tuple[int, ...]) -> None:
    """A second spelling would be a channel, a repeated member a double vote."""
    mechanism = SubsetSelection.for_epsilon(ONE, 100, 3)

    assert not mechanism.valid(packed(mechanism, *members))


@pytest.mark.parametrize("message", [0, 0b1, 0b11, 0b1111, 0b1111111, 1 << 7, 0b111 | 1 << 7, -1])
def test_a_mask_of_another_weight_or_length_is_malformed(message: int) -> None:
    mechanism = SubsetSelection.for_epsilon(ONE, 7, 3)

    assert mechanism.masked
    assert mechanism.valid(0b111)
    assert not mechanism.valid(message)


@pytest.mark.parametrize("message", [-1, 5, 6, 7, 8])
def test_a_label_beyond_the_list_is_malformed(message: int) -> None:
    assert not SubsetSelection.for_epsilon(ONE, 5, 1).valid(message)


@given(st.sampled_from(SHAPES), st.integers(0, 2**32))
def test_whatever_is_sent_is_valid(shape: tuple[int, int], seed: int) -> None:
    mechanism = SubsetSelection.for_epsilon(ONE, *shape)
    message = mechanism.randomize(seed % mechanism.k, SeededRandomSource(seed))

    assert mechanism.valid(message)
    assert len(mechanism.members(message)) == mechanism.w


# -- fields ----------------------------------------------------------------------------------------

QS = sorted([*POLYNOMIALS, 2, 3, 5, 7, 53, 251])


def plus(field: FiniteField, one: int, two: int) -> int:
    return (one + two) % field.q if field.prime else one ^ two


@pytest.mark.parametrize("q", QS)
def test_every_element_but_zero_has_one_inverse(q: int) -> None:
    field = get_field(q)
    inverses = [field.inverse(x) for x in range(1, q)]

    assert all(field.times(x, y) == 1 for x, y in enumerate(inverses, start=1))
    assert sorted(inverses) == list(range(1, q))


@pytest.mark.parametrize("q", QS)
def test_a_field_keeps_its_axioms(q: int) -> None:
    """Commutative, associative, distributive, 0 and 1: all triples of a small field, else 3,000."""
    field = get_field(q)
    for x, y, z in product(range(q), repeat=3) if q <= 16 else some_triples(q):
        assert field.times(x, y) == field.times(y, x)
        assert field.times(field.times(x, y), z) == field.times(x, field.times(y, z))
        assert field.times(x, plus(field, y, z)) == plus(
            field, field.times(x, y), field.times(x, z)
        )
    assert all(field.times(x, 1) == x and field.times(x, 0) == 0 for x in range(q))


def some_triples(q: int) -> list[tuple[int, int, int]]:
    random = Random(q)
    return [(random.randrange(q), random.randrange(q), random.randrange(q)) for _ in range(3000)]


@pytest.mark.parametrize(
    ("q", "product"), [(4, 3), (8, 3), (16, 3), (32, 5), (64, 3), (128, 3), (256, 29)]
)
def test_a_fields_polynomial_never_changes(q: int, product: int) -> None:
    """Another one, primitive too, makes another plane: old reports would be decoded wrongly."""
    assert get_field(q).times(q // 2, 2) == product


@pytest.mark.parametrize("q", sorted(POLYNOMIALS))
def test_z_generates_every_element_but_zero(q: int) -> None:
    field = get_field(q)
    power, powers = 1, set()
    for _ in range(q - 1):
        powers.add(power)
        power = field.times(power, 2)

    assert powers == set(range(1, q))


@pytest.mark.parametrize("q", QS)
def test_the_minus_dot_is_what_cancels_the_dot(q: int) -> None:
    field, random = get_field(q), Random(q)
    for _ in range(100):
        one, two = ([random.randrange(q) for _ in range(4)] for _ in range(2))
        total = 0
        for x, y in zip(one, two, strict=True):
            total = plus(field, total, field.times(x, y))

        assert plus(field, total, field.minus_dot(one, two)) == 0


@pytest.mark.parametrize("q", [-1, 0, 1, 6, 9, 12, 27, 512, 1 << 20])
def test_an_order_without_a_field_here_is_refused(q: int) -> None:
    """9 = 3^2 has a field, but none that is part of the protocol."""
    with pytest.raises(ValueError, match=r"is not defined: give a prime or 4, 8, ..., 256"):
        FiniteField(q)


def test_primes_are_told_from_the_rest() -> None:
    sieve = [n for n in range(2, 3200) if all(n % d for d in range(2, int(n**0.5) + 1))]

    assert [n for n in range(-3, 3200) if is_prime(n)] == sieve


# -- planes ----------------------------------------------------------------------------------------

PLANES = [
    (2, 3),
    (2, 8),
    (3, 3),
    (3, 5),
    (4, 3),
    (4, 4),
    (5, 3),
    (8, 3),
    (16, 3),
    (53, 3),
    (256, 3),
]


def whole(q: int, t: int) -> ProjectiveGeometry:
    return ProjectiveGeometry.for_epsilon(ONE, (q**t - 1) // (q - 1), q, t)


@pytest.mark.parametrize(("q", "t"), PLANES)
def test_every_point_is_its_number_and_back(q: int, t: int) -> None:
    mechanism = whole(q, t)
    numbers = range(0, mechanism.messages, 7 if mechanism.messages > 10_000 else 1)
    vectors_found = [mechanism.point(number) for number in numbers]

    assert [mechanism.number(vector) for vector in vectors_found] == list(numbers)
    assert len({tuple(vector) for vector in vectors_found}) == len(numbers)
    assert all(next(filter(None, vector)) == 1 for vector in vectors_found)
    assert all(len(vector) == t and max(vector) < q for vector in vectors_found)


@pytest.mark.parametrize(("q", "t"), PLANES)
def test_all_multiples_of_a_vector_are_one_point(q: int, t: int) -> None:
    mechanism, field, random = whole(q, t), get_field(q), Random(1)
    for number in random.sample(range(mechanism.messages), 7):
        point = mechanism.point(number)
        for scale in random.sample(range(1, q), min(q - 1, 5)):
            assert mechanism.number([field.times(scale, c) for c in point]) == number


def test_the_numbering_is_by_free_coordinates_then_base_q() -> None:
    mechanism = whole(3, 3)

    assert [mechanism.point(number) for number in range(6)] == [
        [0, 0, 1],
        [0, 1, 0],
        [0, 1, 1],
        [0, 1, 2],
        [1, 0, 0],
        [1, 0, 1],
    ]
    assert mechanism.point(12) == [1, 2, 2]
    assert mechanism.number([0, 2, 1]) == mechanism.number([0, 1, 2]) == 3


@pytest.mark.parametrize(("q", "t"), [(2, 3), (2, 4), (3, 3), (4, 3), (5, 3), (8, 3), (3, 4)])
def test_points_and_hyperplanes_are_a_symmetric_design(q: int, t: int) -> None:
    """Each point lies on r hyperplanes, any two on lambda in common, and the other way round."""
    mechanism = whole(q, t)
    numbers = range(mechanism.messages)
    through = [{m for m in numbers if mechanism.supports(m, x)} for x in numbers]

    assert {len(each) for each in through} == {mechanism.support_size}
    assert {len(one & two) for one, two in combinations(through, 2)} == {
        mechanism.pair_support_size
    }
    assert all((m in through[x]) == (x in through[m]) for m in numbers for x in numbers)


@pytest.mark.parametrize("message", [-1, 73, 74, 1 << 7, 1 << 64])
def test_a_hyperplane_beyond_the_last_is_malformed(message: int) -> None:
    mechanism = whole(8, 3)

    assert (mechanism.messages, mechanism.bits) == (73, 7)
    assert mechanism.valid(0)
    assert mechanism.valid(72)
    assert not mechanism.valid(message)


@pytest.mark.parametrize(("k", "q", "t"), [(8, 2, 3), (1, 2, 3), (3, 2, 2), (74, 8, 3)])
def test_a_plane_without_room_for_its_inputs_is_refused(k: int, q: int, t: int) -> None:
    with pytest.raises(ValueError, match=rf"PG\({t - 1}, {q}\) has no {k} inputs"):
        ProjectiveGeometry.for_epsilon(ONE, k, q, t)


# -- windows and true values -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "mechanism",
    [
        SquareWave.for_epsilon(ONE, 13, 5),
        MeanMechanism.for_epsilon(ONE),
        DistributionMechanism.for_epsilon(ONE),
        Identity(7),
    ],
)
def test_a_level_out_of_range_is_malformed(
    mechanism: SquareWave | MeanMechanism | DistributionMechanism | Identity,
) -> None:
    count = mechanism.messages

    assert mechanism.bits == (count - 1).bit_length()
    assert all(mechanism.valid(message) for message in range(count))
    assert not any(mechanism.valid(message) for message in (-1, count, count + 1, 1 << 64))


@pytest.mark.parametrize("count", range(2, 18))
def test_a_level_is_sent_in_as_few_bits_as_tell_it_apart(count: int) -> None:
    bits = ceil(log2(count))

    assert (Identity(count).inputs, Identity(count).bits) == (count, bits)
    assert (
        SquareWave.for_epsilon(ONE, count, 1).inputs,
        SquareWave.for_epsilon(ONE, count, 1).bits,
    ) == (count, bits)


@pytest.mark.parametrize(
    "mechanism", [MeanMechanism.for_epsilon(ONE), DistributionMechanism.for_epsilon(ONE)]
)
def test_a_numbers_design_is_as_private_as_its_window(
    mechanism: MeanMechanism | DistributionMechanism,
) -> None:
    window = mechanism.window

    assert (mechanism.inputs, mechanism.messages) == (window.inputs, window.levels)
    assert (mechanism.epsilon, mechanism.P, mechanism.transition_matrix) == (
        ONE,
        window.P,
        window.transition_matrix,
    )


def test_a_true_value_is_its_own_message() -> None:
    assert [Identity(7).reveal(x) for x in range(7)] == list(range(7))
    assert not hasattr(Identity, "randomize")


@pytest.mark.parametrize(
    "make",
    [
        lambda a: SubsetSelection(5, 2, a, ONE),
        lambda a: ProjectiveGeometry(7, 2, 3, a, ONE),
        lambda a: SquareWave(13, 5, a, ONE),
    ],
    ids=["subset", "plane", "window"],
)
@pytest.mark.parametrize("a", [0, 1, (1 << 64) - 1, 1 << 64, -1])
def test_a_threshold_that_breaks_the_promise_makes_no_design(make: Any, a: int) -> None:
    """Whoever built it, on whichever side."""
    with pytest.raises(EpsilonError, match=rf"a={a} exceeds it"):
        make(a)


# -- the planner -----------------------------------------------------------------------------------

Row = tuple[int, str, tuple[int, ...], int, int, float, float]
#: k, epsilon, design, bits, counters, ratio, V0, worked out apart from the product
TABLE: list[Row] = [
    (2, "0.1", (1,), 1, 2, 1.000, 99.917),
    (2, "0.5", (1,), 1, 2, 1.000, 3.9177),
    (2, "1", (1,), 1, 2, 1.000, 0.92067),
    (2, "2", (1,), 1, 2, 1.000, 0.18102),
    (2, "4", (1,), 1, 2, 1.000, 0.019005),
    (2, "8", (1,), 1, 2, 1.000, 0.00033569),
    (4, "0.1", (2,), 4, 4, 1.000, 225.31),
    (4, "0.5", (2,), 4, 4, 1.000, 9.3148),
    (4, "1", (1,), 2, 4, 1.000, 1.5981),
    (4, "2", (1,), 2, 4, 1.000, 0.23001),
    (4, "4", (1,), 2, 4, 1.000, 0.019702),
    (4, "8", (1,), 2, 4, 1.000, 0.00033591),
    (16, "0.1", (8,), 16, 16, 1.000, 352.14),
    (16, "0.5", (6,), 16, 16, 1.000, 13.65),
    (16, "1", (4,), 16, 16, 1.000, 3.1107),
    (16, "2", (2,), 8, 16, 1.000, 0.51983),
    (16, "4", (1,), 4, 16, 1.000, 0.023879),
    (16, "8", (1,), 4, 16, 1.000, 0.00033726),
    (64, "0.1", (30,), 64, 64, 1.000, 387.3),
    (64, "0.5", (24,), 64, 64, 1.000, 15.154),
    (64, "1", (17,), 64, 64, 1.000, 3.5372),
    (64, "2", (8,), 48, 64, 1.000, 0.67219),
    (64, "4", (1,), 6, 64, 1.000, 0.040587),
    (64, "8", (1,), 6, 64, 1.000, 0.00034267),
    (256, "0.1", (122,), 256, 256, 1.000, 396.55),
    (256, "0.5", (97,), 256, 256, 1.000, 15.541),
    (256, "1", (69,), 256, 256, 1.000, 3.6462),
    (256, "2", (31,), 248, 256, 1.000, 0.71077),
    (256, "4", (5,), 40, 256, 1.000, 0.068091),
    (256, "8", (1,), 8, 256, 1.000, 0.00036429),
    (1024, "0.1", (2, 11), 11, 2047, 1.003, 400.26),
    (1024, "0.5", (3, 7), 11, 1093, 1.010, 15.788),
    (1024, "1", (4, 6), 11, 1365, 1.003, 3.6848),
    (1024, "2", (8, 5), 13, 4681, 1.004, 0.72386),
    (1024, "4", (18,), 180, 1024, 1.000, 0.073908),
    (1024, "8", (1,), 10, 1024, 1.000, 0.00045078),
    (65536, "0.1", (2, 17), 17, 131071, 1.003, 400.66),
    (65536, "0.5", (3, 11), 17, 88573, 1.009, 15.817),
    (65536, "1", (4, 9), 17, 87381, 1.002, 3.6915),
    (65536, "2", (8, 7), 19, 299593, 1.001, 0.72458),
    (65536, "4", (53, 4), 18, 151740, 1.001, 0.076053),
    (65536, "8", (22,), 352, 65536, 1.000, 0.0013122),
    (1000000, "0.1", (2, 20), 20, 1048575, 1.003, 400.67),
    (1000000, "0.5", (3, 14), 22, 2391484, 1.009, 15.817),
    (1000000, "1", (4, 11), 21, 1398101, 1.002, 3.6916),
    (1000000, "2", (8, 8), 22, 2396745, 1.001, 0.72459),
    (1000000, "4", (43, 5), 22, 3500201, 1.017, 0.077337),
    (1000000, "8", (335,), 6700, 1000000, 1.000, 0.0013407),
]


@pytest.mark.parametrize("row", TABLE, ids=lambda row: f"{row[0]}-{row[1]}")
def test_the_planner_ships_what_its_table_says(row: Row) -> None:
    k, epsilon, shape, bits, cells, ratio, noise = row
    planned = select_mechanism(k, epsilon)
    mechanism = planned.mechanism
    found = (mechanism.w,) if isinstance(mechanism, SubsetSelection) else (mechanism.q, mechanism.t)
    counters = mechanism.k if isinstance(mechanism, SubsetSelection) else mechanism.messages

    assert (found, planned.bits, counters) == (shape, bits, cells)
    assert round(planned.ratio, 3) == ratio
    assert planned.variance == pytest.approx(noise, rel=1e-4)


@pytest.mark.parametrize(("k", "epsilon", "canonical"), vectors("plan.json"))
def test_a_plan_never_changes(k: int, epsilon: str, canonical: dict[str, Any]) -> None:
    assert select_mechanism(k, epsilon).mechanism.canonical() == canonical


SCOPE = 100_000  # values: up to here, CLOSE is claimed; above, FAR
CLOSE, FAR = 1.035, 1.334


def close_to_the_optimum(k: int, epsilon: Fraction, most: float = CLOSE) -> bool:
    planned = select_mechanism(k, epsilon)
    subset = isinstance(planned.mechanism, SubsetSelection)
    short = planned.bits <= (SHORT_BITS if subset else 22) or (subset and planned.bits <= LONG_BITS)
    return 1 <= planned.ratio <= most and short and planned.mechanism.inputs == k


COARSE = (2, 3, 10, 64, 200, 300, 1000, 3000, 10_000, 65_536, 100_000)
FINE = (2, 3, 5, 10, 20, 50, 100, 200, 300, 500, 700, 1000, 1500, 2000, 3000, 5000)
LONGER = (120_000, 150_000, 200_000, 400_000, 700_000, 1_000_000, 1 << 20)
LARGE = (10_000, 20_000, 40_000, 65_536, 100_000)


@pytest.mark.parametrize("k", COARSE)
def test_a_plan_is_within_three_and_a_half_percent_of_the_optimum(k: int) -> None:
    """Of up to 100,000 values, on a coarse grid with the weak spots: epsilon .35, and 7.9."""
    epsilons = [
        Fraction(e) for e in ("0.05", "0.35", "0.7", "1", "2", "3.3", "5", "6.5", "7.9", "8")
    ]

    assert [e for e in epsilons if not close_to_the_optimum(k, e)] == []


#: the worst of each list length, by a search over every hundredth of epsilon (finer at the peaks)
#: and every k at which a plane becomes too small
WORST_WITHIN = [(69_433, "7.87"), (94_557, "7.9"), (50_766, "7.82"), (77_007, "7.88")]
WORST_BEYOND = [
    (110_000, "5.42"),
    (200_000, "5.58"),
    (300_000, "5.68"),
    (1_000_000, "6"),
    (1_000_000, "6.125"),
    (1 << 20, "6.1467"),
]


@pytest.mark.parametrize(("k", "epsilon"), WORST_WITHIN)
def test_the_worst_lists_of_up_to_100_000_values_are_within_three_and_a_half_percent(
    k: int, epsilon: str
) -> None:
    """Where the search found the most, 3.49999 %."""
    assert k <= SCOPE
    assert close_to_the_optimum(k, Fraction(epsilon))


@pytest.mark.parametrize(("k", "epsilon"), WORST_BEYOND)
def test_longer_lists_are_within_a_third_and_not_within_three_and_a_half_percent(
    k: int, epsilon: str
) -> None:
    """The claim of short lists would be false of each of them: it needs its scope."""
    assert k > SCOPE
    assert close_to_the_optimum(k, Fraction(epsilon), FAR)
    assert not close_to_the_optimum(k, Fraction(epsilon), CLOSE)


def test_the_figures_that_are_stated_are_reached() -> None:
    """A million values at epsilon 6 cost 24.3 % more; the longest list at its worst 33.2 %."""
    assert round(select_mechanism(1_000_000, 6).ratio, 3) == 1.243
    assert round(select_mechanism(1 << 20, Fraction("6.1467")).ratio, 3) == 1.332


@pytest.mark.full
@pytest.mark.parametrize("k", LONGER)
def test_every_longer_list_is_within_a_third(k: int) -> None:
    epsilons = [Fraction(step, 100) for step in range(1, 801)]

    assert [e for e in epsilons if not close_to_the_optimum(k, e, FAR)] == []


@pytest.mark.full
@pytest.mark.parametrize("k", FINE + LARGE)
def test_a_plan_is_within_three_and_a_half_percent_everywhere(k: int) -> None:
    epsilons = [Fraction(step, 20) for step in range(1, 161)]

    assert [e for e in epsilons if not close_to_the_optimum(k, e)] == []


def test_the_planners_limits_never_change() -> None:
    """A short message, a long one, the largest order: part of the protocol."""
    assert (SHORT_BITS, LONG_BITS, MAX_ORDER, MAX_INPUTS) == (256, 8192, 3100, 1 << 20)


def test_a_plane_may_be_full() -> None:
    mechanism = select_mechanism(1365, 1).mechanism

    assert isinstance(mechanism, ProjectiveGeometry)
    assert (mechanism.q, mechanism.t, mechanism.messages) == (4, 6, 1365)


@pytest.mark.parametrize("k", [2, 1000, MAX_INPUTS])
@pytest.mark.parametrize("epsilon", ["0.000001", "16"])
def test_a_plan_exists_at_every_end(k: int, epsilon: str) -> None:
    planned = select_mechanism(k, epsilon)

    assert planned.mechanism.inputs == k
    assert planned.mechanism.P > planned.mechanism.Q


@pytest.mark.parametrize("k", [-1, 0, 1, MAX_INPUTS + 1])
def test_a_question_no_plan_answers_is_refused(k: int) -> None:
    with pytest.raises(ValueError, match=rf"k = {k}: give 2 to 1,048,576"):
        select_mechanism(k, 1)


@pytest.mark.parametrize("epsilon", [0, 17, "0.0000001"])
def test_an_epsilon_no_one_can_claim_is_not_planned(epsilon: int | str) -> None:
    with pytest.raises(EpsilonError):
        select_mechanism(2, epsilon)


def test_a_float_is_not_planned() -> None:
    with pytest.raises(TypeError, match=r"not exact"):
        select_mechanism(2, 0.7)  # type: ignore[arg-type] # the point


# -- numbers ---------------------------------------------------------------------------------------

#: epsilon, M, W, the worst variance, worked out apart from the product, row by row as in TABLES
MEANS = [
    ("0.1", 16, 8, "400.0159"),
    ("0.25", 16, 8, "64.0119"),
    ("0.5", 16, 8, "16.0134"),
    ("0.75", 16, 8, "7.1284"),
    ("1", 15, 7, "4.0042"),
    ("1.25", 16, 7, "2.5225"),
    ("1.5", 14, 6, "1.6974"),
    ("1.75", 15, 6, "1.1973"),
    ("2", 13, 5, "0.8723"),
    ("2.5", 14, 5, "0.4988"),
    ("3", 15, 5, "0.3097"),
    ("3.5", 14, 4, "0.1982"),
    ("4", 16, 4, "0.1306"),
    ("4.5", 13, 3, "0.0898"),
    ("5", 11, 2, "0.0637"),
    ("6", 15, 2, "0.0304"),
    ("7", 13, 1, "0.0185"),
    ("8", 16, 1, "0.0091"),
]


@pytest.mark.parametrize(
    ("row", "epsilon", "levels", "width", "worst"), [(row, *each) for row, each in enumerate(MEANS)]
)
def test_a_mean_has_its_tables_worst_variance(
    row: int, epsilon: str, levels: int, width: int, worst: str
) -> None:
    mechanism = MeanMechanism.for_epsilon(Fraction(epsilon))

    assert (mechanism.window.levels, mechanism.window.width) == (levels, width)
    assert mechanism.values[-len(TABLES[row][2]) :] == TABLES[row][2]
    assert f"{float(mechanism.variance):.4f}" == worst


def test_the_tables_never_change() -> None:
    spelled = sha256(json.dumps(TABLES).encode()).hexdigest()

    assert spelled == "658a8d17d85d9ea6be711d2283a834c0476e44a5f6272656b612a30eca333652"


def variance_at(mechanism: MeanMechanism, point: Fraction) -> Fraction:
    """The variance of a decoded report at one number, in the units of [-1, 1], from the rows."""
    means, decoded = mechanism.means, mechanism.decoded
    place = means[0] + point * (means[-1] - means[0])
    start = max(s for s in range(len(means) - 1) if means[s] <= place)
    up = (place - means[start]) / (means[start + 1] - means[start])
    rows = zip(
        mechanism.transition_matrix[start], mechanism.transition_matrix[start + 1], strict=True
    )
    law = [(1 - up) * one + up * two for one, two in rows]
    second = sum((p * value * value for p, value in zip(law, decoded, strict=True)), Fraction(0))
    return 4 * (second - point * point)


@pytest.mark.parametrize("epsilon", ["0.1", "1", "2", "4.7", "8"])
def test_a_means_variance_is_the_worst_over_all_numbers(epsilon: str) -> None:
    """No number of a fine grid varies more, and some number varies as much."""
    mechanism = MeanMechanism.for_epsilon(Fraction(epsilon))
    found = [variance_at(mechanism, Fraction(step, 300)) for step in range(301)]

    assert max(found) <= mechanism.variance
    assert float(max(found)) == pytest.approx(float(mechanism.variance), rel=1e-3)


@pytest.mark.parametrize("epsilon", ["0.3", "1", "2.2", "5.5", "8", "16"])
def test_no_other_table_would_have_varied_less(epsilon: str) -> None:
    chosen = MeanMechanism.for_epsilon(Fraction(epsilon)).variance
    others = []
    for levels, width, half in TABLES:
        lower = tuple(-value for value in reversed(half) if value or levels % 2 == 0)
        others.append(
            MeanMechanism(
                SquareWave.for_epsilon(Fraction(epsilon), levels, width), (*lower, *half)
            ).variance
        )

    assert chosen == min(others)


@pytest.mark.parametrize("epsilon", ["0.000001", "0.1", "1", "2", "8", "16"])
def test_a_mean_decodes_alike_from_both_ends(epsilon: str) -> None:
    """Antisymmetric levels: what says u for a number says 1 - u for its mirror image."""
    decoded = MeanMechanism.for_epsilon(Fraction(epsilon)).decoded

    assert all(one + two == 1 for one, two in zip(decoded, reversed(decoded), strict=True))


def test_values_that_could_not_be_rounded_between_are_refused() -> None:
    window = SquareWave.for_epsilon(ONE, 4, 2)

    with pytest.raises(ValueError, match=r"do not ascend"):
        MeanMechanism(window, (1, 1, 1, 1))
    with pytest.raises(ValueError, match=r"3 values for 4 levels"):
        MeanMechanism(window, (1, 2, 3))


@pytest.mark.parametrize("values", [(0, 0, 3, -1), (3, -1, 0, 4), (0, 0, 0, 1)])
def test_one_pair_that_does_not_ascend_is_enough(values: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"do not ascend"):
        MeanMechanism(SquareWave.for_epsilon(ONE, 4, 2), values)


@pytest.mark.parametrize(
    ("epsilon", "width"),
    [
        ("0.05", 247),
        ("0.1", 239),
        ("0.5", 183),
        ("1", 131),
        ("2", 67),
        ("3", 33),
        ("4", 15),
        ("6", 3),
        ("8", 1),
        ("16", 1),
    ],
)
def test_a_distributions_window_narrows_as_epsilon_grows(epsilon: str, width: int) -> None:
    """W = 2b + 1 by the square wave's formula; 256 starts whatever the width."""
    window = DistributionMechanism.for_epsilon(Fraction(epsilon)).window

    assert window.width == width
    assert window.levels == 255 + width
    assert window.inputs == 256


@pytest.mark.parametrize(
    ("grid", "bucket"),
    [
        (0, 0),
        (1, 0),
        ((1 << 24) - 1, 0),
        (1 << 24, 1),
        (GRID // 2, 128),
        (GRID - 1, 255),
        (GRID, 255),
    ],
)
def test_a_bucket_is_a_256th_of_the_range(grid: int, bucket: int) -> None:
    assert DistributionMechanism.for_epsilon(ONE).bucket(grid) == bucket


def test_a_distribution_with_other_starts_is_refused() -> None:
    with pytest.raises(ValueError, match=r"the window has 10 starts, not 256"):
        DistributionMechanism(SquareWave.for_epsilon(ONE, 12, 3))


@pytest.mark.parametrize(("epsilon", "mean", "distribution"), vectors("number.json"))
def test_a_numbers_designs_never_change(
    epsilon: str, mean: dict[str, Any], distribution: dict[str, Any]
) -> None:
    assert MeanMechanism.for_epsilon(Fraction(epsilon)).canonical() == mean
    assert DistributionMechanism.for_epsilon(Fraction(epsilon)).canonical() == distribution
