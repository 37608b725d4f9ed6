"""Numbers: one between two bounds, or several of one person."""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ..cached_property import cached_property
from ..errors import DefinitionError
from ..randomness import RandomSource
from .interface import Answers, SingleValue
from .labels import Label
from .named_parts import NamedParts, check_names

MIN_FEATURES, MAX_FEATURES = 2, 12
GRID_BITS = 32
GRID = 1 << GRID_BITS  # a number is passed to its mechanism as a multiple of its range / 2^32


@dataclass(frozen=True)
class Number(SingleValue):
    """A number between two bounds, clamped, on a grid of 2^32 + 1 points from low to high."""

    low: Fraction
    high: Fraction

    def __post_init__(self) -> None:
        if not self.low < self.high:
            raise DefinitionError(
                "range", [self.low, self.high], "give [low, high] with low below high"
            )

    @property
    def size(self) -> int:
        """The number of grid points."""
        return GRID + 1

    def input(self, value: object, randomness: RandomSource) -> int:
        """Return the nearest grid point; NaN, booleans and what is no number are drawn."""
        ratio = _ratio(value)
        if ratio is None:
            return randomness.below(GRID + 1)
        numerator, denominator = ratio
        if not denominator:  # an infinity, by its sign
            return GRID if numerator > 0 else 0
        offset, scale = self._affine
        doubled = 2 * (numerator * scale - offset * denominator) * GRID
        width = self._width * denominator
        return min(max((doubled + width) // (2 * width), 0), GRID)

    def canonical(self) -> dict[str, Any]:
        """Return the fingerprinted fields."""
        return {
            "type": "range",
            "low": format_fraction(self.low),
            "high": format_fraction(self.high),
        }

    def declaration(self) -> dict[str, Any]:
        """Return the keys of a definition that declare it."""
        return {"range": [self.low, self.high]}

    @property
    def extremes(self) -> tuple[object, object]:
        """Return the bounds."""
        return self.low, self.high

    def answers(self) -> Answers:
        """Yield the statement of the bounds."""
        low, high = self._bounds
        yield "answers_number", {"low": low, "high": high}

    @property
    def _bounds(self) -> tuple[str, str]:
        return f"{float(self.low):g}", f"{float(self.high):g}"

    def describe_bounds(self) -> str:
        """Return the bounds as people read them."""
        return " \u2013 ".join(self._bounds)

    def expected(self) -> tuple[str, str]:
        """Return what is wrong with another value, and what to record."""
        return "no number", "record an int, a float or a Fraction"

    @cached_property
    def _affine(self) -> tuple[int, int]:
        """Return low and 1 over the bounds' common denominator."""
        scale = math.lcm(self.low.denominator, self.high.denominator)
        return int(self.low * scale), scale

    @cached_property
    def _width(self) -> int:
        return int((self.high - self.low) * self._affine[1])


@dataclass(frozen=True)
class Features(NamedParts[Number]):
    """Several numbers of one person, each between bounds of its own."""

    features: tuple[tuple[str, Number], ...]

    def __post_init__(self) -> None:
        check_names("features", self.names, MIN_FEATURES, MAX_FEATURES)

    @property
    def parts(self) -> tuple[tuple[str, Number], ...]:
        """The numbers."""
        return self.features

    @property
    def labels(self) -> tuple[Label, ...]:
        """Return none: numbers are not listed."""
        return ()

    def canonical(self) -> dict[str, Any]:
        """Return the fingerprinted fields."""
        features = [[name, number.canonical()] for name, number in self.features]
        return {"type": "features", "features": features}

    def declaration(self) -> dict[str, Any]:
        """Return the keys of a definition that declare it."""
        return {"features": {name: [number.low, number.high] for name, number in self.features}}

    @property
    def extremes(self) -> tuple[object, object]:
        """Return the lower bounds, and the upper ones."""
        return dict.fromkeys(self.names, -math.inf), dict.fromkeys(self.names, math.inf)

    def answers(self) -> Answers:
        """Yield the statement of all features and their bounds."""
        bounds = [f"{name} ({number.describe_bounds()})" for name, number in self.features]
        yield "answers_features", {"features": ", ".join(bounds)}


def is_number(value: object) -> bool:
    """Whether a value is a number; a boolean is none, Python's as little as numpy's."""
    kind = type(value)  # isinstance would run the value's own code
    return kind is not bool and issubclass(kind, numbers.Number)


def _ratio(value: object) -> tuple[int, int] | None:
    """Return a number as an exact ratio, (sign, 0) for an infinity, None for what is no number."""
    try:
        if not is_number(value):
            return None
        if isinstance(value, int | Fraction):
            return int(value.numerator), int(value.denominator)
        number = float(value)  # type: ignore[arg-type] # Decimal, numpy; a complex one raises
        if math.isinf(number):
            return (1 if number > 0 else -1), 0
        return number.as_integer_ratio()
    except Exception:  # noqa: BLE001 - NaN has no ratio; a value's own code may raise anything
        return None


def format_fraction(number: Fraction) -> str:
    """Return a fraction in its canonical form."""
    return f"{number.numerator}/{number.denominator}"
