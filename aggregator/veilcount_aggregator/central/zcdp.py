"""Zero-concentrated DP: the rho that an (epsilon, delta) allows, and what releases cost of it.

A release is rho-zCDP if the Renyi divergence of every order a > 1 is at most a rho [BS16]. Costs in
rho add up, also when each release is chosen after the results of the earlier ones, as long as the
sum stays within a budget that was fixed before [WRRW23, fully adaptive zCDP]. Discrete Gaussian
noise of variance s^2 on integers of L2 sensitivity d costs d^2 / (2 s^2) [CKS20, Thm. 4]; an
epsilon-DP release costs epsilon^2 / 2 [BS16, Prop. 1.4].
"""

from __future__ import annotations

from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache
from math import floor

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
    low, high = Decimal("1e-3"), 1 / (_decimal(delta) * 3)  # of a - 1; ternary search in its log
    for _ in range(_STEPS):
        third = _EXACT.power(high / low, Decimal(1) / 3)
        one, two = low * third, high / third
        if _allowed(one, epsilon, delta) < _allowed(two, epsilon, delta):
            low = one
        else:
            high = two
    return max(Fraction(_allowed(low, epsilon, delta)), 2 * delta**2)


def _allowed(above_1: Decimal, epsilon: Fraction, delta: Fraction) -> Decimal:
    """Return the rho that the order 1 + above_1 allows."""
    order = above_1 + 1
    logs = _EXACT.ln(_decimal(delta)) + _EXACT.ln(above_1) - order * _EXACT.ln(above_1 / order)
    return _EXACT.divide(_decimal(epsilon) + logs / above_1, order)


def _decimal(number: Fraction) -> Decimal:
    return _EXACT.divide(Decimal(number.numerator), Decimal(number.denominator))
