"""Values to inputs, by vectors for every language: every domain, every kind of bad value, and wrong
mappings, which the vectors reject."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, NoReturn, TypeGuard

import numpy as np
import pytest

from veilcount_client.testing import SeededRandomSource
from veilcount_shared.collection import Collection
from veilcount_shared.domain import GRID, Boolean, Choice, Cross, Features, Number
from veilcount_shared.randomness import RandomSource

from .definition_harness import parse_definition

_FILE = Path(__file__).parents[1] / "vectors" / "values.json"
VECTORS: list[dict[str, Any]] = json.loads(_FILE.read_text(encoding="utf-8"))["vectors"]
IDS = [", ".join(vector["definition"]) for vector in VECTORS]

HALF = Fraction(1, 2)
Mapping = Callable[[Collection, object, RandomSource], int]


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
    if _is_curators(collection):
        return collection.reveal(value, randomness)
    return collection.domain.input(value, randomness)


def _is_curators(collection: Collection) -> bool:
    return collection.trust.reveals


def digit_sizes(collection: Collection) -> list[int]:
    """Return the number of values of each digit of an input, the highest first."""
    domain = collection.domain
    if isinstance(domain, Cross):
        return [part.size for part in domain.parts]
    if isinstance(domain, Features):
        return [GRID + 1] * len(domain.features)
    return [collection.inputs if _is_curators(collection) else domain.size]


def expected_input(digits: list[Any], sizes: list[int], *, greatest: bool) -> int:
    """Return the input whose drawn digits are the least or the greatest."""
    place = 0
    for digit, size in zip(digits, sizes, strict=True):
        drawn = size - 1 if greatest else 0
        place = place * size + (drawn if digit == "drawn" else digit)
    return place


def disagreements(vector: dict[str, Any], mapping: Mapping) -> list[Any]:
    """Return the values of a vector that a mapping takes for another input, or draws otherwise."""
    collection, wrong = parse_definition("\n".join(vector["definition"])), []
    for written, result in vector["values"]:
        digits = result if isinstance(result, list) else [result]
        for greatest in (False, True):
            randomness = Draws(greatest=greatest)
            place = mapping(collection, decoded(written), randomness)
            if place != expected_input(digits, vector["sizes"], greatest=greatest):
                wrong.append(written)
    return wrong


# -- the vectors -----------------------------------------------------------------------------------


@pytest.mark.parametrize("vector", VECTORS, ids=IDS)
def test_every_value_has_the_pinned_input_or_is_drawn(vector: dict[str, Any]) -> None:
    assert disagreements(vector, domain_input) == []


@pytest.mark.parametrize("vector", VECTORS, ids=IDS)
def test_a_vector_states_its_domain_the_sizes_of_digits_and_absent(vector: dict[str, Any]) -> None:
    collection = parse_definition("\n".join(vector["definition"]))

    assert vector["domain"] == collection.domain.canonical()
    assert vector["sizes"] == digit_sizes(collection)
    assert vector.get("absent") == (collection.inputs - 1 if collection.has_absent else None)


@pytest.mark.parametrize("vector", VECTORS, ids=IDS)
def test_what_is_drawn_is_drawn_once_over_all_of_its_digit(vector: dict[str, Any]) -> None:
    collection = parse_definition("\n".join(vector["definition"]))
    if _is_curators(collection):  # drawn as a grid point, then rounded
        return
    for written, result in vector["values"]:
        digits = result if isinstance(result, list) else [result]
        randomness = Draws(greatest=False)
        collection.domain.input(decoded(written), randomness)

        drawn = zip(digits, vector["sizes"], strict=True)
        assert randomness.sizes == [size for digit, size in drawn if digit == "drawn"], written


def test_a_scalar_of_numpy_is_what_the_number_is() -> None:
    """Its booleans are booleans; beyond 2^53 its integers are doubles."""
    for vector in VECTORS:
        collection = parse_definition("\n".join(vector["definition"]))
        for value in (decoded(written) for written, _ in vector["values"]):
            scalar = numpy_scalar(value)
            if scalar is not None:
                places = [
                    domain_input(collection, number, SeededRandomSource(1))
                    for number in (value, scalar)
                ]
                assert places[0] == places[1], (collection.domain, value)


def numpy_scalar(value: object) -> object:
    """Return a value as one of numpy's; None: it has none."""
    if isinstance(value, bool):
        return np.bool_(value)
    if isinstance(value, int):
        return np.int64(value) if abs(value) <= 1 << 53 else None
    return np.float64(value) if isinstance(value, float) else None


# -- wrong mappings --------------------------------------------------------------------------------


def is_finite(value: object) -> TypeGuard[int | float | Fraction]:
    """Whether a value is a finite number, of those that vectors write."""
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, int | Fraction) and not isinstance(value, bool)


