"""The finite fields GF(q) of the projective geometries: q prime, or 2^m with m from 2 to 8.

Elements are 0..q-1. For q = 2^m an element is a polynomial over GF(2), bit i the coefficient of
z^i, reduced by the polynomials below. They are part of the protocol: another polynomial gives other
geometries.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from math import isqrt

#: bit i is the coefficient of z^i; all are primitive, so z generates every element but 0
POLYNOMIALS = {
    4: 0b111,
    8: 0b1011,
    16: 0b10011,
    32: 0b100101,
    64: 0b1000011,
    128: 0b10000011,
    256: 0b100011101,
}


def is_prime(n: int) -> bool:
    """Whether n is prime, by trial division: q is small."""
    return n > 1 and all(n % d for d in range(2, isqrt(n) + 1))


@dataclass(frozen=True, slots=True)
class FiniteField:
    """GF(q), with rows of products for q = 2^m."""

    q: int
    prime: bool = field(init=False)
    products: tuple[bytes, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Refuse a q that has no field here."""
        prime = is_prime(self.q)
        if not prime and self.q not in POLYNOMIALS:
            raise ValueError(f"GF({self.q}) is not defined: give a prime or 4, 8, ..., 256")
        object.__setattr__(self, "prime", prime)
        object.__setattr__(self, "products", () if prime else _products(self.q))

    def times(self, one: int, two: int) -> int:
        """Return the product."""
        return one * two % self.q if self.prime else self.products[one][two]

    def inverse(self, element: int) -> int:
        """Return 1 / element."""
        return pow(element, -1, self.q) if self.prime else self.products[element].index(1)

    def minus_dot(self, one: list[int], two: list[int]) -> int:
        """Return -(one . two)."""
        if self.prime:
            return -sum(map(int.__mul__, one, two)) % self.q
        total, products = 0, self.products
        for left, right in zip(one, two, strict=True):
            total ^= products[left][right]
        return total  # in characteristic 2, minus is plus


@lru_cache(maxsize=256)
def get_field(q: int) -> FiniteField:
    """Return GF(q); its tables are made once."""
    return FiniteField(q)


def _products(q: int) -> tuple[bytes, ...]:
    return tuple(bytes(_multiply(one, two, q) for two in range(q)) for one in range(q))


def _multiply(one: int, two: int, q: int) -> int:
    """Multiply two polynomials over GF(2), reducing as the degree grows."""
    total = 0
    while two:
        if two & 1:
            total ^= one
        two >>= 1
        one <<= 1
        if one & q:
            one ^= POLYNOMIALS[q]
    return total
