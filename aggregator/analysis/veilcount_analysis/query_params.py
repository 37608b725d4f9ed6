"""Query parameters, each declared once as a field of a frozen dataclass.

A query is a subclass of `QueryParams`. The annotation of a field holds its type, bounds and
description (`parameter`); parsing, refusals, OpenAPI parameters, click options
(`struct_options`) and form fields come from it. Beyond the bounds it may hold

- `parse`: a function of the name and the words, for what is neither a number, a day, a flag
  nor a member of an enumeration;
- `repeated`: the parameter may be given several times (a tuple always may);
- `fix`: what to write instead, where the bounds alone do not say it;
- `metavar`: the placeholder on the command line;
- `name`: that of the parameter, where it is not the field's.

Every refusal is a `QueryError`: the parameter, its value and the fix.
"""

from __future__ import annotations

import dataclasses
import math
import operator
import re
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass
from datetime import date
from difflib import get_close_matches
from enum import StrEnum
from fractions import Fraction
from functools import cache
from typing import Annotated, Any, Self, Union, get_args, get_origin, get_type_hints

from .errors import QueryError

#: as a query string holds them: several words under each name
Parameters = Mapping[str, Sequence[str]]

_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_INTEGER = re.compile(r"[0-9]{1,15}")
_NUMBER = re.compile(r"-?[0-9]{1,25}(\.[0-9]{1,25})?([eE]-?[0-9]{1,2})?")
_FLAGS = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}


@dataclass(frozen=True, slots=True)
class Declaration:
    """What a parameter means, its bounds, and the rest as above."""

    description: str
    bounds: Mapping[str, float]  # by gt, ge, lt, le
    extra: Mapping[str, Any]


NOTHING = Declaration("", {}, {})


def parameter(
    description: str,
    *,
    gt: float | None = None,
    ge: float | None = None,
    lt: float | None = None,
    le: float | None = None,
    **extra: object,
) -> Declaration:
    """Return the declaration of a parameter: what it means, its bounds, and the rest as above."""
    bounds = {"gt": gt, "ge": ge, "lt": lt, "le": le}
    limits = {name: bound for name, bound in bounds.items() if bound is not None}
    return Declaration(description, limits, extra)


Level = Annotated[
    float,
    parameter(
        "Confidence level of the intervals, 0.95 by default.",
        gt=0,
        lt=1,
        fix="give a number between 0 and 1, such as 0.95",
        metavar="LEVEL",
    ),
]
Delta = Annotated[
    Fraction,
    parameter(
        "Delta of the bounds that have one, 0.000001 by default.",
        ge=1e-30,
        lt=1,
        fix="give at least 1e-30 and less than 1",
        metavar="DELTA",
    ),
]
SeriesFilter = Annotated[
    tuple[str, ...],
    parameter(
        "A series by its fingerprint, or by the first 6 digits of it or more.",
        metavar="FINGERPRINT",
    ),
]


@dataclass(frozen=True, kw_only=True)
class QueryParams:
    """A query whose fields are its parameters; valid from construction."""

    def __post_init__(self) -> None:
        for param in params(type(self)):
            param.check(getattr(self, param.field))

    @classmethod
    def parse(cls, arguments: Parameters) -> Self:
        """Return the query of a query string or a command line."""
        declared = {param.name: param for param in params(cls)}
        for name in arguments:
            if name not in declared:
                raise _unknown(name, arguments[name], sorted(declared))
        words = {name: [word for word in arguments.get(name, ()) if word] for name in declared}
        return cls(
            **{
                param.field: param.parse(words[name])
                for name, param in declared.items()
                if words[name] or param.required
            }
        )


