"""The other way round: how loud each device may answer for a given guarantee of the whole batch."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import nextafter

from veilcount_shared.epsilon import EPSILON_MAX, exp_upper
from veilcount_shared.mechanisms import Randomizer

from ...mechanisms import handler_of
from .blanket import blanket_delta
from .clones import clones_delta

Family = Callable[[Fraction], Randomizer]
GRAIN = 1000  # local epsilons are tried in thousandths


def keeps_epsilon(mechanism: Randomizer, reports: int, epsilon: Fraction, delta: Fraction) -> bool:
    """Whether the shuffled batch is (epsilon, delta)-DP, by the blanket or by the clones."""
    if mechanism.epsilon <= epsilon:
        return True
    if reports < 2:  # noqa: PLR2004 - alone
        return False
    at = nextafter(float(epsilon), 0)
    if blanket_delta(handler_of(mechanism).overlaps(), reports, at) <= delta:
        return True
    ratio = nextafter(float(exp_upper(mechanism.epsilon)), float("inf"))
    return clones_delta(ratio, reports, at) <= delta


def largest_local_epsilon(
    family: Family,
    reports: int | Callable[[Fraction], int],
    epsilon: Fraction,
    delta: Fraction,
) -> Fraction:
    """Return a local epsilon that keeps the batch's, such that a thousandth more does not.

    Of so many reports, or of as many as that local epsilon would need: the louder each, the fewer
    and the worse hidden. At least the batch's own epsilon: a shuffler never costs.
    """
    low = int(epsilon * GRAIN)
    high = int(EPSILON_MAX * GRAIN) + 1
    while high - low > 1:
        middle = (low + high) // 2
        local = Fraction(middle, GRAIN)
        needed = reports if isinstance(reports, int) else reports(local)
        if keeps_epsilon(family(local), needed, epsilon, delta):
            low = middle
        else:
            high = middle
    return max(epsilon, Fraction(low, GRAIN))
