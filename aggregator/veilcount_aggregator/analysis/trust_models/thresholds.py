"""Searches over the mechanisms that would really be selected: each result was checked."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from fractions import Fraction

from veilcount_shared.epsilon import EPSILON_GRAIN, EPSILON_MAX

MOST = 10**12  # devices; there are not that many
NEAR = [1 - Fraction(1, 2**power) for power in range(1, 7)]

Allowed = Callable[[Fraction], bool]


def least_epsilon(allowed: Allowed, grain: int = EPSILON_GRAIN) -> Fraction | None:
    """Return an epsilon that will do, such that one grain less does not; None if none will.

    Error falls as epsilon grows, but for small steps where mechanisms change or reach their own
    floor. So smaller ones are tried, at a few distances below what was found.
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
    """Return one that is allowed, next to one that is not, by halving from one that is."""
    return bisect_left(range(high), True, lo=1, key=lambda step: allowed(Fraction(step, grain)))


def fewest_devices(enough: Callable[[int], bool]) -> int | None:
    """Return the least number of devices that is enough; None if none is."""
    high = 1
    while not enough(high):
        high *= 2
        if high > MOST:
            return None
    return bisect_left(range(high), True, lo=high // 2 + 1, key=enough)