@dataclass(frozen=True, slots=True)
class Param:
    """One declared parameter: its name, type, default, bounds and description."""

    field: str
    kind: Any
    declaration: Declaration
    default: object

    @property
    def name(self) -> str:
        """What it is called in an address."""
        return str(self.extra.get("name", self.field))

    @property
    def extra(self) -> Mapping[str, Any]:
        """What was declared beyond type and bounds."""
        return self.declaration.extra

    @property
    def required(self) -> bool:
        """Whether it has no default."""
        return self.default is MISSING

    @property
    def repeated(self) -> bool:
        """Whether it may be given several times."""
        several = get_origin(self.kind) is tuple and Ellipsis in get_args(self.kind)
        return several or bool(self.extra.get("repeated"))

    @property
    def choices(self) -> tuple[str, ...]:
        """The members of its enumeration; empty if it has none."""
        is_enum = isinstance(self.kind, type) and issubclass(self.kind, StrEnum)
        return tuple(self.kind) if is_enum else ()

    @property
    def description(self) -> str:
        """What it means, in a sentence."""
        return self.declaration.description

    def parse(self, words: Sequence[str]) -> Any:
        """Return the value that is given as these words, or refuse them."""
        if not self.repeated and len(words) != 1:
            raise QueryError(self.name, list(words), "give it once")
        custom = self.extra.get("parse")
        if self.repeated:
            return custom(self.name, words) if custom else tuple(words)
        return (custom or self._parse_word)(self.name, words[0])

    def _parse_word(self, name: str, word: str) -> Any:
        if self.kind is date:
            return parse_day(name, word)
        if self.kind is int:
            return parse_integer(name, word)
        if self.kind is bool:
            return parse_flag(name, word)
        if self.kind in {float, Fraction}:
            number = parse_number(name, word)
            return number if self.kind is Fraction else finite(name, number)
        if self.choices and word not in self.choices:
            raise QueryError(name, word, f"give one of {', '.join(self.choices)}")
        return self.kind(word)

    def check(self, value: Any) -> None:
        """Refuse a value outside the bounds."""
        if isinstance(value, int | float | Fraction) and not self._is_within(value):
            raise QueryError(self.name, value, self._fix())

    def _is_within(self, value: float | Fraction) -> bool:
        def limit(bound: float) -> Any:  # a decimal as it is written: 1e-30 as a float is more
            return Fraction(str(bound)) if isinstance(value, Fraction) else bound

        bounds = self.declaration.bounds.items()
        return all(COMPARED[name](value, limit(bound)) for name, bound in bounds)

    def _fix(self) -> str:
        if "fix" in self.extra:
            return str(self.extra["fix"])
        low, high = self.declaration.bounds.get("ge", 0), self.declaration.bounds.get("le")
        return f"give {low:,} or more" if high is None else f"give {low:,} to {high:,}"

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON Schema of its value, as OpenAPI has it."""
        text: dict[str, Any] = {"type": "string", "minLength": 1}
        if self.repeated:
            return {"type": "array", "items": text}
        if self.choices:
            return {"type": "string", "enum": list(self.choices)}
        if self.extra.get("parse"):
            return text
        bounds = {KEYWORDS[name]: bound for name, bound in self.declaration.bounds.items()}
        return {**SCHEMAS[self.kind], **bounds}


COMPARED = {"gt": operator.gt, "ge": operator.ge, "lt": operator.lt, "le": operator.le}
#: of JSON Schema
KEYWORDS = {"gt": "exclusiveMinimum", "ge": "minimum", "lt": "exclusiveMaximum", "le": "maximum"}
SCHEMAS: Mapping[Any, Mapping[str, str]] = {
    bool: {"type": "boolean"},
    date: {"type": "string", "format": "date"},
    float: {"type": "number"},
    Fraction: {"type": "number"},
    int: {"type": "integer"},
    str: {"type": "string"},
}


def params(query: type[QueryParams]) -> tuple[Param, ...]:
    """Return the parameters that a query declares, in their order."""
    return _params(query)  # type: ignore[arg-type] # any class is hashable


@cache
def _params(query: type[QueryParams]) -> tuple[Param, ...]:
    hints = get_type_hints(query, include_extras=True)
    return tuple(
        Param(field.name, *_typed(hints[field.name]), field.default)
        for field in dataclasses.fields(query)
    )


def _typed(hint: Any) -> tuple[Any, Declaration]:
    """Return a field's type without None, and its declaration."""
    kind, declaration = get_args(hint)[:2] if get_origin(hint) is Annotated else (hint, NOTHING)
    members = get_args(kind) if get_origin(kind) in {Union, type(int | None)} else (kind,)
    return next(member for member in members if member is not type(None)), declaration


def _unknown(name: str, words: Sequence[str], known: Sequence[str]) -> QueryError:
    near = get_close_matches(name, known, 1)
    fix = f"did you mean {near[0]}?" if near else f"give some of {', '.join(known)}"
    return QueryError(name, " ".join(words), f"unknown parameter: {fix}")


def single(arguments: Parameters, name: str) -> str | None:
    """Return a parameter that is given at most once; an empty word counts as absent."""
    words = [word for word in arguments.get(name, ()) if word]
    if len(words) > 1:
        raise QueryError(name, words, "give it once")
    return words[0] if words else None


def parse_day(name: str, word: str) -> date:
    """Return a UTC day."""
    try:
        if _DAY.fullmatch(word):
            return date.fromisoformat(word)
    except ValueError as error:
        raise QueryError(name, word, "there is no such day") from error
    raise QueryError(name, word, "give a UTC day, such as 2026-12-01")


def parse_integer(name: str, word: str) -> int:
    """Return a whole number."""
    if not _INTEGER.fullmatch(word):
        raise QueryError(name, word, "give a whole number, 0 or more, of at most 15 digits")
    return int(word)


def parse_integers(name: str, words: Sequence[str]) -> tuple[int, ...]:
    """Return whole numbers that are written with commas, or one by one."""
    return tuple(parse_integer(name, part) for word in words for part in word.split(","))


def parse_flag(name: str, word: str) -> bool:
    """Return a yes or a no."""
    if word.lower() not in _FLAGS:
        raise QueryError(name, word, "give true or false")
    return _FLAGS[word.lower()]


def parse_number(name: str, word: str) -> Fraction:
    """Return a number, exactly as it is written."""
    if not _NUMBER.fullmatch(word):
        raise QueryError(name, word, "give a number, such as 0.5")
    return Fraction(word)


def finite(name: str, number: Fraction) -> float:
    """Return the nearest float, or refuse a number beyond the largest."""
    try:
        return float(number)
    except OverflowError:
        raise QueryError(name, number, "give a smaller number") from None


def parse_range(name: str, word: str) -> tuple[Fraction, Fraction]:
    """Return two bounds that are written LOW..HIGH."""
    low, dots, high = word.partition("..")
    if not dots:
        raise QueryError(name, word, "give two numbers with two dots between them, such as 0..60")
    bounds = parse_number(name, low), parse_number(name, high)
    if not math.isfinite(finite(name, bounds[1] - bounds[0])) or bounds[0] >= bounds[1]:
        raise QueryError(name, word, "give the lower number first")
    return bounds
