"""Epsilon is exact: what cannot be claimed is refused, and e^epsilon is never rounded up."""

from __future__ import annotations

from decimal import Context, Decimal, localcontext
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from veilcount_shared import epsilon as epsilon_module
from veilcount_shared.epsilon import (
    EPSILON_MAX,
    EXP_BITS,
    exp_lower,
    exp_upper,
    parse_epsilon,
    parse_exact,
    satisfies,
    threshold,
)
from veilcount_shared.errors import EpsilonError, InexactError, VeilcountError
from veilcount_shared.randomness import WORDS

ONE = Fraction(1)
MILLIONTH = Fraction(1, 10**6)
CLAIMABLE = st.integers(1, 16 * 10**6).map(lambda millionths: millionths * MILLIONTH)


def floor_exp(epsilon: Fraction) -> Fraction:
    """floor(2^96 e^epsilon) / 2^96 by 60 decimal digits, of which at most 36 are needed."""
    with localcontext(Context(prec=60)):
        e = (Decimal(epsilon.numerator) / Decimal(epsilon.denominator)).exp()
        return Fraction(int(e * 2**EXP_BITS), 2**EXP_BITS)


# -- the exponential -------------------------------------------------------------------------------


@given(CLAIMABLE)
@example(MILLIONTH)
@example(ONE)
@example(EPSILON_MAX)
def test_exp_lower_is_e_to_epsilon_truncated_after_96_bits(epsilon: Fraction) -> None:
    floor = floor_exp(epsilon)

    assert exp_lower(epsilon) == floor
    assert exp_upper(epsilon) == floor + Fraction(1, 2**EXP_BITS)


@pytest.mark.parametrize("bits", range(0, 11, 3))
def test_the_series_is_not_left_too_early(bits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """At a coarse grain, where few terms are added, a bound that is too low shows."""
    monkeypatch.setattr(epsilon_module, "EXP_BITS", bits)
    epsilons = [Fraction(step, 100) for step in range(1, 500)]
    floors = [int(Decimal(step).scaleb(-2).exp() * 2**bits) for step in range(1, 500)]

    assert [exp_lower.__wrapped__(e) * 2**bits for e in epsilons] == floors


# -- what can be claimed ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "meant"),
    [("0.7", Fraction(7, 10)), ("7/10", Fraction(7, 10)), ("1e-6", MILLIONTH), (16, EPSILON_MAX)],
)
def test_a_number_means_what_is_written(written: int | str, meant: Fraction) -> None:
    assert parse_epsilon(written) == parse_epsilon(meant) == meant


@pytest.mark.parametrize("number", [0.7, 1.0, float("nan"), float("inf"), True, False])
def test_a_float_and_a_bool_are_refused(number: float) -> None:
    with pytest.raises(
        InexactError, match=r"not exact: write an int, a Fraction or a string"
    ) as it:
        parse_exact(number)  # type: ignore[arg-type] # the point

    assert it.value.number is number
    assert isinstance(it.value, TypeError)
    assert isinstance(it.value, VeilcountError)


@pytest.mark.parametrize(
    ("number", "problem"),
    [
        *((number, "above 0 and at most 16") for number in ("-0", "-1", Fraction(-1, 2))),
        *((number, "above 0 and at most 16") for number in ("16.000001", 10**400)),
        *((number, "give at most six decimals") for number in ("0.0000001", Fraction(1, 7))),
        ("16.5", r"^epsilon = 16\.5: "),
    ],
)
def test_an_epsilon_out_of_range_or_too_fine_is_refused(
    number: int | str | Fraction, problem: str
) -> None:
    with pytest.raises(EpsilonError, match=problem) as caught:
        parse_epsilon(number)

    assert caught.value.epsilon == Fraction(number)
    assert len(str(caught.value)) < 200
    assert isinstance(caught.value, VeilcountError)


# -- thresholds ------------------------------------------------------------------------------------


SETS = st.integers(2, 1 << 22).flatmap(
    lambda messages: st.tuples(st.integers(1, messages - 1), st.just(messages))
)


@given(CLAIMABLE, SETS)
def test_a_threshold_is_the_largest_that_keeps_epsilon(
    epsilon: Fraction, sets: tuple[int, int]
) -> None:
    a = threshold(epsilon, *sets)

    assert satisfies(a, epsilon, *sets)
    assert not satisfies(a + 1, epsilon, *sets)


@given(CLAIMABLE, SETS, st.integers(0, WORDS))
def test_the_integer_check_is_the_ratio_of_the_two_levels(
    epsilon: Fraction, sets: tuple[int, int], a: int
) -> None:
    """1 <= (P / r) / ((1 - P) / (M - r)) <= e^epsilon, written with Fractions."""
    r, messages = sets
    outside = Fraction(WORDS - a, messages - r)
    expected = 0 < a < WORDS and 1 <= Fraction(a, r) / outside <= exp_lower(epsilon)

    assert satisfies(a, epsilon, r, messages) == expected


@pytest.mark.parametrize(
    ("a", "r"),
    [
        *((a, 1) for a in (-1, 0, WORDS, WORDS + 1)),  # P = 0 and P = 1 reveal everything
        *((1 << 63, r) for r in (0, 2, 3, -1)),  # a set that is empty, or everything
        *((0, 0), (WORDS, 2)),  # both
    ],
)
def test_a_sure_outcome_or_an_empty_or_full_set_never_satisfies_epsilon(a: int, r: int) -> None:
    assert not satisfies(a, ONE, r, 2)


def test_the_bounds_themselves_are_within_epsilon() -> None:
    """e^epsilon and 1; among 2^64 messages a set of one word is as likely as the rest."""
    bound, fair = exp_lower(ONE), WORDS // 2
    inside, outside = bound.denominator, bound.numerator

    assert satisfies(fair, ONE, inside, inside + outside)
    assert not satisfies(fair, ONE, inside, inside + outside + 1)
    assert satisfies(fair, ONE, 1, 2)
    assert not satisfies(fair - 1, ONE, 1, 2)
    assert satisfies(1, ONE, 1, WORDS)
    assert not satisfies(1, ONE, 1, WORDS - 1)


def test_a_threshold_below_one_word_is_refused() -> None:
    with pytest.raises(EpsilonError, match=r"no threshold exists for 1 of"):
        threshold(Fraction(1), 1, 1 << 80)
