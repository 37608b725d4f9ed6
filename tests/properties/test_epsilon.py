"""Epsilon is exact: what cannot be claimed is refused, and e^epsilon is never rounded up."""

from __future__ import annotations

from decimal import Context, Decimal, localcontext
from fractions import Fraction

import pytest
from hypothesis import given
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
def test_exp_lower_is_e_to_epsilon_truncated_after_96_bits(epsilon: Fraction) -> None:
    assert exp_lower(epsilon) == floor_exp(epsilon)


@pytest.mark.parametrize("written", ["0.000001", "0.1", "0.7", "1", "2", "8", "15.999999", "16"])
def test_exp_lower_at_the_ends_and_at_usual_epsilons(written: str) -> None:
    assert exp_lower(Fraction(written)) == floor_exp(Fraction(written))


@pytest.mark.parametrize(
    ("epsilon", "bits"), [("1", 0x2B7E151628AED2A6ABF715880), ("1.5", 0x47B4FF993F15055F6E4658D43)]
)
def test_the_exponential_is_pinned_to_its_last_bit(epsilon: str, bits: int) -> None:
    assert exp_lower(Fraction(epsilon)) == Fraction(bits, 2**96)


@pytest.mark.parametrize("bits", range(11))
def test_the_series_is_not_left_too_early(bits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """At a coarse grain, where few terms are added, a bound that is too low shows."""
    monkeypatch.setattr(epsilon_module, "EXP_BITS", bits)
    epsilons = [Fraction(step, 100) for step in range(1, 500)]
    floors = [int(Decimal(step).scaleb(-2).exp() * 2**bits) for step in range(1, 500)]

    assert [exp_lower.__wrapped__(e) * 2**bits for e in epsilons] == floors


@given(CLAIMABLE)
def test_exp_upper_is_above_by_one_grain(epsilon: Fraction) -> None:
    assert exp_upper(epsilon) - exp_lower(epsilon) == Fraction(1, 2**EXP_BITS)
    assert exp_upper(epsilon) > floor_exp(epsilon)


# -- what can be claimed ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "meant"),
    [("0.7", Fraction(7, 10)), (1, Fraction(1)), ("7/10", Fraction(7, 10)), ("1e-6", MILLIONTH)],
)
def test_a_number_means_what_is_written(written: int | str, meant: Fraction) -> None:
    assert parse_epsilon(written) == meant
    assert parse_epsilon(meant) == meant


@pytest.mark.parametrize("number", [0.7, 1.0, float("nan"), float("inf"), True, False])
def test_a_float_and_a_bool_are_refused(number: float) -> None:
    with pytest.raises(
        InexactError, match=r"not exact: write an int, a Fraction or a string"
    ) as it:
        parse_exact(number)  # type: ignore[arg-type] # the point

    assert it.value.number is number
    assert isinstance(it.value, TypeError)


@pytest.mark.parametrize(
    ("number", "problem"),
    [
        *((number, "above 0 and at most 16") for number in (0, "-0", "-1", -1, Fraction(-1, 2))),
        *((number, "above 0 and at most 16") for number in ("16.000001", 17, 10**400)),
        *((number, "give at most six decimals") for number in ("0.0000001", "1.2345678")),
        *((Fraction(1, n), "give at most six decimals") for n in (3, 7)),
    ],
)
def test_an_epsilon_out_of_range_or_too_fine_is_refused(
    number: int | str | Fraction, problem: str
) -> None:
    with pytest.raises(EpsilonError, match=problem) as caught:
        parse_epsilon(number)

    assert caught.value.epsilon == Fraction(number)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("epsilon", [MILLIONTH, EPSILON_MAX, Fraction("1.234567")])
def test_the_ends_of_the_range_can_be_claimed(epsilon: Fraction) -> None:
    assert parse_epsilon(epsilon) == epsilon


def test_the_message_shows_the_number_as_it_was_written() -> None:
    with pytest.raises(EpsilonError, match=r"^epsilon = 16\.5: "):
        parse_epsilon("16.5")


def test_every_refusal_is_a_veilcount_error() -> None:
    assert issubclass(EpsilonError, VeilcountError)
    assert issubclass(InexactError, VeilcountError)


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


def test_one_word_among_as_many_messages_satisfies_epsilon() -> None:
    """Among 2^64 messages a set of one that has P = 1 / 2^64 is as likely as the rest."""
    assert satisfies(1, ONE, 1, WORDS)
    assert not satisfies(1, ONE, 1, WORDS - 1)


def test_the_bound_itself_is_within_epsilon() -> None:
    bound = exp_lower(ONE)
    inside, outside = bound.denominator, bound.numerator

    assert satisfies(WORDS // 2, ONE, inside, inside + outside)
    assert not satisfies(WORDS // 2, ONE, inside, inside + outside + 1)


def test_a_set_less_likely_than_the_rest_is_refused() -> None:
    fair = WORDS // 2

    assert satisfies(fair, Fraction(1), 1, 2)
    assert not satisfies(fair - 1, Fraction(1), 1, 2)
    assert not satisfies(WORDS - threshold(Fraction(1), 1, 2), Fraction(1), 1, 2)


def test_a_threshold_below_one_word_is_refused() -> None:
    with pytest.raises(EpsilonError, match=r"no threshold exists for 1 of"):
        threshold(Fraction(1), 1, 1 << 80)
