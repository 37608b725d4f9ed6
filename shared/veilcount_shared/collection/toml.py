"""TOML parser of definitions; every error names the key, its value and the fix.

`0.7` is read as 7/10: no float is involved between the file and the fingerprint.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum
from fractions import Fraction
from typing import Any

from ..enums import Cohort, Held, Linkage, Model, Presence, Segments, Takes
from ..errors import DefinitionError
from ..kinds import DOMAIN_KEYS, ReadValues, TableContext, kind_of, parse_domain
from ..kinds.toml_values import read_labels, read_named, read_number, read_text, read_whole
from ..models import TRUST_MODELS
from ..translations import TEXT_KEYS
from . import groups
from .batches import read_batch
from .cross_references import FIELD_NAMES, link_collections
from .definition import Collection
from .margins import read_day, read_margins
from .texts import read_texts
from .validation import ENUMS

MAX_DEPTH = 320  # of tables and lists


def parse_collections(text: str, read_values: ReadValues, file: str = "") -> dict[str, Collection]:
    """Return the collections of a TOML text, by name, in file order.

    `read_values` maps a `values_file` entry to its lines: this module does no I/O.
    """
    try:
        tables = tomllib.loads(text, parse_float=_exact)
        _require_depth(tables)
        return parse_tables(tables.pop("app", None), tables, read_values)
    except DefinitionError as error:
        raise error.with_location(file=file) from error
    except (ValueError, RecursionError) as error:
        # Not only TOMLDecodeError: Python refuses integers of thousands of digits and brackets
        # within brackets without end, some only when the message that refuses them is written.
        is_compiled = text.lstrip().startswith('{\n "compiled"')
        problem = (
            "compiled definitions, give the TOML file that they are of" if is_compiled else error
        )
        raise DefinitionError("file", file or "text", f"not readable TOML: {problem}") from error


def _require_depth(tables: object) -> None:
    """Refuse what is nested so deeply that it depends on Python's version whether it is read."""
    level = [tables]
    for _ in range(MAX_DEPTH):
        level = [part for value in level for part in _parts(value)]
    if level:
        raise ValueError(f"it is nested more than {MAX_DEPTH} times")


def _parts(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def parse_tables(
    app: object, tables: Mapping[str, object], read_values: ReadValues
) -> dict[str, Collection]:
    """Return the collections of tables by name, in their order."""
    name_of_app = read_text("app", app)
    collections = {
        name: _parse_table(name_of_app, name, tables[name], read_values)
        for name in tables
        if name != groups.TABLE
    }
    return groups.link_groups(tables.get(groups.TABLE, {}), link_collections(collections))


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
        if key not in _KEYS:
            raise DefinitionError(key, entry, _unknown(key, _KEYS))
    for key in ("question", "unit", "from", "until"):
        if key not in table:
            raise DefinitionError(key, None, f"this key is missing: {_REQUIRED[key]}")
    fields: dict[str, Any] = read_texts(table) | {
        FIELD_NAMES.get(key, key): _READERS[key](key, table[key])
        for key in table
        if key in _READERS
    }
    fields = {**TRUST_MODELS[fields.get("model", Model.LOCAL)].defaults, **fields}
    if fields.get("takes") is Takes.RETURNING:
        fields = {"held": Held.DEVICE, "linkage": Linkage.PERIOD} | fields
    domain = parse_domain(table, TableContext(app, name, fields["start"], read_values))
    kind = kind_of(domain, fields.get("measure"))
    model = fields.get("model", Model.LOCAL)
    if "batch" in table:
        rules = read_batch(table["batch"], model, fields["unit"])
        fields = {"late": 0, **fields, "batch": rules}
    if TRUST_MODELS[model].hides_presence and "presence" not in fields:
        fields["presence"] = _hidden_presence(kind.absent_fix)
    fields = {**kind.defaults, **fields}
    return Collection(app=app, name=name, domain=domain, **fields)


def _hidden_presence(absent_fix: str) -> Presence:
    """Return the default of a shuffled collection, or refuse to decide for its author."""
    if absent_fix:
        fix = (
            'a period without a record is no answer of this kind: write presence = "public", and'
            " the shuffler sees in which periods a device had an answer"
        )
        raise DefinitionError("presence", None, fix)
    return Presence.HIDDEN


def _unknown(key: str, known: Iterable[str]) -> str:
    near = get_close_matches(key, list(known), 1)
    return f"unknown key: did you mean {near[0]}?" if near else "unknown key: remove it"


# -- values by type --------------------------------------------------------------------------------


def _segments(key: str, value: object) -> Segments:
    return tuple(read_named(key, value, read_labels, 'give a table: segments = {arm = ["A", "B"]}'))


def _cohort(key: str, value: object) -> Cohort:
    if not isinstance(value, dict) or set(value) != {"draw", "of", "number"}:
        raise DefinitionError(key, value, 'write cohort = {draw = "spring", of = 3, number = 0}')
    return Cohort(
        read_text("cohort.draw", value["draw"]),
        read_whole("cohort.of", value["of"]),
        read_whole("cohort.number", value["number"]),
    )


def _one_of(kind: type[StrEnum]) -> Callable[[str, object], StrEnum]:
    def read(key: str, value: object) -> StrEnum:
        try:
            return kind(read_text(key, value))
        except ValueError as error:
            raise DefinitionError(
                key, value, "give one of " + ", ".join(f'"{member}"' for member in kind)
            ) from error

    return read


_READERS: dict[str, Callable[[str, object], Any]] = {
    **{key: _one_of(kind) for key, kind in ENUMS.items()},
    "epsilon": read_number,
    "per_day": read_whole,
    "changes": read_whole,
    "from": read_day,
    "until": read_day,
    "answers": read_whole,
    "late": read_whole,
    "segments": _segments,
    "cohort": _cohort,
    "twin": read_text,
    "tokens": read_text,
    "budget": read_number,
    "delta": read_number,
    "owner": read_text,
    "replaces": read_text,
    "measured_in": read_text,
    "margins": read_margins,
}
_KEYS = (*TEXT_KEYS, *_READERS, "batch", *DOMAIN_KEYS)
_REQUIRED = {
    "question": "the question in plain words",
    "unit": 'what epsilon protects, "event", "day", "week", "month" or "user"',
    "from": "the first day, such as 2026-12-01",
    "until": "the first day after the campaign",
}
