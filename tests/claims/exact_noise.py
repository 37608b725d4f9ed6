"""Discrete Laplace noise of a rational q = e^-epsilon, exactly: its probabilities, and clamped."""

from __future__ import annotations

from fractions import Fraction


def laplace(q: Fraction, x: int) -> Fraction:
    """Return the probability of one outcome."""
    return (1 - q) / (1 + q) * q ** abs(x)


def clamped(q: Fraction, n: int, count: int) -> list[Fraction]:
    """Return the distribution on 0..n of a noised count that is moved to the nearest of them."""
    inner = [laplace(q, y - count) for y in range(1, n)]
    return [q**count / (1 + q), *inner, q ** (n - count) / (1 + q)]
