"""Exact epsilon in Fractions and integers, rounded so that the claim always holds.

The pieces: `exp_lower`, a rational just below e^epsilon; `threshold`, the integer `a` of a
two-level mechanism; `satisfies`, the check of that integer, which both device and server run on
every definition.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from numbers import Rational

from .errors import EpsilonError, InexactError
from .randomness import WORDS

EPSILON_MAX = Fraction(16)
EPSILON_GRAIN = 10**6  # epsilons are multiples of one millionth, so every exponential stays small
EXP_BITS = 96


def parse_exact(number: int | str | Fraction) -> Fraction:
    """Return a number exactly, or refuse it: a float is not the number that was written."""
    if isinstance(number, bool) or not isinstance(number, Rational | str):
        raise InexactError(number)
    try:
        return Fraction(number)
    except (ValueError, ZeroDivisionError) as error:
        raise InexactError(number) from error


def parse_epsilon(number: int | str | Fraction) -> Fraction:
    """Return an epsilon that can be claimed: above 0, at most 16, in millionths."""
    epsilon = parse_exact(number)
    if not 0 < epsilon <= EPSILON_MAX:
        raise EpsilonError(epsilon, f"give a number above 0 and at most {EPSILON_MAX}")
    if EPSILON_GRAIN % epsilon.denominator:
        raise EpsilonError(epsilon, "give at most six decimals")
    return epsilon


@lru_cache(maxsize=1024)
def exp_lower(epsilon: Fraction) -> Fraction:
    """Return floor(2^96 e^epsilon) / 2^96.

    Partial sums of the Taylor series only grow, and what is missing after term n is below twice
    that term once n >= 2 epsilon. Terms are added until the sum and its upper bound have the same
    floor; they must, since e^epsilon is irrational for a rational epsilon > 0 [Hermite-Lindemann].
    """
    term = total = Fraction(1)
    n = 0
    while True:
        n += 1
        term = term * epsilon / n
        total += term
        if n >= 2 * epsilon and _floor_bits(total) == _floor_bits(total + 2 * term):
            return Fraction(_floor_bits(total), 1 << EXP_BITS)


def exp_upper(epsilon: Fraction) -> Fraction:
    """Return the next multiple of 2^-96 above `exp_lower`: above e^epsilon."""
    return exp_lower(epsilon) + Fraction(1, 1 << EXP_BITS)


def _floor_bits(number: Fraction) -> int:
    return (number.numerator << EXP_BITS) // number.denominator


def threshold(epsilon: Fraction, r: int, messages: int) -> int:
    """Return the largest `a` that keeps epsilon: r of the messages have P = a/2^64 together."""
    weight = exp_lower(epsilon) * r
    a = int(WORDS * weight / (weight + messages - r))  # int() is the floor: all is positive
    if not satisfies(a, epsilon, r, messages):
        raise EpsilonError(epsilon, f"no threshold exists for {r} of {messages} messages")
    return a


def satisfies(a: int, epsilon: Fraction, r: int, messages: int) -> bool:
    """Whether (r, messages, a) is epsilon-LDP and points the right way, in integers.

    A message inside the set has probability a / (2^64 r), one outside (2^64 - a) / (2^64 (M - r)).
    Their ratio must lie in [1, e^epsilon] [README: the two-level mechanism].
    """
    if not (0 < a < WORDS and 0 < r < messages):
        return False
    inside, outside = a * (messages - r), r * (WORDS - a)
    bound = exp_lower(epsilon)
    return outside <= inside and inside * bound.denominator <= bound.numerator * outside
