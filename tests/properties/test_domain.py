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

from veilcount_client.testing import SeededRandomSource
from veilcount_shared.domain import (
    GRID,
    MAX_LABEL,
    MAX_VALUES,
    Boolean,
    Choice,
    Cross,
    Domain,
    Number,
)
from veilcount_shared.errors import DefinitionError
from veilcount_shared.randomness import RandomSource

from ..enumeration import enumerate_distribution
from .hostile_values import ODD

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


# -- labels ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("domain", "values", "places"),
    [
        (THEME, THEME.labels, [0, 1, 2]),
        (YEARS, (2024, 2025.0, Fraction(2026)), [0, 1, 2]),
        (OPEN, (*OPEN.labels, None, "Light", b"light", 7, ["light"]), [0, 1, 2, 2, 2, 2, 2, 2]),
        (Choice(("yes",), other="no"), ("yes", "no", 1), [0, 1, 1]),
        (Boolean(), (False, True, 0, 1, 1.0, np.bool_(1)), [0, 1, 0, 1, 1, 1]),
        (Choice((0, 1), other="none"), (0, 1.0, True, False, np.bool_(1)), [0, 1, 2, 2, 2]),
    ],
    ids=["strings", "numbers", "other", "one value and other", "boolean", "true is not 1"],
)
def test_a_label_is_its_index_and_any_other_value_is_other_where_declared(
    domain: Boolean | Choice, values: tuple[object, ...], places: list[int]
) -> None:
    assert [domain.input(value, NoRandomness()) for value in values] == places


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
        (241, GRID),
        (10**400, GRID),
        (-float("inf"), 0),
        (Decimal("1e1000000"), GRID),
        (Decimal("-Infinity"), 0),
        (np.float64(60), GRID // 4),
        (np.int64(60), GRID // 4),
        (Decimal(180), GRID // 4 * 3),
    ],
)
def test_a_number_of_any_type_is_clamped(value: object, place: int) -> None:
    assert MINUTES.input(value, NoRandomness()) == place


@pytest.mark.parametrize(
    "value",
    [
        *(None, "12", b"12", 1j, True, False, np.bool_(1), np.array(1.0)),
        *(float("nan"), Decimal("NaN"), Decimal("sNaN"), np.float64("nan")),
    ],
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
    combined = list(product(*(part.labels for part in THEME_BY_ARM.parts)))
    surplus = ["dark", "B", 2026, "surplus"]

    assert list(THEME_BY_ARM.labels) == combined
    assert [THEME_BY_ARM.input(value, NoRandomness()) for value in combined] == [*range(18)]
    assert THEME_BY_ARM.input(surplus, NoRandomness()) == (1 * 2 + 1) * 3 + 2


@pytest.mark.parametrize("value", [("dark",), "dark", ["dark"], ("dark", None, None)])
def test_a_missing_attribute_is_drawn_on_its_own(value: object) -> None:
    drawn = enumerate_distribution(lambda randomness: THEME_BY_ARM.input(value, randomness))

    assert drawn == dict.fromkeys(range(6, 12), Fraction(1, 6))


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
        (lambda: Choice(untyped(["a"], ["b"])), "values", '["a"]', "give a string or an integer"),
        (lambda: Choice(("a", "\ud800")), "values", r'"\ud800"', "control characters"),
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


def test_labels_at_the_limits_are_accepted() -> None:
    texts, numbers = ("a b", "b" * MAX_LABEL, COMPOSED, "\u00e8"), (-(1 << 53) + 1, (1 << 53) - 1)

    assert (Choice(texts).labels, Choice(numbers).labels) == (texts, numbers)


# -- what is fingerprinted -------------------------------------------------------------------------
