"""The only source of a curator's noise: exact discrete draws by OpenDP.

OpenDP draws with exact arithmetic from the operating system's generator [CKS20], and computes with
upward rounding which epsilon or rho a scale delivers. A scale is used only if that is within what
is paid: 1 / 0.7 as a float would deliver 0.7000000000000001.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache
from math import inf, nextafter, sqrt
from typing import Any

from ..errors import NoiseUnavailable

#: adds noise of a scale to each number
NoiseSource = Callable[[Sequence[int], float], list[int]]


@lru_cache(maxsize=1024)
def calibrated_scale(sensitivity: int, epsilon: Fraction) -> float:
    """Return the least float scale, from their quotient up, whose Laplace noise keeps epsilon."""
    scale = float(sensitivity / epsilon)
    while Fraction(_laplace(scale).map(sensitivity)) > epsilon:
        scale = nextafter(scale, inf)
    return scale


@lru_cache(maxsize=1024)
def calibrated_gaussian_scale(squared_sensitivity: int, rho: Fraction) -> float:
    """Return the least float scale found whose Gaussian noise keeps rho, by L2 sensitivity."""
    sensitivity = sqrt(squared_sensitivity)
    while Fraction(sensitivity) ** 2 < squared_sensitivity:
        sensitivity = nextafter(sensitivity, inf)
    scale = sqrt(squared_sensitivity / (2 * rho))
    while Fraction(_gaussian(scale).map(sensitivity)) > rho:
        scale = nextafter(scale, inf)
    return scale


def add_noise(true: Sequence[int], scale: float) -> list[int]:
    """Return each number with exact discrete Laplace noise of this scale."""
    return [int(each) for each in _laplace(scale)(list(true))]


def add_gaussian_noise(true: Sequence[int], scale: float) -> list[int]:
    """Return each number with exact discrete Gaussian noise of this scale."""
    return [int(each) for each in _gaussian(scale)(list(true))]


def _laplace(scale: float) -> Any:
    dp = load_opendp()
    return dp.m.make_laplace(_integers(dp), dp.l1_distance(T="i64"), scale=scale)


def _gaussian(scale: float) -> Any:
    dp = load_opendp()
    distance = dp.l2_distance(T="f64")
    return dp.m.make_gaussian(_integers(dp), distance, scale=scale, MO="ZeroConcentratedDivergence")


def _integers(dp: Any) -> Any:
    dp.enable_features("contrib")
    # i64 by name: OpenDP takes Python's int for 32 bits
    return dp.vector_domain(dp.atom_domain(T="i64"))


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
