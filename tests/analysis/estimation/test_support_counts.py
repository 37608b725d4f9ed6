"""Hyperplanes become supports: exactly, for every field, however large the counts are."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from veilcount_analysis.estimation.projective_supports import (
    Ring,
    cycle,
    points_held,
    polynomial,
    supports,
)
from veilcount_analysis.estimation.projective_vectors import meets, numbers, vectors
from veilcount_analysis.mechanisms.handler import (
    HANDLERS,
    GroupHandler,
    JointHandler,
    ShareHandler,
    group_handler_of,
    joint_handler,
)
from veilcount_analysis.simulation import simulate, simulate_messages
from veilcount_shared.mechanisms import DrawnBit, HashedStrings, ProjectiveGeometry, SubsetSelection
from veilcount_shared.mechanisms.finite_field import get_field
from veilcount_shared.mechanisms.projective_geometry import points

from .collection_fixtures import falling, of_values

Ints = NDArray[np.int64]

#: every characteristic that is shipped, lines of every kind: even and odd, with q prime or not
SMALL = [(2, 3), (2, 6), (3, 4), (4, 3), (4, 4), (5, 3), (7, 3), (8, 3), (11, 3), (16, 3), (37, 3)]


def plane(q: int, t: int) -> ProjectiveGeometry:
    return ProjectiveGeometry.for_epsilon(Fraction(1), points(q, t), q, t)


def drawn(v: int, most: int) -> Ints:
    return np.random.default_rng(v).integers(0, most, v, endpoint=True)


@pytest.mark.parametrize(("q", "t"), SMALL)
@pytest.mark.parametrize("most", [1, 10**15])
def test_decoding_equals_adding_up_cell_by_cell(q: int, t: int, most: int) -> None:
    """As the device's own arithmetic does; counts far beyond what one transform resolves."""
    mechanism = plane(q, t)
    cells, size = drawn(mechanism.messages, most), range(mechanism.messages)
    hyperplanes = vectors(q, t, np.arange(mechanism.messages))
    rows = np.array([meets(mechanism, hyperplanes, x) for x in size])

    assert (supports(mechanism, cells) == [cells[row].sum() for row in rows]).all()
    if len(size) < 100:
        assert rows.tolist() == [[mechanism.supports(message, x) for message in size] for x in size]


@pytest.mark.parametrize("most", [1, 10**15])
def test_some_points_are_decoded_as_among_all(most: int) -> None:
    cells = drawn(points(3, 4), most) + 7
    whole = cycle(3, 4).supports(cells, range(len(cells)))

    for wanted in (range(10), range(10, 31), range(31, len(cells)), range(0)):
        found = cycle(3, 4).supports(cells, wanted)
        assert found.tolist() == whole[wanted.start : wanted.stop].tolist()


def test_one_message_that_came_from_all_is_decoded_exactly() -> None:
    """The worst case of a transform's error: one cell holds everything."""
    mechanism = plane(4, 6)
    cells = np.zeros(mechanism.messages, np.int64)
    cells[17] = 10**17
    through = points_held(mechanism, np.array([17]))  # as its hyperplanes are the other's points

    assert (supports(mechanism, cells) == 10**17 * through).all()


def test_a_polynomial_with_a_short_cycle_is_passed_over() -> None:
    """x^4 + x^3 + x^2 + x + 1 has no factor over GF(2), but x^5 = 1; the cycle takes another."""
    short = Ring(get_field(2), [1, 1, 1, 1])

    assert short.power(5) == [1, 0, 0, 0]
    assert polynomial(2, 4) == [1, 1, 0, 0]


@pytest.mark.parametrize(("q", "t"), SMALL)
def test_vectors_and_numbers_are_the_devices_own(q: int, t: int) -> None:
    mechanism = plane(q, t)
    numbered = np.arange(mechanism.messages)
    found = vectors(q, t, numbered)

    assert [list(map(int, row)) for row in zip(*found, strict=True)] == [
        mechanism.point(number) for number in range(mechanism.messages)
    ]
    assert (numbers(get_field(q), found) == numbered).all()


def test_a_few_values_are_decoded_alike_without_a_transform() -> None:
    collection = of_values(5000)
    mechanism = collection.mechanism
    counters = simulate(collection, falling(5000, 300), np.random.default_rng(1))
    places = np.array([0, 4999, 17])
    assert isinstance(mechanism, ProjectiveGeometry)

    assert (supports(mechanism, counters, places) == supports(mechanism, counters)[places]).all()


@pytest.mark.parametrize(("k", "epsilon"), [(12, "0.5"), (12, "4"), (300, "1")])
def test_values_are_held_together_as_often_as_reports_say(k: int, epsilon: str) -> None:
    """Of a plane and of one input a report exactly; of subsets on average, within 6 errors."""
    collection = of_values(k, epsilon)
    mechanism, rng, n = collection.mechanism, np.random.default_rng(3), 40_000
    assert isinstance(mechanism, SubsetSelection | ProjectiveGeometry)
    whole = np.array([0, 3, 4, k - 1])
    inputs = np.repeat(np.arange(k), falling(k, n))
    sent = [int.from_bytes(row) for row in simulate_messages(collection, inputs, rng)]
    if isinstance(mechanism, ProjectiveGeometry):
        hyperplanes = vectors(mechanism.q, mechanism.t, np.array(sent))
        rows = np.array([meets(mechanism, hyperplanes, x) for x in range(k)])
        counters = np.bincount(sent, minlength=mechanism.messages)
    else:
        members = np.array([mechanism.members(message) for message in sent])
        rows = np.array([(members == x).any(axis=1) for x in range(k)])
        counters = rows.sum(axis=1)
    together = (rows * rows[whole].sum(axis=0)).mean(axis=1)
    found = joint_handler(collection).joint_support(counters, whole)
    exact = isinstance(mechanism, ProjectiveGeometry) or mechanism.w == 1
    error = 0 if exact else 6 * len(whole) / np.sqrt(n)

    assert np.abs(found - together).max() <= error + 1e-9


def test_each_mechanism_of_values_has_what_its_counters_answer_and_nothing_else() -> None:
    """Planted: a handler of groups without them is none."""

    class Lacking(GroupHandler[Any]):
        """Inherits group_sums and incidence, which are abstract."""

    answered = {
        mechanism.__name__: (issubclass(handler, JointHandler), issubclass(handler, GroupHandler))
        for mechanism, handler in HANDLERS.items()
        if issubclass(handler, ShareHandler)
    }

    assert answered == {
        "SubsetSelection": (True, True),
        "ProjectiveGeometry": (True, True),
        "SetSelection": (True, False),
        "DrawnBit": (False, False),
        "HashedStrings": (False, False),
    }
    assert not any(handler.__abstractmethods__ for handler in HANDLERS.values())
    assert {"group_sums", "joint_support", "incidence"} <= Lacking.__abstractmethods__
    for other in (
        DrawnBit.for_epsilon(Fraction(1), 5),
        HashedStrings.for_epsilon(Fraction(1), 8, 2),
    ):
        with pytest.raises(TypeError, match="do not add up"):
            group_handler_of(other)
