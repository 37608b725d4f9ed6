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


class NoCoins(RandomSource):
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
def test_a_label_is_its_place(choice: Choice) -> None:
    places = [choice.input(label, NoCoins()) for label in choice.labels]

    assert places == list(range(choice.size))


@pytest.mark.parametrize(("value", "place"), [(False, 0), (True, 1), (0, 0), (1, 1), (1.0, 1)])
def test_a_boolean_is_zero_or_one(value: object, place: int) -> None:
    assert Boolean().input(value, NoCoins()) == place


@pytest.mark.parametrize("value", [None, "Light", "light ", b"light", 7, ["light"]])
def test_an_unknown_choice_is_other_where_declared(value: object) -> None:
    assert OPEN.input(value, NoCoins()) == OPEN.size - 1


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
    place = number.input(value, NoCoins())

    if value in {float("inf"), -float("inf")}:
        assert place == (GRID if value > 0 else 0)
    else:
        assert place == nearest(number, Fraction(value))


@given(st.sampled_from(NUMBERS), st.integers(0, GRID))
def test_a_grid_point_is_itself(number: Number, place: int) -> None:
    step = (number.high - number.low) / GRID
    value = number.low + place * step

    assert number.input(value, NoCoins()) == place
    assert number.input(value + step * Fraction(499, 1000), NoCoins()) == place
    assert number.input(value - step * Fraction(499, 1000), NoCoins()) == place


@given(st.sampled_from(NUMBERS), st.fractions(), st.fractions())
def test_the_order_of_numbers_is_kept(number: Number, one: Fraction, two: Fraction) -> None:
    low, high = sorted((one, two))

    assert number.input(low, NoCoins()) <= number.input(high, NoCoins())


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
def test_a_number_beyond_its_range_is_clamped(value: object, place: int) -> None:
    assert MINUTES.input(value, NoCoins()) == place


@pytest.mark.parametrize(
    "value",
    [None, "12", b"12", float("nan"), Decimal("NaN"), Decimal("sNaN"), np.float64("nan"), 1j],
)
def test_what_is_no_number_is_drawn_from_the_whole_grid(value: object) -> None:
    asked: list[int] = []

    class Asked(SeededRandomSource):
        __slots__ = ()

        def below(self, n: int) -> int:
            asked.append(n)
            return 5

    assert MINUTES.input(value, Asked(0)) == 5
    assert asked == [GRID + 1]


# -- crossing --------------------------------------------------------------------------------------


def test_a_crossing_counts_in_mixed_radix_with_the_answer_highest() -> None:
    parts = [part.labels for part in THEME_BY_ARM.parts]
    combined = list(product(*parts))

    assert list(THEME_BY_ARM.labels) == combined
    assert [THEME_BY_ARM.input(value, NoCoins()) for value in combined] == list(range(18))
    assert THEME_BY_ARM.size == 3 * 2 * 3
    assert THEME_BY_ARM.input(["dark", "B", 2026], NoCoins()) == (1 * 2 + 1) * 3 + 2


@pytest.mark.parametrize("value", [("dark",), "dark", ["dark"], ("dark", None, None)])
def test_a_missing_attribute_is_drawn_on_its_own(value: object) -> None:
    drawn = enumerate_distribution(lambda randomness: THEME_BY_ARM.input(value, randomness))

    assert drawn == dict.fromkeys(range(6, 12), Fraction(1, 6))


def test_what_is_too_much_is_ignored() -> None:
    assert THEME_BY_ARM.input(("light", "A", 2024, "x", "y"), NoCoins()) == 0


# -- lists that no one could answer from -----------------------------------------------------------


def untyped(*labels: Any) -> tuple[Any, ...]:
    """What a caller without a type checker may pass."""
    return labels


COMPOSED, DECOMPOSED = "caf\u00e9", "cafe\u0301"