def of_numbers(rounded: Callable[[Fraction], int]) -> Mapping:
    """Return a mapping that rounds a number's place on the grid in its own way."""

    def mapping(collection: Collection, value: object, randomness: RandomSource) -> int:
        domain = collection.domain
        if isinstance(domain, Number) and not _is_curators(collection) and is_finite(value):
            place = (Fraction(value) - domain.low) / (domain.high - domain.low) * GRID
            return rounded(place)
        return domain_input(collection, value, randomness)

    return mapping


def clamped(point: int) -> int:
    return min(max(point, 0), GRID)


def of_values(change: Callable[[Any], object]) -> Mapping:
    """Return a mapping that changes values first."""
    return lambda collection, value, randomness: domain_input(collection, change(value), randomness)


def of_order(key: str) -> Mapping:
    """Return a mapping that takes the entries of a domain in the opposite order."""

    def mapping(collection: Collection, value: object, randomness: RandomSource) -> int:
        if not hasattr(collection.domain, key):
            return domain_input(collection, value, randomness)
        domain = copy.copy(collection.domain)
        object.__setattr__(domain, key, getattr(domain, key)[::-1])
        return domain.input(value, randomness)

    return mapping


def with_absent(collection: Collection, value: object, randomness: RandomSource) -> int:
    """Draw among all inputs, `absent` too."""
    drawn = Draws(greatest=False)
    place = domain_input(collection, value, drawn)
    return randomness.below(collection.inputs) if drawn.sizes and collection.has_absent else place


def dropped_whole(collection: Collection, value: object, randomness: RandomSource) -> int:
    """Draw a crossed value as a whole if one of its parts has no place."""
    drawn = Draws(greatest=False)
    place = domain_input(collection, value, drawn)
    return randomness.below(collection.domain.size) if drawn.sizes else place


def rounded_at_once(collection: Collection, value: object, randomness: RandomSource) -> int:
    """Round a curator's number without a grid."""
    domain = collection.domain
    if _is_curators(collection) and isinstance(domain, Number) and is_finite(value):
        whole = math.floor(Fraction(value) + HALF)
        return min(max(whole - int(domain.low), 0), collection.inputs - 1)
    return domain_input(collection, value, randomness)


def without_other(collection: Collection, value: object, randomness: RandomSource) -> int:
    """Draw unknown values where `other` is declared, too."""
    domain = collection.domain
    if isinstance(domain, Choice) and domain.other and value not in domain.labels:
        return randomness.below(domain.size)
    return domain_input(collection, value, randomness)


def only_booleans(collection: Collection, value: object, randomness: RandomSource) -> int:
    """Take 0 and 1 for no booleans."""
    if isinstance(collection.domain, Boolean) and not isinstance(value, bool):
        return randomness.below(2)
    return domain_input(collection, value, randomness)


WRONG: dict[str, Mapping] = {
    "halves to even": of_numbers(lambda place: clamped(round(place))),
    "halves down": of_numbers(lambda place: clamped(math.ceil(place - HALF))),
    "rounded down": of_numbers(lambda place: clamped(math.floor(place))),
    "in doubles": of_numbers(
        lambda place: clamped(math.floor(place + 0.5) if abs(place) < 2 * GRID else int(place))
    ),
    "not clamped": of_numbers(lambda place: math.floor(place + HALF)),
    "true as 1": of_values(lambda value: int(value) if isinstance(value, bool) else value),
    "NaN as low": of_values(
        lambda value: -math.inf if isinstance(value, float) and math.isnan(value) else value
    ),
    "infinity as no number": of_values(
        lambda value: None if isinstance(value, float) and math.isinf(value) else value
    ),
    "strings as numbers": of_values(
        lambda value: int(value) if isinstance(value, str) and value.isdecimal() else value
    ),
    "strings stripped": of_values(lambda value: value.strip() if isinstance(value, str) else value),
    "doubles as no integers": of_values(
        lambda value: value + 0.25 if isinstance(value, float) else value
    ),
    "attributes by their order in the file": of_order("attributes"),
    "the first feature as the lowest digit": of_order("features"),
    "absent drawn as well": with_absent,
    "a crossed value drawn as a whole": dropped_whole,
    "a curator's number rounded without the grid": rounded_at_once,
    "other drawn": without_other,
    "0 and 1 as no booleans": only_booleans,
}


def test_numbers_that_are_rounded_by_the_rule_agree() -> None:
    """So the wrong mappings are rejected for what is wrong in them."""
    right = of_numbers(lambda place: clamped(math.floor(place + HALF)))

    assert [disagreements(vector, right) for vector in VECTORS] == [[]] * len(VECTORS)


@pytest.mark.parametrize("mapping", WRONG.values(), ids=WRONG)
def test_a_wrong_mapping_is_rejected_by_a_vector(mapping: Mapping) -> None:
    assert any(map(partial(disagreements, mapping=mapping), VECTORS))
