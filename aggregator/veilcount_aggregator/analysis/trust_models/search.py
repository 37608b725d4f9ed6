"""Searches over the designs that would really be used: whatever they find, they have checked."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from veilcount_shared.epsilon import EPSILON_GRAIN, EPSILON_MAX

MOST = 10**12  # devices; there are not that many
NEAR = [1 - Fraction(1, 2**power) for power in range(1, 7)]

Allowed = Callable[[Fraction], bool]


def least_epsilon(allowed: Allowed, grain: int = EPSILON_GRAIN) -> Fraction | None:
    """Return an epsilon that will do, such that one grain less does not; None if none will.

    Error falls as epsilon grows, but for small steps where designs change or reach their own floor.
    So once one is found it is asked, at a few distances below, whether less would have done.
    """
    if not allowed(EPSILON_MAX):
        return None
    found = _crossing(allowed, int(EPSILON_MAX * grain), grain)
    lower = [place for part in NEAR if (place := int(found * part)) > 0]
    while place := next((place for place in lower if allowed(Fraction(place, grain))), 0):
        found = _crossing(allowed, place, grain)
        lower = [place for part in NEAR if (place := int(found * part)) > 0]
    return Fraction(found, grain)


def _crossing(allowed: Allowed, high: int, grain: int) -> int:
    """Return one that is allowed, above one that is not, by halving from one that is."""
    low = 0
    while high - low > 1:
        middle = (low + high) // 2
        if allowed(Fraction(middle, grain)):
            high = middle
        else:
            low = middle
    return high


def fewest_devices(enough: Callable[[int], bool]) -> int | None:
    """Return the least number of devices that is enough; None if none is."""
    low, high = 0, 1
    while not enough(high):
        low, high = high, high * 2
        if high > MOST:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        if enough(middle):
            high = middle
        else:
            low = middle
    return high
