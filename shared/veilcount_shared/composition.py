"""Privacy accounting: composition, group privacy and amplification; exact or rounded up.

`Fraction` in, `Fraction` out. Where a logarithm is needed, decimals of 80 digits stand in, and what
they could have lost is added to the result. `Overlap` holds the exact transition probabilities
that a mechanism-specific bound needs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal, localcontext
from fractions import Fraction

from .errors import EpsilonError

_DIGITS = 80
_ROUNDING_ERROR = Decimal("1e-60")  # far above what `_DIGITS` digits lose in any sum below
_GRAIN = Decimal("1e-9")  # results are multiples of it, rounded up
MAX_ANSWERS = 10_000


def basic_composition(epsilons: Iterable[Fraction]) -> Fraction:
    """Return the plain sum, which also holds for adaptive sequences."""
    return sum(epsilons, Fraction(0))


def parallel_composition(epsilons: Iterable[Fraction]) -> Fraction:
    """Return the largest epsilon: each person answers one collection, whatever the answer is."""
    return max(epsilons, default=Fraction(0))


def group_privacy(epsilon: Fraction, persons: int) -> Fraction:
    """Return the epsilon of a group of persons."""
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
            if loss(middle) + _ROUNDING_ERROR <= most:
                high = middle
            else:
                low = middle
        return min(_up(high), epsilon * answers)


def guessing_probability(epsilon: Fraction, answers: int) -> Fraction:
    """Return the largest probability of guessing a bit, at even prior odds, from fresh answers.

    It is (1 + delta) / 2 with the delta that is left at epsilon 0, the distance in total variation;
    no mechanism exceeds that of the randomized bit [KOV15, Thm 3.1].
    """
    _check_epsilon(epsilon)
    _check_answers(answers)
    with localcontext(Context(prec=_DIGITS)):
        distance = _Tradeoff(_decimal(epsilon), answers)(Decimal(0)) + _ROUNDING_ERROR
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
        if e * 16 * (2 / small).ln() > n * (1 - _ROUNDING_ERROR):
            return epsilon
        spread = 8 * (e * (4 / small).ln()).sqrt() / n.sqrt() + 8 * e / n
        bound = (1 + (e - 1) / (e + 1) * spread).ln()
        return min(_up(bound + _ROUNDING_ERROR), epsilon)


@dataclass(frozen=True, slots=True)
class Overlap:
    """The two most distinguishable inputs: the sets of messages each favours, as exact shares.

    For subsets and planes every two inputs overlap alike. For windows it is the two ends; any other
    two are less distinguishable: theirs is this distribution with some reports made uninformative.
    """

    own: Fraction  # the messages of an input's set
    alone: Fraction  # those of them outside the other input's set
    P: Fraction  # the probability that a report lies in its input's set

    def __post_init__(self) -> None:
        if not (0 < self.alone <= min(self.own, 1 - self.own) and self.own <= self.P < 1):
            raise ValueError(f"no two sets overlap like {self}")

    @property
    def ratio(self) -> Fraction:
        """The likelihood ratio of a message of an input's set: at most e^epsilon."""
        return self.P * (1 - self.own) / (self.own * (1 - self.P))

    @property
    def blanket(self) -> Fraction:
        """The privacy blanket: the share of reports that are uniform whatever the input."""
        return (1 - self.P) / (1 - self.own)


class _Tradeoff:
    """delta as a function of epsilon, for T answers of one epsilon.

    A term is the probability of an outcome and the inverse of its likelihood ratio.
    """

    def __init__(self, step: Decimal, answers: int) -> None:
        e = step.exp()
        weight, inverse = (e / (1 + e)) ** answers, e**-answers
        self._terms = [(weight, inverse)]
        for i in range(answers):  # each from the one before: linear, at T roundings of 80 digits
            weight, inverse = weight * (answers - i) / ((i + 1) * e), inverse * e * e
            self._terms.append((weight, inverse))

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
