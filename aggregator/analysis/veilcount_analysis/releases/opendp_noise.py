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

from veilcount_shared.installing import install

from ..errors import NoiseUnavailable

#: selects the place of the largest score, with noise of a scale
Selector = Callable[[Sequence[int], float], int]

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
    return [int(number) for number in _laplace(scale)(list(true))]


def add_gaussian_noise(true: Sequence[int], scale: float) -> list[int]:
    """Return each number with exact discrete Gaussian noise of this scale."""
    return [int(number) for number in _gaussian(scale)(list(true))]


@lru_cache(maxsize=1024)
def calibrated_selection_scale(
    sensitivity: int, cost: Fraction, *, monotonic: bool, concentrated: bool
) -> float:
    """Return the least float scale found whose noisy max keeps epsilon, or rho if concentrated."""
    reach = sensitivity * (1 if monotonic else 2)
    scale = reach / sqrt(8 * cost) if concentrated else float(reach / cost)
    while (
        Fraction(_noisy_max(scale, monotonic=monotonic, concentrated=concentrated).map(sensitivity))
        > cost
    ):
        scale = nextafter(scale, inf)
    return scale


def select_noisy_max(scores: Sequence[int], scale: float, *, concentrated: bool) -> int:
    """Return the place of the largest score with noise of this scale."""
    return int(_noisy_max(scale, monotonic=False, concentrated=concentrated)(list(scores)))


def _noisy_max(scale: float, *, monotonic: bool, concentrated: bool) -> Any:
    """Monotonicity changes what a scale delivers, not what is drawn."""
    dp = load_opendp()
    measure = dp.zero_concentrated_divergence() if concentrated else dp.max_divergence()
    distance = dp.linf_distance(T="i64", monotonic=monotonic)
    return dp.m.make_noisy_max(_integers(dp), distance, measure, scale)


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
            f"central noise is drawn by OpenDP, which is not installed: {install('central')}"
        ) from missing
    return dp
