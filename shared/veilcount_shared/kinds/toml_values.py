"""Read the values of a TOML table by type; an error names the key, the value and the fix."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from typing import Any, TypeVar

from ..domain import Label
from ..errors import DefinitionError

MAX_ABSOLUTE = 10**50
Table = Mapping[str, Any]
T = TypeVar("T")


def read_text(key: str, value: object) -> str:
    """Return a string."""
    if not isinstance(value, str):
        raise DefinitionError(key, value, f'give a string: {key} = "..."')
    return value


def read_number(key: str, value: object) -> Fraction:
    """Return a number exactly."""
    if isinstance(value, int | Fraction) and not isinstance(value, bool):
        number = Fraction(value)
        if abs(number) < MAX_ABSOLUTE:
            return number
    raise DefinitionError(key, value, "give a number, finite and of ordinary length")


def read_whole(key: str, value: object) -> int:
    """Return a whole number."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise DefinitionError(key, value, "give a whole number")
    return value


def read_flag(key: str, value: object) -> bool:
    """Return true or false."""
    if not isinstance(value, bool):
        raise DefinitionError(key, value, "give true or false")
    return value


def read_labels(key: str, value: object) -> tuple[Label, ...]:
    """Return the labels of a list; the domain checks each of them."""
    if not isinstance(value, list):
        raise DefinitionError(key, value, f'give a list: {key} = ["A", "B"]')
    return tuple(value)


def read_named(
    key: str, value: object, read: Callable[[str, object], T], fix: str
) -> Iterator[tuple[str, T]]:
    """Yield the entries of a table in the order of their names: TOML tables have none of their own.

    An error within an entry is about `key.name`.
    """
    if not isinstance(value, dict) or not value:
        raise DefinitionError(key, value, fix)
    for name in sorted(value):
        try:
            entry = read(f"{key}.{name}", value[name])
        except DefinitionError as error:
            raise DefinitionError(f"{key}.{name}", error.value, error.fix) from error
        yield name, entry
