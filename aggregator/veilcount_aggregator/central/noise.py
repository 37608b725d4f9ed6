"""The kinds of noise: how each is calibrated, drawn, and how far it goes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Protocol

from numpy.random import Generator

from .discrete_gaussian import DiscreteGaussianNoise
from .discrete_laplace import DiscreteLaplaceNoise
from .opendp_noise import (
    NoiseSource,
    add_gaussian_noise,
    add_noise,
    calibrated_gaussian_scale,
    calibrated_scale,
)
from .query import QueryPart


class NoiseKind(StrEnum):
    """The distribution of a release's noise."""

    LAPLACE = "laplace"
    GAUSSIAN = "gaussian"


class NoiseDistribution(Protocol):
    """A distribution of integer noise, symmetric about 0."""

    @property
    def scale(self) -> float:
        """The scale that OpenDP draws with."""

    @property
    def deviation(self) -> float:
        """The standard deviation."""

    @property
    def largest_t(self) -> float:
        """The end of the range of t in which `log_moment` is useful."""

    def half_width(self, alpha: float) -> int:
        """Return a width that noise exceeds with probability alpha at most."""

    def difference_half_width(self, alpha: float) -> int:
        """Return the same for the difference of two independent draws."""

    def log_moment(self, t: float) -> float:
        """Return log E exp(t X), or a bound on it."""

    def draw(self, size: int, generator: Generator) -> list[int]:
        """Return noise for simulations."""


@dataclass(frozen=True, slots=True)
class _Noise:
    distribution: Callable[[float], NoiseDistribution]  # of a scale
    calibrate: Callable[[QueryPart, Fraction], float]  # to the cost of a part
    source: NoiseSource


_KINDS: Mapping[NoiseKind, _Noise] = {
    NoiseKind.LAPLACE: _Noise(
        DiscreteLaplaceNoise,
        lambda part, epsilon: calibrated_scale(part.sensitivity, epsilon),
        add_noise,
    ),
    NoiseKind.GAUSSIAN: _Noise(
        DiscreteGaussianNoise,
        lambda part, rho: calibrated_gaussian_scale(part.squared_sensitivity, rho),
        add_gaussian_noise,
    ),
}


def noise_distribution(kind: NoiseKind, scale: float) -> NoiseDistribution:
    """Return the distribution of a kind and scale."""
    return _KINDS[kind].distribution(scale)


def calibrated_noise(kind: NoiseKind, part: QueryPart, cost: Fraction) -> NoiseDistribution:
    """Return the noise of a part that a release pays for in epsilon (Laplace) or rho (Gaussian)."""
    return noise_distribution(kind, _KINDS[kind].calibrate(part, cost * part.share))


def noise_source(kind: NoiseKind) -> NoiseSource:
    """Return OpenDP's draws of a kind."""
    return _KINDS[kind].source
