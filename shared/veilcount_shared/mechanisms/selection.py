"""Mechanism selection: the mechanism and parameters for k inputs at a given epsilon.

Subset selection is exactly optimal and is taken whenever its message is short; otherwise the
projective geometry with the least variance, and among those within 0.3 % of it the one with the
fewest messages. All comparisons are made with exact fractions, so that every machine selects alike.
The selection belongs to the protocol version: what it returns for a (k, epsilon) never changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import takewhile

from ..epsilon import exp_lower, parse_epsilon
from .finite_field import POLYNOMIALS, is_prime
from .projective_geometry import ProjectiveGeometry, points
from .subset_selection import SubsetSelection

MAX_INPUTS = 1 << 20
SHORT_BITS = 256  # a subset message of this length is always acceptable
LONG_BITS = 8192  # one of this length is, where no geometry comes close
MAX_CELLS = 1 << 22  # counters of a projective geometry
MAX_ORDER = 3100  # the largest q considered
VARIANCE_TOLERANCE = Fraction("1.003")
MAX_VARIANCE_RATIO = Fraction("1.035")


@dataclass(frozen=True, slots=True)
class Selection:
    """A mechanism and its cost."""

    mechanism: SubsetSelection | ProjectiveGeometry
    variance: float  # n times the variance of a frequency near 0
    #: variance at the uniform distribution, to the best that any mechanism reaches [YB18]
    ratio: float

    @property
    def bits(self) -> int:
        return self.mechanism.bits


def select_mechanism(k: int, epsilon: int | str | Fraction) -> Selection:
    """Return the mechanism for k inputs at an epsilon."""
    if not 2 <= k <= MAX_INPUTS:  # noqa: PLR2004 - one input is no question
        raise ValueError(f"k = {k}: give 2 to {MAX_INPUTS:,}")
    return _select(k, parse_epsilon(epsilon))


@lru_cache(maxsize=4096)
def _select(k: int, epsilon: Fraction) -> Selection:
    e = exp_lower(epsilon)
    w = best_subset(k, e)
    optimum = subset_variance(k, w, e)
    bits = subset_bits(k, w)
    if w > 1 and bits > SHORT_BITS:
        best = best_projective(k, e)
        if best and (best[0] <= MAX_VARIANCE_RATIO * optimum or bits > LONG_BITS):
            variance, q, t = best
            return _priced(ProjectiveGeometry.for_epsilon(epsilon, k, q, t), variance / optimum)
    return _priced(SubsetSelection.for_epsilon(epsilon, k, w), Fraction(1))


def best_subset(k: int, e: Fraction) -> int:
    """Return the size w of the optimal subset: next to k / (e^epsilon + 1) [YB18, sec. 4]."""
    near = max(1, int(k / (e + 1)))
    sizes = [w for w in (near - 1, near, near + 1) if 1 <= w < k]
    return min(sizes, key=lambda w: subset_variance(k, w, e))


def subset_bits(k: int, w: int) -> int:
    """Return the length of a subset's message."""
    label = (k - 1).bit_length()
    return label if w == 1 else min(k, w * label)


def _priced(mechanism: SubsetSelection | ProjectiveGeometry, ratio: Fraction) -> Selection:
    p, q = mechanism.P, mechanism.Q
    return Selection(mechanism, float(q * (1 - q) / (p - q) ** 2), float(ratio))


def subset_variance(k: int, w: int, e: Fraction) -> Fraction:
    """Return n times the variance of subset selection at the uniform distribution."""
    return (k - 1) ** 2 * (w * e + k - w) ** 2 / (k * k * w * (k - w) * (e - 1) ** 2)


def projective_variance(k: int, q: int, t: int, e: Fraction) -> Fraction:
    """Return n times the variance of a geometry, uniform over k of its points."""
    v, r, shared = points(q, t), points(q, t - 1), points(q, t - 2)
    whole = e * r + v - r
    hit, cross = e * r / whole, (e * shared + r - shared) / whole
    support = hit / k + (1 - Fraction(1, k)) * cross
    return support * (1 - support) / (hit - cross) ** 2


def best_projective(k: int, e: Fraction) -> tuple[Fraction, int, int] | None:
    """Return (variance, q, t): of the planes close to the least variance, the smallest."""
    candidates = [(projective_variance(k, q, t, e), q, t) for q, t in projective_orders(k, e)]
    if not candidates:
        return None
    least = min(candidates)[0]
    return min(
        (plane for plane in candidates if plane[0] <= VARIANCE_TOLERANCE * least),
        key=lambda plane: points(plane[1], plane[2]),
    )


def projective_orders(k: int, e: Fraction, cells: int = MAX_CELLS) -> Iterator[tuple[int, int]]:
    """Yield each candidate order q with the least t that has k points or more."""
    most = int(Fraction("2.2") * (e + 1) + 1)  # once: `e` has hundreds of digits
    for q in takewhile(most.__ge__, _orders()):
        t = 3
        while points(q, t) < k:
            t += 1
        if points(q, t) <= cells:
            yield q, t


@lru_cache(maxsize=1)
def _orders() -> tuple[int, ...]:
    return tuple(q for q in range(2, MAX_ORDER) if is_prime(q) or q in POLYNOMIALS)
