"""What a domain tells people: the possible answers, and what to record instead of another value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Protocol

from ..randomness import RandomSource
from .labels import Label

#: keys of statements, and the values that fill them
Answers = Iterator[tuple[str, Mapping[str, object]]]


class ValuePart(Protocol):
    """A domain of one part of a value."""

    @property
    def listed(self) -> tuple[Label, ...]:
        """The values of a list; none where there is no list."""

    def input(self, value: object, randomness: RandomSource, /) -> int:
        """Return the input of a value; one that has no place is drawn."""

    def expected(self) -> tuple[str, str]:
        """Return what is wrong with a value that has no place, and what to record."""


class SingleValue:
    """A domain whose values have one part."""

    __slots__ = ()

    @property
    def listed(self) -> tuple[Label, ...]:
        """Return none: only a choice has a list."""
        return ()

    def split(self: ValuePart, value: object) -> list[tuple[ValuePart, object]]:
        """Return each part of a value with its domain: one."""
        return [(self, value)]
