"""Where decreasing functions become 0, all of an array at once, by Chandrupatla's method [Cha97].

Inverse quadratic interpolation where it is safe, else a bisection: a smooth function takes some
seven steps, one with jumps as many as a bisection.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .confidence_intervals import Ends, Floats

TOLERANCE = 1e-6
MOST_STEPS = 80  # a bisection of 0 to 37 takes 26


def last_positive(
    function: Callable[[Floats], Floats], low: Floats, high: Floats, values: Ends
) -> Floats:
    """Return the last argument, row by row, at which the function is above 0, to TOLERANCE.

    `values` are those at both ends: above 0 at the lower, at most 0 at the upper. A row that is
    settled is asked for at 0 again and again, where it costs nothing.
    """
    newest, other, previous = low.copy(), high.copy(), high.copy()
    at_newest, at_other, at_previous = values[0].copy(), values[1].copy(), values[1].copy()
    step = np.full(len(low), 0.5)
    for _ in range(MOST_STEPS):
        is_open = np.abs(newest - other) > TOLERANCE
        if not is_open.any():
            break
        tried = newest + step * (other - newest)
        value = function(np.where(is_open, tried, 0.0))
        same = (value > 0) == (at_newest > 0)
        pairs = (
            (newest, other, previous, tried),
            (at_newest, at_other, at_previous, value),
        )
        for new, old, third, now in pairs:
            third[is_open] = np.where(same, new, old)[is_open]
            old[is_open] = np.where(same, old, new)[is_open]
            new[is_open] = now[is_open]
        step = _step((newest, other, previous), (at_newest, at_other, at_previous))
    return np.where(at_newest > 0, newest, other)


Points = tuple[Floats, Floats, Floats]


def _step(points: Points, values: Points) -> Floats:
    """Return how far to go from the newest point to the other end, as a part of the way."""
    (newest, other, previous), (at_newest, at_other, at_previous) = points, values
    with np.errstate(all="ignore"):  # a row that is settled, or flat, is bisected
        place = (newest - other) / (previous - other)
        height = (at_newest - at_other) / (at_previous - at_other)
        reach = (previous - newest) / (other - newest)
        to_other = at_newest / (at_other - at_newest) * at_previous / (at_other - at_previous)
        to_previous = at_newest / (at_previous - at_newest) * at_other / (at_previous - at_other)
        safe = (height**2 < place) & ((1 - height) ** 2 < 1 - place)
        step = np.where(safe, to_other + reach * to_previous, 0.5)
        least = TOLERANCE / 2 / np.maximum(np.abs(other - newest), TOLERANCE)
        clipped: Floats = np.clip(np.nan_to_num(step, nan=0.5), least, 1 - least)
    return clipped
