"""Listed values: Boolean, Choice, and their crossing."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from ..cached_property import cached_property
from ..errors import DefinitionError
from ..randomness import RandomSource
from .interface import Answers, SingleValue, ValuePart
from .labels import MAX_VALUES, Label, check_label, check_labels
from .numbers import is_number

NAMED = 12  # so many possible answers are named one by one


@dataclass(frozen=True, slots=True)
class Boolean(SingleValue):
    """False and True, in this order."""

    @property
    def size(self) -> int:
        """Two."""
        return 2

    @property
    def labels(self) -> tuple[bool, bool]:
        """Return the values in input order."""
        return (False, True)

    def input(self, value: object, randomness: RandomSource) -> int:
        """Return 0 or 1, of a number as well; anything not equal to False or True is drawn."""
        place = _find(_BOOLEANS, value)
        return randomness.below(2) if place is None else place

    def canonical(self) -> dict[str, Any]:
        """Return the fingerprinted fields."""
        return {"type": "boolean"}

    def declaration(self) -> dict[str, Any]:
        """Return the keys of a definition that declare it."""
        return {"boolean": True}

    @property
    def extremes(self) -> tuple[object, object]:
        """Return two values that are as far apart as any."""
        return self.labels

    def answers(self) -> Answers:
        """Yield the statements of what may be answered."""
        yield "answers_boolean", {}

    def expected(self) -> tuple[str, str]:
        """Return what is wrong with another value, and what to record."""
        return "not a boolean", "record True or False"


_BOOLEANS: dict[Any, int] = {False: 0, True: 1}


@dataclass(frozen=True)
class Choice(SingleValue):
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
        place = find_label(self._places, value)
        if place is not None:
            return place
        return randomness.below(self.size) if self.other is None else self.size - 1

    def canonical(self) -> dict[str, Any]:
        """Return the fingerprinted fields."""
        return {"type": "choice", "values": list(self.values), "other": self.other}

    def declaration(self) -> dict[str, Any]:
        """Return the keys of a definition that declare it."""
        other = {} if self.other is None else {"other": self.other}
        return {"values": list(self.values)} | other

    @property
    def extremes(self) -> tuple[object, object]:
        """Return the first and the last label."""
        return self.labels[0], self.labels[-1]

    def answers(self) -> Answers:
        """Yield the statements of what may be answered: the labels, unless they are many."""
        if self.size > NAMED:
            yield "answers_many", {"size": self.size}
        else:
            yield "answers_listed", {"labels": self.named}

    @property
    def named(self) -> str:
        """The first labels, in one line."""
        labels = list(map(str, self.labels[:NAMED]))
        return ", ".join([*labels, "..."] if self.size > NAMED else labels)

    def translated(self, labels: tuple[str, ...]) -> Choice:
        """Return the choice as people read it in another language."""
        if self.other is None:
            return Choice(labels)
        return Choice(labels[:-1], labels[-1])

    @property
    def listed(self) -> tuple[Label, ...]:
        """The values, without `other`."""
        return self.values

    def expected(self) -> tuple[str, str]:
        """Return what is wrong with another value, and what to do."""
        return "not listed", "add it to `values`, declare `other`, or correct it"

    @cached_property
    def _places(self) -> dict[Label, int]:
        return {label: place for place, label in enumerate(self.labels)}


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

    def declaration(self) -> dict[str, Any]:
        """Return the keys of a definition that declare it."""
        attributes = {name: list(choice.values) for name, choice in self.attributes}
        return self.answer.declaration() | {"cross": attributes}

    @property
    def extremes(self) -> tuple[object, object]:
        """Return the first and the last combination."""
        first, last = zip(*(part.extremes for part in self.parts), strict=True)
        return first, last

    def answers(self) -> Answers:
        """Yield the statements of the answer and of the attributes."""
        yield from self.answer.answers()
        attributes = [f"{name} ({choice.named})" for name, choice in self.attributes]
        yield "cross", {"attributes": ", ".join(attributes)}

    @property
    def listed(self) -> tuple[Label, ...]:
        """Return none: the parts have lists."""
        return ()

    def split(self, value: object) -> list[tuple[ValuePart, object]]:
        """Return each part of a sequence with its domain; None in place of a missing one."""
        if not isinstance(value, tuple | list):
            return [(self, value)]
        pieces = [*value, *[None] * len(self.parts)]
        return list(zip(self.parts, pieces, strict=False))

    def expected(self) -> tuple[str, str]:
        """Return what is wrong with another value, and what to record."""
        return "no sequence", f"record a tuple of {len(self.parts)} parts"


_MISSING = object()


def _parts(value: object, most: int) -> tuple[object, ...]:
    """Return the parts of a crossed value, whatever its own code does."""
    try:
        return tuple(islice(value, most)) if isinstance(value, tuple | list) else (value,)
    except Exception:  # noqa: BLE001 - a value's own code may raise anything: it is unknown
        return ()


def find_label(places: Mapping[Label, int], value: object) -> int | None:
    """Look up a value among labels; no boolean is an integer, though true equals 1 in Python."""
    is_label = issubclass(type(value), str) or is_number(value)
    return _find(places, value) if is_label else None


def _find(places: Mapping[Any, int], value: object) -> int | None:
    """Look a value up, whatever its hash and equality do."""
    try:
        return places.get(value)
    except Exception:  # noqa: BLE001 - a value's own code may raise anything: it is unknown
        return None