@pytest.mark.parametrize(
    ("make", "key", "shown", "fix"),
    [
        (lambda: Choice(()), "values", "[]", "give at least two values"),
        (lambda: Choice(("a",)), "values", '["a"]', "give at least two values"),
        (lambda: Choice(("a", 1)), "values", '["a", 1]', "give all strings or all integers"),
        (lambda: Choice((True, False)), "values", "true", "give a string or an integer"),
        (lambda: Choice(untyped(0.5, 1.5)), "values", "0.5", "give a string or an integer"),
        (lambda: Choice(untyped(None, None)), "values", "(missing)", "give a string or an integer"),
        (lambda: Choice(untyped(["a"], ["b"])), "values", '["a"]', "give a string or an integer"),
        (lambda: Choice(("a", "b", "a")), "values", '"a"', "this value is listed twice"),
        (lambda: Choice((1, 2, 2)), "values", "2", "this value is listed twice"),
        (lambda: Choice(("a", "")), "values", '""', "give 1 to 200 characters"),
        (lambda: Choice(("a", " b")), "values", '" b"', "no space around them"),
        (
            lambda: Choice(("a", "b" * (MAX_LABEL + 1))),
            "values",
            '"bbb',
            "give 1 to 200 characters",
        ),
        (lambda: Choice(("a", "b\n c")), "values", r'"b\n c"', "control characters"),
        (lambda: Choice(("a", "\ud800")), "values", r'"\ud800"', "control characters"),
        (lambda: Choice(("a", "b\u2028c")), "values", r'"b\u2028c"', "control characters"),
        (lambda: Choice(("a", "b\u202ec")), "values", r'"b\u202ec"', "control characters"),
        (lambda: Choice(("a", DECOMPOSED)), "values", "cafe", "Unicode normal form C"),
        (lambda: Choice((1, 1 << 53)), "values", str(1 << 53), "within +/- 2^53"),
        (lambda: Choice((1, -(1 << 53))), "values", str(-(1 << 53)), "within +/- 2^53"),
        (lambda: Choice(("a", "b"), other="a"), "other", '"a"', "not in values"),
        (lambda: Choice(("a", "b"), other=""), "other", '""', "give 1 to 200 characters"),
        (lambda: Number(Fraction(1), Fraction(1)), "range", "1", "low below high"),
        (lambda: Number(Fraction(2), Fraction(1)), "range", "2", "low below high"),
        (
            lambda: Choice(tuple(range(MAX_VALUES + 1))),
            "values",
            "1000001 values",
            "at most 1,000,000 are possible",
        ),
        (
            lambda: Cross(
                Boolean(), (("x", Choice(tuple(range(1000)))), ("y", Choice(tuple(range(1000)))))
            ),
            "cross",
            "2000000",
            "cross fewer attributes",
        ),
    ],
)
def test_a_bad_list_is_refused_with_key_value_and_fix(
    make: Callable[[], object], key: str, shown: str, fix: str
) -> None:
    with pytest.raises(DefinitionError) as refused:
        make()

    assert refused.value.key == key
    assert fix in refused.value.fix
    assert f"{key} = " in str(refused.value)
    assert shown in str(refused.value)
    assert fix in str(refused.value)


@pytest.mark.parametrize(
    "labels",
    [
        ("a", "b" * MAX_LABEL),
        (-(1 << 53) + 1, (1 << 53) - 1),
        ("a b", COMPOSED),
        ("é", "è", "日本"),
    ],
)
def test_a_good_list_is_taken(labels: tuple[Label, ...]) -> None:
    assert Choice(labels).labels == labels


def test_one_value_and_other_are_two_answers() -> None:
    assert Choice(("yes",), other="no").size == 2


# -- what is fingerprinted -------------------------------------------------------------------------


def test_a_domains_canonical_form_says_all_that_matters() -> None:
    assert Boolean().canonical() == {"type": "boolean"}
    assert OPEN.canonical() == {"type": "choice", "values": ["light", "dark"], "other": "another"}
    assert DEGREES.canonical() == {"type": "number", "low": "-5463/20", "high": "1000000/7"}
    assert THEME_BY_ARM.canonical() == {
        "type": "cross",
        "answer": THEME.canonical(),
        "attributes": [
            ["arm", ["A", "B"]],
            ["year", [2024, 2025, 2026]],
        ],
    }


def test_a_crossed_attribute_has_no_other() -> None:
    """The canonical form lists its values alone, so a catch-all would be invisible there."""
    with pytest.raises(DefinitionError, match=r"cross\.arm = \"another\""):
        Cross(Boolean(), (("arm", Choice(("A", "B"), other="another")),))
