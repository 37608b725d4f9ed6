"""Domains of values: Boolean, Choice, Number, their crossing, open strings, several numbers.

A domain maps any Python object to an input of the mechanism. It is *total*: whether a report
exists must never depend on its value, so a number beyond its range clamps, an unknown choice is
`other` where that is declared, and what fits nowhere is replaced by a uniformly drawn input. Such a
draw keeps epsilon (it happens before the randomizer) and pulls the estimate toward uniform.
"""

from __future__ import annotations

import hashlib
import math
import unicodedata
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import islice
from string import ascii_lowercase, ascii_uppercase
from typing import Any

from .errors import DefinitionError
from .randomness import RandomSource

MAX_VALUES = 1_000_000
MAX_LABEL = 200
MIN_FEATURES, MAX_FEATURES = 2, 12
GRID_BITS = 32
BUCKET_BITS = 20  # of the hash of an open string in one half of the devices
HALVES = 2
#: characters of a string's beginning that each part of the devices hashes, to find strings by, and
#: the bits of these hashes
PREFIXES, PREFIX_BITS = (3, 5, 7, 9, 10), 18
GRID = 1 << GRID_BITS  # a number is passed to its mechanism as a multiple of its range / 2^32

Label = str | int

#: controls, surrogates, line and paragraph separators: categories that no Unicode version changes;
#: and marks of no width that turn the text after them or make two labels look alike
_INVISIBLE = frozenset({"Cc", "Cs", "Zl", "Zp"})
_ZERO_WIDTH = frozenset(
    "\u061c\u200b\ufeff\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
)


@dataclass(frozen=True, slots=True)
class Boolean:
    """False and True, in this order."""

    @property
    def size(self) -> int:
        """Two."""
        return 2

    @property
    def labels(self) -> tuple[bool, ...]:
        """Return the values in input order."""
        return (False, True)

    def input(self, value: object, randomness: RandomSource) -> int:
        """Return 0 or 1; anything not equal to False or True is drawn."""
        found = _find(_BOOLEANS, value)
        return randomness.below(2) if found is None else found

    def canonical(self) -> dict[str, Any]:
        """Return the fingerprinted fields."""
        return {"type": "boolean"}


_BOOLEANS: dict[Any, int] = {False: 0, True: 1}


@dataclass(frozen=True)
class Choice:
    """A closed list of labels: all strings or all integers. `other`, if named, comes last."""

    values: tuple[Label, ...]
    other: str | None = None

    def __post_init__(self) -> None:
        if self.size < 2:  # noqa: PLR2004 - a question needs two answers
            raise DefinitionError("values", list(self.values), "give at least two values")
        check_labels("values", self.values)
        if self.other is not None:
            check_label("other", self.other)
            if self.other in self.values:
                raise DefinitionError("other", self.other, "give a label that is not in values")

    @property
    def size(self) -> int:
        """The number of labels, `other` included."""
        return len(self.values) + (self.other is not None)

    @cached_property
    def labels(self) -> tuple[Label, ...]:
        """Return the labels in input order."""
        return self.values if self.other is None else (*self.values, self.other)

    def input(self, value: object, randomness: RandomSource) -> int:
        """Return the label's place; an unknown label is `other`, else drawn."""
        found = _find(self._places, value)
        if found is not None:
            return found
        return randomness.below(self.size) if self.other is None else self.size - 1

    def canonical(self) -> dict[str, Any]:
        """Return the fingerprinted fields."""
        return {"type": "choice", "values": list(self.values), "other": self.other}

    @cached_property
    def _places(self) -> dict[Any, int]:
        return {label: place for place, label in enumerate(self.labels)}


@dataclass(frozen=True)
class Number:
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
        """Return the nearest grid point; NaN and what is no number are drawn."""
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
            "type": "number",
            "low": format_fraction(self.low),
            "high": format_fraction(self.high),
        }

    @cached_property
    def _affine(self) -> tuple[int, int]:
        """Return low and 1 over the bounds' common denominator."""
        scale = math.lcm(self.low.denominator, self.high.denominator)
        return int(self.low * scale), scale

    @cached_property
    def _width(self) -> int:
        return int((self.high - self.low) * self._affine[1])


