"""Several values of one person by their names: what numbers and questions have in common."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Generic, Protocol, TypeVar

from ..errors import DefinitionError
from ..randomness import RandomSource
from .interface import ValuePart


class SizedPart(ValuePart, Protocol):
    """A domain of one part, with so many inputs."""

    @property
    def size(self) -> int:
        """The number of inputs."""


P = TypeVar("P", bound=SizedPart)


class NamedParts(Generic[P]):
    """A domain of mappings from names to values.

    The input is one number with the input of each part as a digit, that of the first name the
    highest. Each part is total on its own.
    """

    @property
    def parts(self) -> tuple[tuple[str, P], ...]:
        """The domain of each part, by name."""
        raise NotImplementedError

    @property
    def names(self) -> tuple[str, ...]:
        """The names, in the order of the digits."""
        return tuple(name for name, _ in self.parts)

    @property
    def size(self) -> int:
        """The number of combinations."""
        return math.prod(part.size for _, part in self.parts)

    def input(self, value: object, randomness: RandomSource) -> int:
        """Return the inputs of all parts; one that is missing or has no place is drawn."""
        point = 0
        for name, part in self.parts:
            point = point * part.size + part.input(_entry(value, name), randomness)
        return point

    def split(self, value: object) -> list[tuple[ValuePart, object]]:
        """Return each part of a mapping with its domain; None in place of a missing one."""
        if not isinstance(value, Mapping):
            return [(self, value)]
        return [(part, value.get(name)) for name, part in self.parts]

    @property
    def listed(self) -> tuple[()]:
        """Return none: the parts may have lists."""
        return ()

    def expected(self) -> tuple[str, str]:
        """Return what is wrong with another value, and what to record."""
        return "no mapping", f"record a dict of {', '.join(self.names)}"


def check_names(key: str, order: tuple[str, ...], least: int, most: int) -> None:
    """Require so many names, each once and in their order: a TOML table has none of its own."""
    if list(order) != sorted(set(order)):
        fix = "give each name once, in the order of the names"
        raise DefinitionError(key, list(order), fix)
    if not least <= len(order) <= most:
        raise DefinitionError(key, f"{len(order)} {key}", f"give {least} to {most} {key}")


def _entry(value: object, name: str) -> object:
    """Return the value under a name, whatever its own code does."""
    try:
        return value[name] if isinstance(value, Mapping) else None
    except Exception:  # noqa: BLE001 - a value's own code may raise anything: it is missing
        return None
