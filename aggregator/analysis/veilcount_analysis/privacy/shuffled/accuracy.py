"""The error of a figure of a shuffled batch: the devices' noise, and that of the covers.

The expectation of the covers is subtracted; what they vary by stays. It is m times the variance of
one, divided by n^2: about as much as the devices' noise at n = 1,000, and less and less of it.
"""

from __future__ import annotations

from math import sqrt

from veilcount_shared.mechanisms import Randomizer

from ...mechanisms import handler_of


def shuffled_error(mechanism: Randomizer, n: int, covers: int) -> float:
    """Return the standard error of a cohort's figure, of a share where all are equal."""
    handler = handler_of(mechanism)
    return sqrt(handler.noise_variance() / n + covers * handler.cover_variance() / n**2)
