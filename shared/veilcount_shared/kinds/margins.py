"""Margins of error that a definition's author can expect."""

from __future__ import annotations

from fractions import Fraction
from math import sqrt
from typing import Protocol

Z95 = 1.96


class TwoLevel(Protocol):
    """A mechanism whose reports support the true value more often than any other."""

    @property
    def P(self) -> Fraction:
        """The probability that a report supports its input."""

    @property
    def Q(self) -> Fraction:
        """The probability that it supports another one."""


def share_margin(mechanism: TwoLevel, answers: float) -> float:
    """Return half the interval of a share near 0."""
    p, q = mechanism.P, mechanism.Q
    return Z95 * sqrt(q * (1 - q) / answers) / float(p - q)