@dataclass(frozen=True)
class Cross:
    """An answer and private attributes under one epsilon: every combination is one input.

    The value is a sequence, the answer first, then the attributes in the order of the definition;
    the input is the mixed-radix number with the answer's place as its highest digit. Each part is
    total on its own.
    """

    answer: Boolean | Choice
    attributes: tuple[tuple[str, Choice], ...]

    def __post_init__(self) -> None:
        order = [name for name, _ in self.attributes]
        if order != sorted(set(order)):
            raise DefinitionError("cross", order, "give each name once, in the order of the names")
        for name, choice in self.attributes:
            if choice.other is not None:
                raise DefinitionError(f"cross.{name}", choice.other, "an attribute has no other")
        if self.size > MAX_VALUES:
            raise DefinitionError(
                "cross", self.size, f"at most {MAX_VALUES:,} combinations: cross fewer attributes"
            )

    @property
    def parts(self) -> tuple[Boolean | Choice, ...]:
        """Return the answer's domain, then the attributes'."""
        return (self.answer, *(choice for _, choice in self.attributes))

    @cached_property
    def size(self) -> int:
        """The number of combinations."""
        return math.prod(part.size for part in self.parts)

    @property
    def labels(self) -> tuple[tuple[Label, ...], ...]:
        """Return the combinations in input order."""
        combined: list[tuple[Label, ...]] = [()]
        for part in self.parts:
            combined = [(*head, label) for head in combined for label in part.labels]
        return tuple(combined)

    def input(self, value: object, randomness: RandomSource) -> int:
        """Return the combination's place; each part that is missing or unknown is drawn."""
        values = _parts(value, len(self.parts))
        place = 0
        for position, part in enumerate(self.parts):
            piece = values[position] if position < len(values) else _MISSING
            place = place * part.size + part.input(piece, randomness)
        return place

    def canonical(self) -> dict[str, Any]:
        """Return the fingerprinted fields."""
        attributes = [[name, list(choice.values)] for name, choice in self.attributes]
        return {"type": "cross", "answer": self.answer.canonical(), "attributes": attributes}


_LOWER = str.maketrans(ascii_uppercase, ascii_lowercase)


@dataclass(frozen=True, slots=True)
class OpenStrings:
    """Any string: its input is a hashed bucket in each part of the devices; none is listed.

    The parts are two halves, which hash the whole string; or one for each length in `prefixes`,
    which hash the string's beginning (A to Z as a to z), so that frequent strings are found letter
    by letter. Another salt is another hash, so two strings rarely share buckets in two definitions.
    """

    salt: str
    bucket_bits: int = BUCKET_BITS
    prefixes: tuple[int, ...] = ()

    @property
    def parts(self) -> int:
        """The number of parts of the devices."""
        return len(self.prefixes) or HALVES

    @property
    def size(self) -> int:
        """The number of combinations of a bucket in each part."""
        return 1 << self.parts * self.bucket_bits

    @property
    def labels(self) -> tuple[Label, ...]:
        """Return none: strings are not listed."""
        return ()

    def input(self, value: object, randomness: RandomSource) -> int:
        """Return the buckets of a string; what cannot be a string here is drawn."""
        text = normalized(value)
        return randomness.below(self.size) if text is None else self.buckets(text)

    def buckets(self, text: str) -> int:
        """Return the buckets of a normalized string, that of the first part in the high bits."""
        if not self.prefixes:
            return self._first_bits(self.digest(text), HALVES * self.bucket_bits)
        place = 0
        for length in self.prefixes:
            bucket = self._first_bits(self.digest(text, length), self.bucket_bits)
            place = place << self.bucket_bits | bucket
        return place

    def digest(self, text: str, length: int = 0) -> bytes:
        """Return the hash of a normalized string, or of its beginning of some length."""
        hashed = f"{length}\0{text[:length].translate(_LOWER)}" if length else text
        return hashlib.sha256(f"{self.salt}\0{hashed}".encode()).digest()

    @staticmethod
    def _first_bits(digest: bytes, bits: int) -> int:
        return int.from_bytes(digest[:8], "big") >> 64 - bits

    def canonical(self) -> dict[str, Any]:
        """Return the fingerprinted fields."""
        fields = {"type": "open", "salt": self.salt, "bucket_bits": self.bucket_bits}
        return fields | ({"prefixes": list(self.prefixes)} if self.prefixes else {})


@dataclass(frozen=True)
class Features:
    """Several numbers of one person, each between bounds of its own.

    The value is a mapping from names to numbers; the input is one number, with the point of each on
    its grid as a digit, that of the first feature the highest. Each is total on its own.
    """

    features: tuple[tuple[str, Number], ...]

    def __post_init__(self) -> None:
        order = [name for name, _ in self.features]
        if order != sorted(set(order)):
            raise DefinitionError(
                "features", order, "give each name once, in the order of the names"
            )
        if not MIN_FEATURES <= len(order) <= MAX_FEATURES:
            fix = f"give {MIN_FEATURES} to {MAX_FEATURES} features"
            raise DefinitionError("features", f"{len(order)} features", fix)

    @property
    def names(self) -> tuple[str, ...]:
        """The names, in the order of the digits."""
        return tuple(name for name, _ in self.features)

    @property
    def size(self) -> int:
        """The number of combinations of grid points."""
        size: int = (GRID + 1) ** len(self.features)
        return size

    @property
    def labels(self) -> tuple[Label, ...]:
        """Return none: numbers are not listed."""
        return ()

    def input(self, value: object, randomness: RandomSource) -> int:
        """Return the points of all features; what is missing or no number is drawn."""
        point = 0
        for name, number in self.features:
            point = point * (GRID + 1) + number.input(_entry(value, name), randomness)
        return point

    def canonical(self) -> dict[str, Any]:
        """Return the fingerprinted fields."""
        features = [[name, number.canonical()] for name, number in self.features]
        return {"type": "features", "features": features}


