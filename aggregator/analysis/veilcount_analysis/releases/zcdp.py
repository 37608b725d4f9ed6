"""Zero-concentrated DP: the rho that an (epsilon, delta) allows, and what releases cost of it.

A release is rho-zCDP if the Renyi divergence of every order a > 1 is at most a rho [BS16]. Costs in
rho add up, also when each release is chosen after the results of the earlier ones, as long as the
sum stays within a budget that was fixed before [WRRW23, fully adaptive zCDP]. Discrete Gaussian
noise of variance s^2 on integers of L2 sensitivity d costs d^2 / (2 s^2) [CKS20, Thm. 4]; an
epsilon-DP release costs epsilon^2 / 2 [BS16, Prop. 1.4].
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache
from math import ceil, floor

from veilcount_shared.epsilon import EPSILON_GRAIN

RHO_GRAIN = 10**12  # rho is accounted in millionths of a millionth

_EXACT = Context(prec=60)
_STEPS = 300


def rho_of_epsilon(epsilon: Fraction) -> Fraction:
    """Return the rho of a release that is epsilon-DP."""
    return epsilon**2 / 2


def rho_budget(epsilon: Fraction, delta: Fraction) -> Fraction:
    """Return a rho that implies (epsilon, delta)-DP, rounded down to the grain."""
    return Fraction(floor(largest_rho(epsilon, delta) * RHO_GRAIN), RHO_GRAIN)


@lru_cache(maxsize=1024)
def largest_rho(epsilon: Fraction, delta: Fraction) -> Fraction:
    """Return the largest rho found that implies (epsilon, delta)-DP.

    Whatever the order a, rho-zCDP implies (epsilon, delta)-DP if

        ln delta >= (a - 1) (a rho - epsilon) - ln(a - 1) + a ln(1 - 1 / a)   [CKS20, Prop. 7]

    So each order allows a rho, all of them hold, and the largest that a search finds is returned.
    For an epsilon below delta, 2 delta^2 may be more: by Pinsker, it implies (0, delta)-DP.
    """
    above_1 = _best_order(lambda tried: _allowed(tried, epsilon, delta), delta)
    return max(Fraction(_allowed(above_1, epsilon, delta)), 2 * delta**2)


@lru_cache(maxsize=1024)
def epsilon_of_rho(rho: Fraction, delta: Fraction) -> Fraction:
    """Return the least epsilon found that rho-zCDP implies at this delta, rounded up to six places.

    It is the inequality of `largest_rho`, solved for epsilon.
    """
    above_1 = _best_order(lambda tried: -_implied(tried, rho, delta), delta)
    return Fraction(ceil(Fraction(_implied(above_1, rho, delta)) * EPSILON_GRAIN), EPSILON_GRAIN)


def _best_order(value: Callable[[Decimal], Decimal], delta: Fraction) -> Decimal:
    """Return the order, less 1, with the largest value: ternary search in its logarithm."""
    low, high = Decimal("1e-3"), 1 / (_decimal(delta) * 3)
    for _ in range(_STEPS):
        third = _EXACT.power(high / low, Decimal(1) / 3)
        one, two = low * third, high / third
        if value(one) < value(two):
            low = one
        else:
            high = two
    return low


def _allowed(above_1: Decimal, epsilon: Fraction, delta: Fraction) -> Decimal:
    """Return the rho that the order 1 + above_1 allows."""
    return _EXACT.divide(_decimal(epsilon) + _slack(above_1, delta), above_1 + 1)


def _implied(above_1: Decimal, rho: Fraction, delta: Fraction) -> Decimal:
    """Return the epsilon that the order 1 + above_1 implies."""
    return _EXACT.multiply(_decimal(rho), above_1 + 1) - _slack(above_1, delta)


def _slack(above_1: Decimal, delta: Fraction) -> Decimal:
    order = above_1 + 1
    logs = _EXACT.ln(_decimal(delta)) + _EXACT.ln(above_1) - order * _EXACT.ln(above_1 / order)
    return _EXACT.divide(logs, above_1)


def _decimal(number: Fraction) -> Decimal:
    return _EXACT.divide(Decimal(number.numerator), Decimal(number.denominator))
