"""Parameters as they were typed, read one by one: each refusal names the field and the fix."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from difflib import get_close_matches
from enum import StrEnum
from fractions import Fraction
from typing import TypeVar

from ..errors import QueryError

Parameters = Mapping[str, Sequence[str]]
Word = TypeVar("Word", bound=StrEnum)

_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_WHOLE = re.compile(r"[0-9]{1,15}")
_EXACT = re.compile(r"-?[0-9]{1,25}(\.[0-9]{1,25})?([eE]-?[0-9]{1,2})?")
_SAID = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}


def refuse_unknown(given: Parameters, known: Iterable[str]) -> None:
    """Refuse a parameter that this question does not have."""
    names = sorted(known)
    for name in given:
        if name not in names:
            near = get_close_matches(name, names, 1)
            fix = f"did you mean {near[0]}?" if near else f"give some of {', '.join(names)}"
            raise QueryError(name, " ".join(given[name]), f"unknown parameter: {fix}")


def word(given: Parameters, name: str) -> str | None:
    """Return a parameter that is given once or not at all; an empty one is not given."""
    said = [each for each in given.get(name, ()) if each]
    if len(said) > 1:
        raise QueryError(name, said, "give it once")
    return said[0] if said else None


def words(given: Parameters, name: str) -> tuple[str, ...]:
    """Return a parameter that may be given several times."""
    return tuple(each for each in given.get(name, ()) if each)


def day(given: Parameters, name: str) -> date | None:
    """Return a UTC day."""
    said = word(given, name)
    return None if said is None else day_of(name, said)


def day_of(name: str, said: str) -> date:
    """Return the UTC day that is written so."""
    try:
        if _DAY.fullmatch(said):
            return date.fromisoformat(said)
    except ValueError as error:
        raise QueryError(name, said, "there is no such day") from error
    raise QueryError(name, said, "give a UTC day, such as 2026-12-01")


def whole(given: Parameters, name: str) -> int | None:
    """Return a whole number."""
    said = word(given, name)
    if said is not None and not _WHOLE.fullmatch(said):
        raise QueryError(name, said, "give a whole number")
    return None if said is None else int(said)


def exact(given: Parameters, name: str) -> Fraction | None:
    """Return a number, exactly as it is written."""
    said = word(given, name)
    return None if said is None else exact_of(name, said)


def exact_of(name: str, said: str) -> Fraction:
    """Return the number that is written so."""
    if not _EXACT.fullmatch(said):
        raise QueryError(name, said, "give a number, such as 0.5")
    return Fraction(said)


def number(given: Parameters, name: str) -> float | None:
    """Return a number where no exactness is at stake: a level, an error."""
    said = exact(given, name)
    return None if said is None else finite(name, said)


def finite(name: str, said: Fraction) -> float:
    """Return a number as the nearest float, which must be one."""
    try:
        return float(said)
    except OverflowError:
        raise QueryError(name, said, "give a smaller number") from None


def flag(given: Parameters, name: str) -> bool | None:
    """Return a yes or a no."""
    said = word(given, name)
    if said is not None and said.lower() not in _SAID:
        raise QueryError(name, said, "give true or false")
    return None if said is None else _SAID[said.lower()]


def member(given: Parameters, name: str, kind: type[Word], default: Word) -> Word:
    """Return one word of a closed list."""
    said = word(given, name)
    if said is None:
        return default
    try:
        return kind(said)
    except ValueError:
        raise QueryError(name, said, f"give one of {', '.join(kind)}") from None


def level_of(given: Parameters, default: float = 0.95) -> float:
    """Return the level of intervals."""
    said = number(given, "level")
    level = default if said is None else said
    if not 0 < level < 1:
        raise QueryError("level", said, "give a number between 0 and 1, such as 0.95")
    return level


def between(name: str, said: str) -> tuple[Fraction, Fraction]:
    """Return two bounds that are written LOW..HIGH."""
    low, dots, high = said.partition("..")
    if not dots:
        raise QueryError(name, said, "give two numbers with two dots between them, such as 0..60")
    bounds = exact_of(name, low), exact_of(name, high)
    if not math.isfinite(finite(name, bounds[1] - bounds[0])) or bounds[0] >= bounds[1]:
        raise QueryError(name, said, "give the lower number first")
    return bounds