def _entry(value: object, name: str) -> object:
    """Return the value under a name, whatever its own code does."""
    try:
        return value[name] if isinstance(value, Mapping) else None
    except Exception:  # noqa: BLE001 - a value's own code may raise anything: it is missing
        return None


Domain = Boolean | Choice | Number | Cross | OpenStrings | Features

_MISSING = object()


def check_labels(key: str, labels: tuple[Label, ...]) -> None:
    """Raise if a list of labels is too long, mixed, repeated or unreadable."""
    if len(labels) > MAX_VALUES:
        raise DefinitionError(key, f"{len(labels)} values", f"at most {MAX_VALUES:,} are possible")
    if len({type(label) for label in labels}) > 1:
        raise DefinitionError(key, list(labels[:5]), "give all strings or all integers")
    for label in labels:
        check_label(key, label)
    repeated = [label for label, count in Counter(labels).items() if count > 1]
    if repeated:
        raise DefinitionError(key, repeated[0], "this value is listed twice: list it once")


def has_hidden_characters(text: str) -> bool:
    """Whether a text holds characters that a reader cannot see."""
    return not (
        _ZERO_WIDTH.isdisjoint(text) and _INVISIBLE.isdisjoint(map(unicodedata.category, text))
    )


def normalized(value: object) -> str | None:
    """Return a string as it is hashed: without space around it, in Unicode normal form C.

    None: no string, an empty one, one of more than 200 characters or with hidden ones.
    """
    if not isinstance(value, str):
        return None
    text = str.strip(value)
    plain = text.isascii() and text.isprintable()
    if not plain:
        text = unicodedata.normalize("NFC", text)
    fits = 0 < len(text) <= MAX_LABEL and (plain or not has_hidden_characters(text))
    return text if fits else None


def check_label(key: str, label: object) -> None:
    """Refuse a label that is empty, too long, unprintable or written in two ways."""
    if isinstance(label, int) and not isinstance(label, bool):
        if abs(label) >= 1 << 53:  # beyond it JSON readers in other languages round
            raise DefinitionError(key, label, "integers must lie within +/- 2^53")
        return
    if not isinstance(label, str):
        raise DefinitionError(key, label, "give a string or an integer")
    if not 0 < len(label) <= MAX_LABEL or label != label.strip():
        raise DefinitionError(key, label, f"give 1 to {MAX_LABEL} characters, no space around them")
    if has_hidden_characters(label):
        raise DefinitionError(key, label, "control characters are not allowed")
    if not unicodedata.is_normalized("NFC", label):
        raise DefinitionError(key, label, "write it in Unicode normal form C")


def _parts(value: object, most: int) -> tuple[object, ...]:
    """Return the parts of a crossed value, whatever its own code does."""
    try:
        return tuple(islice(value, most)) if isinstance(value, tuple | list) else (value,)
    except Exception:  # noqa: BLE001 - a value's own code may raise anything: it is unknown
        return ()


def _find(places: dict[Any, int], value: object) -> int | None:
    """Look a value up, whatever its hash and equality do."""
    try:
        return places.get(value)
    except Exception:  # noqa: BLE001 - a value's own code may raise anything: it is unknown
        return None


def _ratio(value: object) -> tuple[int, int] | None:
    """Return a number as an exact ratio, (sign, 0) for an infinity, None for what is no number."""
    try:
        if isinstance(value, int | Fraction):
            return int(value.numerator), int(value.denominator)
        if isinstance(value, str | bytes | bytearray):
            return None
        number = float(value)  # type: ignore[arg-type] # Decimal, numpy and others; the rest raises
        if math.isinf(number):
            return (1 if number > 0 else -1), 0
        return number.as_integer_ratio()
    except Exception:  # noqa: BLE001 - NaN has no ratio; a value's own code may raise anything
        return None


def format_fraction(number: Fraction) -> str:
    """Return a fraction in its canonical form."""
    return f"{number.numerator}/{number.denominator}"
