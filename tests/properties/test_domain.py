"""A domain is total: any object becomes an input, and none raises.

Whether a report exists must never depend on its value.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from itertools import product
from typing import Any, NoReturn

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.enumeration import enumerate_distribution
from tests.properties.hostile_values import ODD
from veilcount_client.testing import SeededRandomSource
from veilcount_shared.domain import (
    GRID,
    MAX_LABEL,
    MAX_VALUES,
    Boolean,
    Choice,
    Cross,
    Domain,
    Label,
    Number,
)
from veilcount_shared.errors import DefinitionError
from veilcount_shared.randomness import RandomSource

THEME = Choice(("light", "dark", "system"))
OPEN = Choice(("light", "dark"), other="another")
YEARS = Choice((2024, 2025, 2026))
SHARE = Number(Fraction(0), Fraction(1))
MINUTES = Number(Fraction(0), Fraction(240))
DEGREES = Number(Fraction("-273.15"), Fraction(10**6, 7))
NARROW = Number(Fraction(10**9), Fraction(10**9) + Fraction(1, 10**9))
THEME_BY_ARM = Cross(THEME, (("arm", Choice(("A", "B"))), ("year", YEARS)))

NUMBERS = [SHARE, MINUTES, DEGREES, NARROW]
DOMAINS: list[Domain] = [Boolean(), THEME, OPEN, YEARS, *NUMBERS, THEME_BY_ARM]


class NoRandomness(RandomSource):
    """For values that must be found without a draw."""

    __slots__ = ()

    def word(self) -> NoReturn:
        raise AssertionError("a known value is never drawn")


# -- any object -----------------------------------------------------------------------------------

#: by index: hypothesis cannot compare or print them
AN_ODD_ONE = st.integers(0, len(ODD) - 1).map(ODD.__getitem__)
ANYTHING = st.one_of(
    AN_ODD_ONE,
    st.integers(),
    st.integers(-(10**500), 10**500),
    st.floats(),
    st.fractions(),
    st.decimals(),
    st.complex_numbers(),
    st.booleans(),
    st.text(),
    st.binary(),
    st.sampled_from(["light", "dark", "system", "another", 2024, 2026, "A", "B"]),
    st.lists(AN_ODD_ONE, max_size=4),
    st.lists(AN_ODD_ONE, max_size=4).map(tuple),
)


@given(ANYTHING, st.sampled_from(DOMAINS), st.integers(0, 2**32))
def test_any_object_becomes_an_input_in_range(value: object, domain: Domain, seed: int) -> None:
    place = domain.input(value, SeededRandomSource(seed))

    assert type(place) is int
    assert 0 <= place < domain.size


@pytest.mark.parametrize("domain", DOMAINS, ids=lambda domain: type(domain).__name__)
def test_every_odd_object_becomes_an_input_in_range(domain: Domain) -> None:
    found = [domain.input(value, SeededRandomSource(1)) for value in ODD]

    assert {type(place) for place in found} == {int}
    assert 0 <= min(found) <= max(found) < domain.size


# -- labels ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("choice", [THEME, OPEN, YEARS])
def test_a_label_is_its_index(choice: Choice) -> None:
    places = [choice.input(label, NoRandomness()) for label in choice.labels]

    assert places == list(range(choice.size))


@pytest.mark.parametrize(("value", "place"), [(False, 0), (True, 1), (0, 0), (1, 1), (1.0, 1)])
def test_a_boolean_is_zero_or_one(value: object, place: int) -> None:
    assert Boolean().input(value, NoRandomness()) == place


@pytest.mark.parametrize("value", [None, "Light", "light ", b"light", 7, ["light"]])
def test_an_unknown_choice_is_other_where_declared(value: object) -> None:
    assert OPEN.input(value, NoRandomness()) == OPEN.size - 1


@pytest.mark.parametrize("domain", [Boolean(), THEME, YEARS])
def test_an_unknown_choice_is_drawn_uniformly_where_there_is_no_other(
    domain: Boolean | Choice,
) -> None:
    drawn = enumerate_distribution(lambda randomness: domain.input(object(), randomness))

    assert drawn == dict.fromkeys(range(domain.size), Fraction(1, domain.size))


# -- numbers ---------------------------------------------------------------------------------------


def nearest(number: Number, value: Fraction) -> int:
    """The grid point that is nearest, the upper one of two, by the definition."""
    place = (value - number.low) / (number.high - number.low) * GRID
    return min(max((place + Fraction(1, 2)).__floor__(), 0), GRID)


@given(st.sampled_from(NUMBERS), st.fractions() | st.integers() | st.floats(allow_nan=False))
def test_a_number_is_its_nearest_grid_point(number: Number, value: Fraction | float) -> None:
    place = number.input(value, NoRandomness())

    if value in {float("inf"), -float("inf")}:
        assert place == (GRID if value > 0 else 0)
    else:
        assert place == nearest(number, Fraction(value))


@given(st.sampled_from(NUMBERS), st.integers(0, GRID))
def test_a_grid_point_is_itself(number: Number, place: int) -> None:
    step = (number.high - number.low) / GRID
    value = number.low + place * step

    assert number.input(value, NoRandomness()) == place
    assert number.input(value + step * Fraction(499, 1000), NoRandomness()) == place
    assert number.input(value - step * Fraction(499, 1000), NoRandomness()) == place


@pytest.mark.parametrize(
    ("value", "place"),
    [
        (-1, 0),
        (240, GRID),
        (241, GRID),
        (10**400, GRID),
        (-(10**400), 0),
        (float("inf"), GRID),
        (-float("inf"), 0),
        (Decimal("1e1000000"), GRID),
        (Decimal("-Infinity"), 0),
        (120, GRID // 2),
        (np.float64(60), GRID // 4),
        (np.int64(60), GRID // 4),
        (Decimal(180), GRID // 4 * 3),
        (True, nearest(MINUTES, Fraction(1))),
    ],
)
def test_a_number_out_of_range_is_clamped(value: object, place: int) -> None:
    assert MINUTES.input(value, NoRandomness()) == place


@pytest.mark.parametrize(
    "value",
    [None, "12", b"12", float("nan"), Decimal("NaN"), Decimal("sNaN"), np.float64("nan"), 1j],
)
def test_a_value_that_is_no_number_is_drawn_from_the_whole_grid(value: object) -> None:
    bounds: list[int] = []

    class Recording(SeededRandomSource):
        __slots__ = ()

        def below(self, n: int) -> int:
            bounds.append(n)
            return 5

    assert MINUTES.input(value, Recording(0)) == 5
    assert bounds == [GRID + 1]


# -- crossing --------------------------------------------------------------------------------------


def test_a_crossing_counts_in_mixed_radix_with_the_answer_highest() -> None:
    parts = [part.labels for part in THEME_BY_ARM.parts]
    combined = list(product(*parts))

    assert list(THEME_BY_ARM.labels) == combined
    assert [THEME_BY_ARM.input(value, NoRandomness()) for value in combined] == list(range(18))
    assert THEME_BY_ARM.size == 3 * 2 * 3
    assert THEME_BY_ARM.input(["dark", "B", 2026], NoRandomness()) == (1 * 2 + 1) * 3 + 2


@pytest.mark.parametrize("value", [("dark",), "dark", ["dark"], ("dark", None, None)])
def test_a_missing_attribute_is_drawn_on_its_own(value: object) -> None:
    drawn = enumerate_distribution(lambda randomness: THEME_BY_ARM.input(value, randomness))

    assert drawn == dict.fromkeys(range(6, 12), Fraction(1, 6))


def test_surplus_parts_are_ignored() -> None:
    assert THEME_BY_ARM.input(("light", "A", 2024, "x", "y"), NoRandomness()) == 0


# -- validation ------------------------------------------------------------------------------------


def untyped(*labels: Any) -> tuple[Any, ...]:
    """What a caller without a type checker may pass."""
    return labels


COMPOSED, DECOMPOSED = "caf\u00e9", "cafe\u0301"
THOUSAND = Choice(tuple(range(1000)))


@pytest.mark.parametrize(
    ("make", "key", "quoted", "fix"),
    [
        (lambda: Choice((True, False)), "values", "true", "give a string or an integer"),
        (lambda: Choice(untyped(0.5, 1.5)), "values", "0.5", "give a string or an integer"),
        (lambda: Choice(untyped(None, None)), "values", "(missing)", "give a string or an integer"),
        (lambda: Choice(untyped(["a"], ["b"])), "values", '["a"]', "give a string or an integer"),
        (lambda: Choice(("a", "\ud800")), "values", r'"\ud800"', "control characters"),
        (lambda: Choice(("a", "b\n c")), "values", r'"b\n c"', "control characters"),
        (lambda: Choice(("a", DECOMPOSED)), "values", "cafe", "Unicode normal form C"),
        (lambda: Number(Fraction(1), Fraction(1)), "range", "1", "low below high"),
        (lambda: Choice(tuple(range(MAX_VALUES + 1))), "values", "1000001 values", "at most 1,0"),
        (lambda: Cross(Boolean(), (("x", THOUSAND), ("y", THOUSAND))), "cross", "2000000", "fewer"),
        (lambda: Cross(Boolean(), (("arm", OPEN),)), "cross.arm", '"another"', ""),
    ],
)
def test_a_domain_built_in_python_is_validated_as_one_of_a_file(
    make: Callable[[], object], key: str, quoted: str, fix: str
) -> None:
    with pytest.raises(DefinitionError) as caught:
        make()

    assert caught.value.key == key
    assert fix in caught.value.fix
    assert str(caught.value).startswith(f"{key} = ")
    assert quoted in str(caught.value)


@pytest.mark.parametrize(
    "labels",
    [
        ("a", "b" * MAX_LABEL),
        (-(1 << 53) + 1, (1 << 53) - 1),
        ("a b", COMPOSED),
        ("é", "è", "日本"),
    ],
)
def test_labels_at_the_limits_are_accepted(labels: tuple[Label, ...]) -> None:
    assert Choice(labels).labels == labels


def test_one_value_and_other_are_two_inputs() -> None:
    assert Choice(("yes",), other="no").size == 2


# -- what is fingerprinted -------------------------------------------------------------------------


def test_a_domain_has_a_canonical_form() -> None:
    assert Boolean().canonical() == {"type": "boolean"}
    assert OPEN.canonical() == {"type": "choice", "values": ["light", "dark"], "other": "another"}
    assert DEGREES.canonical() == {"type": "number", "low": "-5463/20", "high": "1000000/7"}
    assert THEME_BY_ARM.canonical() == {
        "type": "cross",
        "answer": THEME.canonical(),
        "attributes": [["arm", ["A", "B"]], ["year", [2024, 2025, 2026]]],
    }
