"""The kinds of noise: how each is calibrated, drawn, and how far it goes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from math import ceil, log, pi, sqrt
from typing import Self

from numpy.random import Generator

from .discrete_gaussian import DiscreteGaussianNoise
from .discrete_laplace import SAFE, DiscreteLaplaceNoise
from .noise_kinds import NoiseDistribution, NoiseKind
from .opendp_noise import (
    NoiseSource,
    Selector,
    add_gaussian_noise,
    add_noise,
    calibrated_gaussian_scale,
    calibrated_scale,
    calibrated_selection_scale,
    select_noisy_max,
)
from .query import CandidateScores, QueryPart


@dataclass(frozen=True, slots=True)
class NoisyMax:
    """Report noisy max of a scale over some candidates."""

    kind: NoiseKind
    scale: float
    candidates: int
    steps: int  # of a score in an answer

    @classmethod
    def calibrate(
        cls, kind: NoiseKind, part: QueryPart, selection: CandidateScores, cost: Fraction
    ) -> Self:
        """Return the selection that a release pays for in epsilon (Laplace) or rho (Gaussian)."""
        concentrated = kind is NoiseKind.GAUSSIAN
        scale = calibrated_selection_scale(
            part.sensitivity,
            cost * part.share,
            monotonic=selection.monotonic,
            concentrated=concentrated,
        )
        noise = NoiseKind.GUMBEL if concentrated else NoiseKind.EXPONENTIAL
        return cls(noise, scale, part.size, selection.steps)

    @property
    def deviation(self) -> float:
        """The standard deviation of the noise on one score, in answers."""
        spread = pi / sqrt(6) if self.kind is NoiseKind.GUMBEL else 1.0
        return self.scale * spread / self.steps

    def half_width(self, alpha: float) -> int:
        """Return how many answers the selected is below the best, but with probability alpha.

        Of exponential noise: each candidate that is t below wins with at most exp(-t / scale). Of
        Gumbel noise, the exponential mechanism: theorem 3.11 of [DR14].
        """
        return ceil(self.scale * log(self.candidates / alpha) / self.steps * (1 + SAFE))


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


def calibrated_noise(
    kind: NoiseKind, part: QueryPart, cost: Fraction
) -> NoiseDistribution | NoisyMax:
    """Return the noise of a part that a release pays for in epsilon (Laplace) or rho (Gaussian)."""
    if part.selection is not None:
        return NoisyMax.calibrate(kind, part, part.selection, cost)
    return noise_distribution(kind, _KINDS[kind].calibrate(part, cost * part.share))


def noise_source(kind: NoiseKind) -> NoiseSource:
    """Return OpenDP's draws of a kind."""
    return _KINDS[kind].source


def simulated_source(kind: NoiseKind, generator: Generator) -> NoiseSource:
    """Return draws for simulations, which a generator repeats: never for a release."""

    def add(true: Sequence[int], scale: float) -> list[int]:
        drawn = noise_distribution(kind, scale).draw(len(true), generator)
        return [one + two for one, two in zip(true, drawn, strict=True)]

    return add


def noise_selector(kind: NoiseKind) -> Selector:
    """Return OpenDP's noisy max of a kind."""
    return partial(select_noisy_max, concentrated=kind is NoiseKind.GUMBEL)
