"""Projective geometry: the set of a point of PG(t-1, q) is the hyperplanes through it [FNNT22].

Points and hyperplanes form a symmetric balanced block design, which is optimal both in variance and
in message length [PNL23]; the only loss is q against e^epsilon + 1 and the points that no input
uses. A point is its canonical vector (first nonzero coordinate 1); with d coordinates after that
pivot its number is (q^d - 1)/(q - 1) + those coordinates read as a base-q number. Hyperplanes are
numbered alike by their normal vector, so a message is one number below v.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from ..epsilon import satisfies, threshold
from ..errors import EpsilonError
from ..randomness import WORDS, RandomSource
from .finite_field import POLYNOMIALS, FiniteField, get_field
from .interface import NumberedMessages


def points(q: int, t: int) -> int:
    """Return the number of points of PG(t-1, q)."""
    return int((q**t - 1) // (q - 1))


@dataclass(frozen=True, slots=True)
class ProjectiveGeometry(NumberedMessages):
    """One configuration: k inputs among the points of PG(t-1, q), P = a / 2^64."""

    k: int
    q: int
    t: int
    a: int
    epsilon: Fraction
    messages: int = field(init=False)
    support_size: int = field(init=False)
    pair_support_size: int = field(init=False)
    _field: FiniteField = field(init=False, repr=False, compare=False)
    _starts: tuple[int, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _set(self, "_field", get_field(self.q))
        _set(self, "_starts", tuple(points(self.q, d) for d in range(self.t + 1)))
        for name, size in (("messages", 0), ("support_size", 1), ("pair_support_size", 2)):
            _set(self, name, points(self.q, self.t - size))
        if not 2 <= self.k <= self.messages or self.t < 3:  # noqa: PLR2004 - a line is no plane
            raise ValueError(f"PG({self.t - 1}, {self.q}) has no {self.k} inputs to tell apart")
        if not satisfies(self.a, self.epsilon, self.support_size, self.messages):
            raise EpsilonError(self.epsilon, f"plane q={self.q} t={self.t} a={self.a} exceeds it")

    @classmethod
    def for_epsilon(cls, epsilon: Fraction, k: int, q: int, t: int) -> ProjectiveGeometry:
        """Return the configuration that uses all of epsilon."""
        return cls(k, q, t, threshold(epsilon, points(q, t - 1), points(q, t)), epsilon)

    @property
    def inputs(self) -> int:
        return self.k

    @property
    def P(self) -> Fraction:
        """The probability that a report's hyperplane holds the input."""
        return Fraction(self.a, WORDS)

    @property
    def Q(self) -> Fraction:
        """The probability that a report's hyperplane holds a given other input."""
        inside = Fraction(self.pair_support_size, self.support_size)
        outside = Fraction(
            self.support_size - self.pair_support_size, self.messages - self.support_size
        )
        return self.P * inside + (1 - self.P) * outside

    def randomize(self, x: int, randomness: RandomSource) -> int:
        """Return the message of input x, with two draws and no rejection of a hyperplane.

        Let i be x's pivot. The normals u with <u, x> = 0 are fixed by their t-1 other coordinates,
        a bijection with the points of PG(t-2, q). Each hyperplane that misses x has exactly one
        normal with <u, x> = 1, and those are fixed by any t-1 other coordinates, zeros included.
        """
        q, size = self.q, self.t
        point = self.point(x)
        pivot = point.index(1)
        if randomness.bernoulli(self.a):
            normal = self.point(randomness.below(self.support_size), size - 1)
            target = 0
        else:
            normal = _digits(randomness.below(q ** (size - 1)), q, size - 1)
            target = 1
        normal.insert(pivot, 0)
        product = self._field.minus_dot(normal, point)
        # x is 1 at its pivot, so the missing coordinate is wanted - <rest of u, x>.
        if target:
            product = (product + 1) % q if self._field.prime else product ^ 1
        normal[pivot] = product
        return self.number(normal)

    def cover(self, randomness: RandomSource) -> int:
        """Return a uniform hyperplane: with more inputs than it has points, each misses one."""
        return randomness.below(self.messages)

    def point(self, number: int, size: int = 0) -> list[int]:
        """Return the canonical vector of a point (of `size` coordinates, t by default)."""
        size = size or self.t
        starts, free = self._starts, 0
        while number >= starts[free + 1]:
            free += 1
        vector = [0] * size
        vector[size - 1 - free] = 1
        rest, q, place = number - starts[free], self.q, size - 1
        while rest:
            rest, vector[place] = divmod(rest, q)
            place -= 1
        return vector

    def number(self, vector: list[int]) -> int:
        """Return the number of the point that any nonzero vector stands for."""
        pivot = 0
        while not vector[pivot]:
            pivot += 1
        rest, q, value = vector[pivot + 1 :], self.q, 0
        if vector[pivot] != 1:
            scale, times = self._field.inverse(vector[pivot]), self._field.times
            rest = [times(scale, coordinate) for coordinate in rest]
        for coordinate in rest:
            value = value * q + coordinate
        return self._starts[len(rest)] + value

    def supports(self, message: int, x: int) -> bool:
        """Whether the hyperplane holds the point."""
        return not self._field.minus_dot(self.point(message), self.point(x))

    def describe(self) -> str:
        return (
            f"holds the true value with probability {float(self.P):.6f}, any given other value"
            f" with {float(self.Q):.6f}"
        )

    def canonical(self) -> dict[str, Any]:
        return {"design": "plane", "k": self.k, "q": self.q, "t": self.t, "a": str(self.a)}

    def tables(self) -> dict[str, Any]:
        return {
            **NumberedMessages.tables(self),
            "support": self.support_size,
            "polynomial": POLYNOMIALS.get(self.q),
        }


def _digits(number: int, q: int, size: int) -> list[int]:
    """Return a number's base-q digits, the highest first."""
    digits = [0] * size
    place = size - 1
    while number:
        number, digits[place] = divmod(number, q)
        place -= 1
    return digits


_set = object.__setattr__  # how a frozen dataclass fills in its derived fields
