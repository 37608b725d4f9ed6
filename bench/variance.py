"""The yardstick of accuracy: n times the variance of a frequency, at the uniform distribution.

Written in floats and apart from the planner, so that it checks the planner's own fractions. The
standard library only: this also runs in `.venv-competitors`.
"""

from __future__ import annotations

from math import exp


def optimum(k: int, epsilon: float) -> float:
    """Return the least that any mechanism reaches, by the best subset size [YB18]."""
    near = int(k / (exp(epsilon) + 1))
    return min(_subset(k, w, exp(epsilon)) for w in range(near - 1, near + 3) if 0 < w < k)


def supported(k: int, p: float, q: float) -> float:
    """Return it for reports that support their input with p and any other with q [WBLJ17]."""
    support = p / k + (1 - 1 / k) * q
    return support * (1 - support) / (p - q) ** 2


def _subset(k: int, w: int, e: float) -> float:
    return (k - 1) ** 2 * (w * e + k - w) ** 2 / (k * k * w * (k - w) * (e - 1) ** 2)
