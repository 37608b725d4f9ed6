"""What several answers reveal together: exact, or rounded up. Never down.

`Fraction` in, `Fraction` out. Where a logarithm is needed, decimals of 80 digits stand in, and what
they could have lost is added to the result. `Overlap` says in exact numbers how one report tells
two inputs apart: all that a bound for one particular design has to know.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal, localcontext
from fractions import Fraction
from math import comb

from .errors import EpsilonError

_DIGITS = 80
_LOST = Decimal("1e-60")  # far above what `_DIGITS` digits lose in any sum below
_GRAIN = Decimal("1e-9")  # results are multiples of it, rounded up
MAX_ANSWERS = 10_000


def basic_composition(epsilons: Iterable[Fraction]) -> Fraction:
    """Return the plain sum: holds for any sequence, even one chosen on the way."""
    return sum(epsilons, Fraction(0))


def parallel_composition(epsilons: Iterable[Fraction]) -> Fraction:
    """Return what is left where each person answers one of several only: the largest."""
    return max(epsilons, default=Fraction(0))


def group_privacy(epsilon: Fraction, persons: int) -> Fraction:
    """Return what is promised to a group that acts, or is asked about, as one."""
    return epsilon * persons


def optimal_composition(epsilon: Fraction, answers: int, delta: Fraction) -> Fraction:
    """Return the least epsilon at which `answers` equal answers are (epsilon, delta)-DP [KOV15].

    For a number of answers fixed in advance. The exact tradeoff of the worst mechanism is
    delta(x) = sum_i C(T, i) max(0, e^((T-i) eps) - e^(x + i eps)) / (1 + e^eps)^T.
    """
    _check(epsilon, delta)
    _check_answers(answers)
    with localcontext(Context(prec=_DIGITS)):
        step, most = _decimal(epsilon), _decimal(delta)
        loss = _Tradeoff(step, answers)
        low, high = Decimal(0), step * answers
        while high - low > _GRAIN / 2:
            middle = (low + high) / 2
            if loss(middle) + _LOST <= most:
                high = middle
            else:
                low = middle
        return min(_up(high), epsilon * answers)


def guessing_probability(epsilon: Fraction, answers: int) -> Fraction:
    """Return the greatest chance to guess a yes or no, even before, from so many fresh answers.

    It is (1 + delta) / 2 with the delta that is left at epsilon 0, the distance in total variation;
    no mechanism exceeds that of the randomized bit [KOV15, Thm 3.1].
    """
    _check_epsilon(epsilon)
    _check_answers(answers)
    with localcontext(Context(prec=_DIGITS)):
        distance = _Tradeoff(_decimal(epsilon), answers)(Decimal(0)) + _LOST
        return min(_up((1 + distance) / 2), Fraction(1))


def shuffle_amplification(epsilon: Fraction, reports: int, delta: Fraction) -> Fraction:
    """Return the epsilon of reports behind an independent shuffler [FMT21, Thm 3.1].

    The bound needs epsilon <= ln(n / (16 ln(2/delta))); beyond it, and wherever it would be no
    gain, what is left is the local epsilon. It counts honest reporters only.
    """
    _check(epsilon, delta)
    with localcontext(Context(prec=_DIGITS)):
        n, small = Decimal(reports), _decimal(delta)
        local = _decimal(epsilon)
        e = local.exp()
        if e * 16 * (2 / small).ln() > n * (1 - _LOST):
            return epsilon
        spread = 8 * (e * (4 / small).ln()).sqrt() / n.sqrt() + 8 * e / n
        bound = (1 + (e - 1) / (e + 1) * spread).ln()
        return min(_up(bound + _LOST), epsilon)


@dataclass(frozen=True, slots=True)
class Overlap:
    """The sets of the two inputs that are told apart best, as shares of all messages, exactly.

    For subsets and planes every two inputs overlap alike. For windows it is the two ends; any other
    two tell less, since theirs is this law with some reports moved to where they tell nothing.
    """

    own: Fraction  # the messages that an input owns
    alone: Fraction  # those of them that the other input does not own
    P: Fraction  # the probability that a report lies in its input's set

    def __post_init__(self) -> None:
        """Refuse what is no pair of sets."""
        if not (0 < self.alone <= min(self.own, 1 - self.own) and self.own <= self.P < 1):
            raise ValueError(f"no two sets overlap like {self}")

    @property
    def ratio(self) -> Fraction:
        """How much likelier a message is for an input that owns it: at most e^epsilon."""
        return self.P * (1 - self.own) / (self.own * (1 - self.P))

    @property
    def blanket(self) -> Fraction:
        """At least this share of reports looks alike whatever the input: a uniform message each."""
        return (1 - self.P) / (1 - self.own)


class _Tradeoff:
    """delta as a function of epsilon, for T answers of one epsilon.

    A term is the probability of an outcome and the inverse of its likelihood ratio.
    """

    def __init__(self, step: Decimal, answers: int) -> None:
        e = step.exp()
        whole = (1 + e) ** answers
        self._terms = [
            (Decimal(comb(answers, i)) * e ** (answers - i) / whole, e ** (2 * i - answers))
            for i in range(answers + 1)
        ]

    def __call__(self, epsilon: Decimal) -> Decimal:
        """Return the sum of what each outcome's likelihood ratio exceeds e^epsilon by."""
        bound = epsilon.exp()
        total = Decimal(0)
        for weight, inverse in self._terms:
            gain = 1 - bound * inverse
            if gain <= 0:
                break  # the ratios fall from here on
            total += weight * gain
        return total


def _check(epsilon: Fraction, delta: Fraction) -> None:
    _check_epsilon(epsilon)
    if not Fraction(1, 10**30) <= delta < 1:
        raise ValueError(f"delta = {delta}: give at least 1e-30 and less than 1")


def _check_epsilon(epsilon: Fraction) -> None:
    if epsilon <= 0:
        raise EpsilonError(epsilon, "give a number above 0")


def _check_answers(answers: int) -> None:
    if not 1 <= answers <= MAX_ANSWERS:
        raise ValueError(f"answers = {answers}: give 1 to {MAX_ANSWERS:,}")


def _decimal(number: Fraction) -> Decimal:
    return Decimal(number.numerator) / Decimal(number.denominator)


def _up(number: Decimal) -> Fraction:
    return Fraction(number.quantize(_GRAIN, rounding=ROUND_CEILING))
