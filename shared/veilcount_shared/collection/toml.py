"""TOML parser of definitions; every error names the key, its value and the fix.

`0.7` is read as 7/10: no float is involved between the file and the fingerprint.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from difflib import get_close_matches
from enum import StrEnum
from fractions import Fraction
from typing import Any

from ..domain import (
    PREFIX_BITS,
    PREFIXES,
    Boolean,
    Choice,
    Cross,
    Domain,
    Features,
    Label,
    Number,
    OpenStrings,
)
from ..enums import Adjacency, Cohort, Held, Linkage, Measure, Model, Presence, Segments, Takes
from ..errors import DefinitionError
from .cross_references import FIELD_NAMES, link_collections
from .definition import Collection
from .validation import ENUMS

MAX_ABSOLUTE = 10**50
ReadValues = Callable[[str], Iterable[str]]


def parse_collections(text: str, read_values: ReadValues, file: str = "") -> dict[str, Collection]:
    """Return the collections of a TOML text, by name, in file order.

    `read_values` maps a `values_file` entry to its lines: this module does no I/O.
    """
    try:
        tables = tomllib.loads(text, parse_float=_exact)
        app = _text("app", tables.pop("app", None))
        collections = {
            name: _parse_table(app, name, table, read_values) for name, table in tables.items()
        }
        return link_collections(collections)
    except DefinitionError as error:
        raise error.with_location(file=file) from error
    except (ValueError, RecursionError) as error:
        # Not only TOMLDecodeError: Python refuses integers of thousands of digits and brackets
        # within brackets without end, some only when the message that refuses them is written.
        raise DefinitionError("file", file or "text", f"not readable TOML: {error}") from error


@dataclass(frozen=True, slots=True)
class _InvalidNumber:
    """A number that TOML allows and a definition does not: inf, nan, or absurdly long.

    Not a str, or it would pass for a label.
    """

    text: str

    def __repr__(self) -> str:
        return self.text


_DECIMAL = re.compile(r"[+-]?[0-9_]{1,25}(\.[0-9_]{1,25})?([eE][+-]?[0-9]{1,2})?")


def _exact(text: str) -> Fraction | _InvalidNumber:
    return Fraction(text) if _DECIMAL.fullmatch(text) else _InvalidNumber(text)


# -- one table -------------------------------------------------------------------------------------


def _parse_table(app: str, name: str, table: object, read_values: ReadValues) -> Collection:
    try:
        return _parse_collection(app, name, table, read_values)
    except DefinitionError as error:
        raise error.with_location(collection=name) from error


def _parse_collection(app: str, name: str, value: object, read_values: ReadValues) -> Collection:
    if not isinstance(value, dict):
        raise DefinitionError(name, value, "only app may be outside a [collection]")
    table: dict[str, Any] = value
    for key, entry in table.items():
        if key not in _READERS and key not in _DOMAIN_KEYS:
            raise DefinitionError(key, entry, _unknown(key, [*_READERS, *_DOMAIN_KEYS]))
    for key in ("question", "unit", "from", "until"):
        if key not in table:
            raise DefinitionError(key, None, f"this key is missing: {_REQUIRED[key]}")
    fields: dict[str, Any] = {
        FIELD_NAMES.get(key, key): _READERS[key](key, table[key])
        for key in table
        if key in _READERS
    }
    if fields.get("model") is Model.CENTRAL:
        fields.setdefault("adjacency", Adjacency.ADD_REMOVE)
    if fields.get("measure") is Measure.TREND:
        fields = {"takes": Takes.LAST, "held": Held.DEVICE, "presence": Presence.HIDDEN} | fields
    if fields.get("takes") is Takes.RETURNING:
        fields = {"held": Held.DEVICE, "linkage": Linkage.PERIOD} | fields
    open_to = f"{app}/{name}/{fields['start']}"
    domain = _open_strings(table, open_to) if _is_open(table) else _domain(table, read_values)
    return Collection(app=app, name=name, domain=domain, **fields)


def _unknown(key: str, known: Iterable[str]) -> str:
    near = get_close_matches(key, list(known), 1)
    return f"unknown key: did you mean {near[0]}?" if near else "unknown key: remove it"


# -- the domain ------------------------------------------------------------------------------------

_KINDS = ("values", "values_file", "boolean", "range", "features")
_NUMBERS = ("range", "features")
_DOMAIN_KEYS = (*_KINDS, "other", "cross", "discover")
OPEN = "open"  # values = "open": any string


def _is_open(table: Mapping[str, Any]) -> bool:
    """Whether the values are open strings; what open strings cannot have is refused."""
    if table.get("values") != OPEN:
        return False
    for key in (*_KINDS, "other", "cross"):
        if key in table and key != "values":
            raise DefinitionError(key, table[key], "open strings are not listed: remove it")
    return True


def _open_strings(table: Mapping[str, Any], salt: str) -> OpenStrings:
    discover = table.get("discover", False)
    if not isinstance(discover, bool):
        raise DefinitionError("discover", discover, "write discover = true, or remove it")
    return OpenStrings(salt, PREFIX_BITS, PREFIXES) if discover else OpenStrings(salt)


def _domain(table: Mapping[str, Any], read_values: ReadValues) -> Domain:
    kinds = [kind for kind in _KINDS if kind in table]
    if len(kinds) != 1:
        raise DefinitionError(
            "values",
            kinds or None,
            f"give exactly one of {', '.join(_KINDS)}: the possible answers",
        )
    kind = kinds[0]
    if "discover" in table:
        raise DefinitionError("discover", table["discover"], 'only for values = "open": remove it')
    for key in ("other", "cross"):
        if key in table and (kind in _NUMBERS or (kind, key) == ("boolean", "other")):
            raise DefinitionError(key, table[key], f"has no meaning for a {kind}: remove it")
    if kind == "range":
        return _range(table[kind])
    if kind == "features":
        return _features(table[kind])
    answer = _boolean(table[kind]) if kind == "boolean" else _choice(kind, table, read_values)
    return _cross(answer, table["cross"]) if "cross" in table else answer


def _boolean(value: object) -> Boolean:
    if value is not True:
        raise DefinitionError("boolean", value, "write boolean = true, or give values")
    return Boolean()


def _choice(kind: str, table: Mapping[str, Any], read_values: ReadValues) -> Choice:
    other = _text("other", table["other"]) if "other" in table else None
    if kind == "values":
        return Choice(_labels("values", table["values"]), other)
    try:
        return Choice(tuple(read_values(_text("values_file", table["values_file"]))), other)
    except DefinitionError as error:  # named after the key that stands in this file
        key = "values_file" if error.key == "values" else error.key
        raise DefinitionError(key, error.value, error.fix) from error


def _range(value: object) -> Number:
    if not isinstance(value, list) or len(value) != 2:  # noqa: PLR2004 - two ends
        raise DefinitionError("range", value, "give two numbers, such as [0, 240]")
    low, high = (_number("range", end) for end in value)
    return Number(low, high)


def _features(value: object) -> Features:
    if not isinstance(value, dict) or not value:
        fix = "give a table: features = {age = [0, 120], hours = [0, 60]}"
        raise DefinitionError("features", value, fix)
    features = []
    for name in sorted(value):  # a TOML table has no order of its own
        try:
            features.append((name, _range(value[name])))
        except DefinitionError as error:
            raise DefinitionError(f"features.{name}", error.value, error.fix) from error
    return Features(tuple(features))


def _cross(answer: Boolean | Choice, value: object) -> Cross:
    if not isinstance(value, dict) or not value:
        raise DefinitionError("cross", value, 'give a table: cross = {plan = ["free", "paid"]}')
    attributes = []
    for name in sorted(value):  # a TOML table has no order of its own
        try:
            attributes.append((name, Choice(_labels(f"cross.{name}", value[name]))))
        except DefinitionError as error:
            raise DefinitionError(f"cross.{name}", error.value, error.fix) from error
    return Cross(answer, tuple(attributes))


# -- values by type --------------------------------------------------------------------------------


def _text(key: str, value: object) -> str:
    if not isinstance(value, str):
        raise DefinitionError(key, value, f'give a string: {key} = "..."')
    return value


def _number(key: str, value: object) -> Fraction:
    if isinstance(value, int | Fraction) and not isinstance(value, bool):
        number = Fraction(value)
        if abs(number) < MAX_ABSOLUTE:
            return number
    raise DefinitionError(key, value, "give a number, finite and of ordinary length")


def _whole(key: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise DefinitionError(key, value, "give a whole number")
    return value


def _day(key: str, value: object) -> date:
    if isinstance(value, datetime) or not isinstance(value, date):
        raise DefinitionError(key, value, f"give a UTC date without quotes: {key} = 2026-12-01")
    return value


def _labels(key: str, value: object) -> tuple[Label, ...]:
    if not isinstance(value, list):
        raise DefinitionError(key, value, f'give a list: {key} = ["A", "B"]')
    return tuple(value)


def _segments(key: str, value: object) -> Segments:
    if not isinstance(value, dict) or not value:
        raise DefinitionError(key, value, 'give a table: segments = {arm = ["A", "B"]}')
    # In the order of their names: a TOML table has none of its own.
    return tuple((name, _labels(f"{key}.{name}", value[name])) for name in sorted(value))


def _cohort(key: str, value: object) -> Cohort:
    if not isinstance(value, dict) or set(value) != {"draw", "of", "number"}:
        raise DefinitionError(key, value, 'write cohort = {draw = "spring", of = 3, number = 0}')
    return Cohort(
        _text("cohort.draw", value["draw"]),
        _whole("cohort.of", value["of"]),
        _whole("cohort.number", value["number"]),
    )


def _one_of(kind: type[StrEnum]) -> Callable[[str, object], StrEnum]:
    def read(key: str, value: object) -> StrEnum:
        try:
            return kind(_text(key, value))
        except ValueError as error:
            raise DefinitionError(
                key, value, "give one of " + ", ".join(f'"{member}"' for member in kind)
            ) from error

    return read


_READERS: dict[str, Callable[[str, object], Any]] = {
    **{key: _one_of(kind) for key, kind in ENUMS.items()},
    "question": _text,
    "epsilon": _number,
    "per_day": _whole,
    "changes": _whole,
    "from": _day,
    "until": _day,
    "answers": _whole,
    "late": _whole,
    "segments": _segments,
    "cohort": _cohort,
    "twin": _text,
    "tokens": _text,
    "budget": _number,
    "delta": _number,
    "owner": _text,
    "purpose": _text,
    "replaces": _text,
}
_REQUIRED = {
    "question": "the question in plain words",
    "unit": 'what epsilon protects, "event", "day", "week", "month" or "user"',
    "from": "the first day, such as 2026-12-01",
    "until": "the first day after the campaign",
}
