"""Values to inputs: every domain, every kind of bad value, and the texts that strings may be."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any, NoReturn

from veilcount_shared.collection import Collection
from veilcount_shared.domain import (
    GRID,
    Cross,
    Features,
    OpenStrings,
    Questions,
    check_label,
    normalized,
)
from veilcount_shared.errors import DefinitionError
from veilcount_shared.randomness import RandomSource

from ...enumeration import enumerate_distribution
from ...properties.definition_harness import parse_definition

Vector = dict[str, Any]


def decoded(written: Any) -> object:
    """Return the value that a vector writes."""
    if isinstance(written, list):
        return [decoded(part) for part in written]
    if not isinstance(written, dict):
        return written
    [(kind, content)] = written.items()
    return _DECODERS[kind](content)


_DECODERS: dict[str, Callable[[Any], object]] = {
    "integer": int,
    "double": float,
    "ratio": lambda ratio: Fraction(*map(int, ratio)),
    "bytes": bytes.fromhex,
    "mapping": lambda entries: {name: decoded(entry) for name, entry in entries.items()},
}


class Draws(RandomSource):
    """Draws the least or the greatest outcome, and lists from how many each was drawn."""

    __slots__ = ("greatest", "sizes")

    def __init__(self, *, greatest: bool) -> None:
        self.greatest = greatest
        self.sizes: list[int] = []

    def word(self) -> NoReturn:
        raise AssertionError("an input is drawn by below() alone")

    def below(self, n: int) -> int:
        self.sizes.append(n)
        return n - 1 if self.greatest else 0


def domain_input(collection: Collection, value: object, randomness: RandomSource) -> int:
    """Return the input of a value; of a curator's range the message."""
    if collection.trust.reveals:
        return collection.reveal(value, randomness)
    return collection.domain.input(value, randomness)


def values(document: Vector) -> Vector:
    """Return the document with the inputs of its values."""
    return document | {"vectors": (_values(vector) for vector in document["vectors"])}


def _values(vector: Vector) -> Vector:
    collection = parse_definition("\n".join(vector["definition"]))
    sizes = _digit_sizes(collection)
    rows = [
        [written, _result(collection, decoded(written), sizes)] for written, _ in vector["values"]
    ]
    absent = {"absent": _absent(collection)} if collection.has_absent else {}
    stated = {"domain": collection.domain.canonical(), "sizes": sizes, "values": rows}
    return {key: each for key, each in vector.items() if key != "absent"} | absent | stated


def _absent(collection: Collection) -> int:
    """Return the input whose report is that of a period without a record."""
    reported = enumerate_distribution(collection.randomize_absent)
    return next(
        x
        for x in range(collection.inputs)
        if enumerate_distribution(partial(collection.randomizer.randomize, x)) == reported
    )


def _digit_sizes(collection: Collection) -> list[int]:
    """Return the number of values of each digit of an input, the highest first."""
    domain = collection.domain
    if isinstance(domain, Cross):
        return [part.size for part in domain.parts]
    if isinstance(domain, Features):
        return [GRID + 1] * len(domain.features)
    if isinstance(domain, Questions):
        return [choice.size for _, choice in domain.questions]
    return [collection.inputs if collection.trust.reveals else domain.size]


def _result(collection: Collection, value: object, sizes: list[int]) -> Any:
    """Return the digits of an input; one that two draws make the ends of its range is drawn."""
    least, greatest = Draws(greatest=False), Draws(greatest=True)
    both = [_digits(domain_input(collection, value, draws), sizes) for draws in (least, greatest)]
    digits = [
        one if one == two else "drawn" if (one, two) == (0, size - 1) else [one, two]
        for one, two, size in zip(*both, sizes, strict=True)
    ]
    drawn = [size for digit, size in zip(digits, sizes, strict=True) if digit == "drawn"]
    if drawn != least.sizes and not collection.trust.reveals:  # a curator's: as a grid point
        return f"drawn from {least.sizes}"
    return digits if len(digits) > 1 else digits[0]


def _digits(place: int, sizes: list[int]) -> list[int]:
    digits = []
    for size in reversed(sizes[1:]):
        place, digit = divmod(place, size)
        digits.append(digit)
    return [place, *digits[::-1]]


# -- texts -----------------------------------------------------------------------------------------


def text(document: Vector) -> Vector:
    """Return the document with what each text may be."""
    return document | {"vectors": (_text(vector) for vector in document["vectors"])}


def _text(vector: Vector) -> Vector:
    return vector | {"label": _is_label(vector["text"]), "string": normalized(vector["text"])}


def _is_label(label: str) -> bool:
    try:
        check_label("values", label)
    except DefinitionError:
        return False
    return True


def buckets(rows: list[Any]) -> list[Any]:
    """Return the buckets of each string."""
    return [[salt, string, OpenStrings(salt).buckets(string)] for salt, string, _ in rows]
