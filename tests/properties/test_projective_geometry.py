"""Finite fields, and the points and hyperplanes of projective geometries over them."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, product
from random import Random

import pytest

from veilcount_shared.mechanisms import ProjectiveGeometry
from veilcount_shared.mechanisms.finite_field import POLYNOMIALS, FiniteField, get_field, is_prime

ONE = Fraction(1)


QS = sorted([*POLYNOMIALS, 2, 3, 5, 7, 53, 251])


def add(field: FiniteField, one: int, two: int) -> int:
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
        assert field.times(x, add(field, y, z)) == add(field, field.times(x, y), field.times(x, z))
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
def test_minus_dot_cancels_the_dot_product(q: int) -> None:
    field, random = get_field(q), Random(q)
    for _ in range(100):
        one, two = ([random.randrange(q) for _ in range(4)] for _ in range(2))
        total = 0
        for x, y in zip(one, two, strict=True):
            total = add(field, total, field.times(x, y))

        assert add(field, total, field.minus_dot(one, two)) == 0


@pytest.mark.parametrize("q", [-1, 0, 1, 6, 9, 12, 27, 512, 1 << 20])
def test_an_order_without_a_defined_field_is_refused(q: int) -> None:
    """9 = 3^2 has a field, but none that is part of the protocol."""
    with pytest.raises(ValueError, match=r"is not defined: give a prime or 4, 8, ..., 256"):
        FiniteField(q)


def test_is_prime_agrees_with_a_sieve() -> None:
    sieve = [n for n in range(2, 3200) if all(n % d for d in range(2, int(n**0.5) + 1))]

    assert [n for n in range(-3, 3200) if is_prime(n)] == sieve


GEOMETRIES = [*((2, 3), (2, 8), (3, 5), (4, 4), (5, 3), (16, 3), (53, 3)), (256, 3)]


def whole(q: int, t: int) -> ProjectiveGeometry:
    return ProjectiveGeometry.for_epsilon(ONE, (q**t - 1) // (q - 1), q, t)


@pytest.mark.parametrize(("q", "t"), GEOMETRIES)
def test_points_and_numbers_correspond_one_to_one(q: int, t: int) -> None:
    mechanism, field = whole(q, t), get_field(q)
    numbers = range(0, mechanism.messages, 7 if mechanism.messages > 10_000 else 1)
    vectors_found = [mechanism.point(number) for number in numbers]

    assert [mechanism.number(vector) for vector in vectors_found] == list(numbers)
    assert len({tuple(vector) for vector in vectors_found}) == len(numbers)
    assert all(next(filter(None, vector)) == 1 for vector in vectors_found)
    assert all(len(vector) == t and max(vector) < q for vector in vectors_found)
    for number, point in list(zip(numbers, vectors_found, strict=True))[:: len(numbers) // 6]:
        for scale in {1, 2, q // 2, q - 1} - {0, q}:  # its multiples are the same point
            assert mechanism.number([field.times(scale, c) for c in point]) == number


def test_the_numbering_is_by_free_coordinates_then_base_q() -> None:
    mechanism = whole(3, 3)

    points = {0: [0, 0, 1], 1: [0, 1, 0], 2: [0, 1, 1], 3: [0, 1, 2], 4: [1, 0, 0], 12: [1, 2, 2]}

    assert {number: mechanism.point(number) for number in points} == points
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


def test_a_hyperplane_after_the_last_is_malformed() -> None:
    mechanism = whole(8, 3)
    valid = [m for m in (-1, 0, 72, 73, 74, 1 << 7, 1 << 64) if mechanism.valid(m)]

    assert (mechanism.messages, mechanism.bits, valid) == (73, 7, [0, 72])


@pytest.mark.parametrize(("k", "q", "t"), [(8, 2, 3), (1, 2, 3), (3, 2, 2), (74, 8, 3)])
def test_a_geometry_with_too_few_points_is_refused(k: int, q: int, t: int) -> None:
    with pytest.raises(ValueError, match=rf"PG\({t - 1}, {q}\) has no {k} inputs"):
        ProjectiveGeometry.for_epsilon(ONE, k, q, t)
