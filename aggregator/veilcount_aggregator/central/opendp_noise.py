"""The only source of a curator's noise: exact discrete Laplace draws by OpenDP.

OpenDP draws with exact arithmetic from the operating system's generator [CKS20], and computes with
upward rounding which epsilon a scale delivers. A scale is used only if that epsilon is within the
one paid for: 1 / 0.7 as a float would deliver 0.7000000000000001.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache
from math import inf, nextafter
from typing import Any

from ..errors import NoiseUnavailable

#: adds noise of a scale to each number
NoiseSource = Callable[[Sequence[int], float], list[int]]


@lru_cache(maxsize=1024)
def calibrated_scale(sensitivity: int, epsilon: Fraction) -> float:
    """Return the least float scale, from their quotient up, that keeps epsilon."""
    scale = float(sensitivity / epsilon)
    while Fraction(_mechanism(scale).map(sensitivity)) > epsilon:
        scale = nextafter(scale, inf)
    return scale


def add_noise(true: Sequence[int], scale: float) -> list[int]:
    """Return each number with exact discrete Laplace noise of this scale."""
    return [int(each) for each in _mechanism(scale)(list(true))]


def _mechanism(scale: float) -> Any:
    dp = load_opendp()
    dp.enable_features("contrib")
    # i64 by name: OpenDP takes Python's int for 32 bits
    numbers = dp.vector_domain(dp.atom_domain(T="i64"))
    return dp.m.make_laplace(numbers, dp.l1_distance(T="i64"), scale=scale)


def load_opendp() -> Any:
    """Return OpenDP, or refuse where the extra is not installed."""
    try:
        import opendp.prelude as dp  # noqa: PLC0415 - large, and needed for releases only
    except ModuleNotFoundError as missing:
        raise NoiseUnavailable(
            "central noise is drawn by OpenDP, which is not installed: pip install"
            " 'veilcount[central]'"
        ) from missing
    return dp
