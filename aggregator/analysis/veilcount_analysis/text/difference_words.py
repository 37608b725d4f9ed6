"""Differences in words: their ranges, and the size that would have been seen.

What is stated with a frequency is rounded outwards: the sentence holds as often as the interval
does, and what it says would have been seen is never smaller than that.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, floor, inf, log10

from .number_format import frequency, in_unit

LEAST, MOST = 100, 10**6  # of how many a share is written as a whole number
GRAINS = 3  # such numbers in a size, at least: rounding adds a third at most
DIGITS = 2  # of a mean's range
POWER = 0.8


def ends(low: float, high: float, *, of_shares: bool) -> str:
    """Return the ends of a range: of shares in whole numbers of 100, or of more where 0 is near."""
    if of_shares:
        near = max(low, -high)
        base = _base(near, 1) if near > 0 else _base(max(high, -low), GRAINS)
        return f"{floor(low * base):,} to {ceil(high * base):,} of {base:,}"
    places = _places(high - low)
    return f"{_decimal(low, places, floor)} to {_decimal(high, places, ceil)}"


def direction(low: float, high: float, *, of_shares: bool, unit: str | None = None) -> str:
    """Return a range without 0 as what the first is of the second: 3 to 9 of 100 higher."""
    amount = ends(max(low, -high), max(high, -low), of_shares=of_shares)
    return f"{in_unit(amount, unit)} {'higher' if low >= 0 else 'lower'}"


def would_have_been_seen(size: float, *, of_shares: bool, unit: str | None = None) -> str:
    """Return in words which difference would have been seen, and how often; infinite: none."""
    often = frequency(POWER)
    if size == inf:
        return f"none would have been seen {often}"
    base = _base(size, GRAINS)
    least = _decimal(size, _places(size), ceil)
    amount = f"{ceil(size * base):,} of {base:,}" if of_shares else in_unit(least, unit)
    return f"one of {amount} would have been seen {often}"


def _base(share: float, grains: int) -> int:
    """Return the least of 100, 1,000, ... of which a share is so many."""
    return min(max(LEAST, 10 ** ceil(log10(grains / share))), MOST) if share > 0 else LEAST


def _places(size: float) -> int:
    return max(DIGITS - 1 - floor(log10(size)), 0) if size > 0 else DIGITS


def _decimal(number: float, places: int, towards: Callable[[float], int]) -> str:
    return f"{towards(number * 10**places) / 10**places:,.{places}f}"
