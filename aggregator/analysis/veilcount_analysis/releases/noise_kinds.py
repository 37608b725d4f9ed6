"""The kinds of noise, and what every distribution of additive noise can tell."""

from __future__ import annotations

from enum import StrEnum
from typing import Protocol

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray


class NoiseKind(StrEnum):
    """The distribution of a release's noise."""

    LAPLACE = "laplace"
    GAUSSIAN = "gaussian"
    EXPONENTIAL = "exponential"  # of a selection that is paid in epsilon
    GUMBEL = "gumbel"  # in rho


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

    def contrast_half_widths(
        self, shares: NDArray[np.float64], alpha: float
    ) -> NDArray[np.float64]:
        """Return half widths of (1 - t) X - t Y, independent draws, for each t from 0 to 1."""

    def weighted_half_widths(
        self, weights: NDArray[np.float64], alpha: float
    ) -> NDArray[np.float64]:
        """Return half widths of weighted sums of draws, one for each row of weights."""

    def log_moment(self, t: float) -> float:
        """Return log E exp(t X), or a bound on it."""

    def draw(self, size: int, generator: Generator) -> list[int]:
        """Return noise for simulations."""


class DrawnNoise(Protocol):
    """The noise of one part of a release, as it was drawn."""

    @property
    def distribution(self) -> NoiseKind:
        """Its kind."""

    @property
    def scale(self) -> float:
        """The scale that OpenDP drew with."""

    @property
    def half_width(self) -> int:
        """The width that it exceeds with probability alpha at most."""
