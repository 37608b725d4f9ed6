"""Compiled definitions: what a client in any language loads, and selects and derives nothing.

Of each collection they hold the canonical text and its fingerprint, the mechanism with its tables,
and the sentences for people. Read back, they go through the parser of TOML, and must agree with
what is selected here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import date
from fractions import Fraction
from typing import Any

from ..errors import DefinitionError
from ..periods import Unit, count_periods
from ..translations import TEXT_KEYS, by_language
from . import canonical
from .definition import Collection
from .groups import TABLE
from .toml import parse_tables

COMPILED = 1  # the format of the file
RECOMPILE = "it was changed or made by another release: run veilcount compile again"
#: no exponent: ten letters of it are a number of a billion digits
_FRACTION = re.compile(r"-?[0-9]{1,150}(/[1-9][0-9]{0,150})?")


def compiled_facts(collection: Collection) -> dict[str, Any]:
    """Return what a device must have of a collection."""
    return {
        "name": collection.name,
        "fingerprint": collection.fingerprint,
        "canonical": canonical.canonical_text(collection, collection.mechanism),
        **{key: _texts(collection, key) for key in TEXT_KEYS},
        "owner": collection.owner,
        "replaces": collection.replaces,
        "periods": collection.periods,
        "inputs": collection.inputs,
        "message_bytes": collection.message_bytes,
        "mechanism": collection.mechanism.canonical(),
        "tables": collection.mechanism.tables(),
    }


def _texts(collection: Collection, key: str) -> dict[str, Any]:
    """Return a text by language; under "" what holds for all others."""
    fallback = getattr(collection, key, None)
    texts = by_language(collection.translations, key)
    return texts if fallback is None else {"": fallback, **texts}


# -- read back -------------------------------------------------------------------------------------


def parse_compiled(text: str, file: str = "") -> dict[str, Collection]:
    """Return the collections of compiled definitions, by name, in file order."""
    try:
        rows = _rows(json.loads(text))
        forms = {row["name"]: json.loads(row["canonical"]) for row in rows}
        collections = parse_canonical(forms, rows)
        for row in rows:
            _check_agreement(row, collections[row["name"]])
    except DefinitionError as error:
        raise error.with_location(file=file) from error
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        fix = f"no compiled definitions: {RECOMPILE}"
        raise DefinitionError("file", file or "text", fix) from error
    return collections


def parse_canonical(
    forms: Mapping[str, Mapping[str, Any]], rows: Iterable[Mapping[str, Any]] = ()
) -> dict[str, Collection]:
    """Return the collections of canonical forms: all that a fingerprint pins.

    `rows` add what is outside it. A form that is none raises ValueError, LookupError or TypeError;
    whoever has its fingerprint compares it with that of the collection.
    """
    outside = {row["name"]: row for row in rows}
    tables = {name: _table(outside.get(name, {}), form) for name, form in forms.items()}
    tables |= _groups(forms.values())
    apps = {form["app"] for form in forms.values()}
    return parse_tables(apps.pop() if len(apps) == 1 else None, tables, _no_file)


def _rows(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    if document["compiled"] != COMPILED:
        fix = f"this release reads format {COMPILED}: run its veilcount compile"
        raise DefinitionError("compiled", document["compiled"], fix)
    rows: list[dict[str, Any]] = document["collections"]
    return rows


def _no_file(name: str) -> list[str]:
    raise DefinitionError("values_file", name, RECOMPILE)


def _check_agreement(row: Mapping[str, Any], collection: Collection) -> None:
    """Require what is derived here, key by key: a client elsewhere derives nothing."""
    for key, value in json.loads(json.dumps(compiled_facts(collection))).items():
        if row.get(key) != value:
            raise DefinitionError(key, None, RECOMPILE).with_location(collection=collection.name)


def _table(row: Mapping[str, Any], fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the table of TOML that has a canonical form."""
    same = ("model", "adjacency", "measure", "unit", "per_day", "takes", "linkage", "presence")
    table = {
        key: fields.get(key) for key in (*same, "noise", "late", "tokens", "cohort", "changes")
    }
    table |= {key: fields.get(key) for key in TEXT_KEYS}
    table |= {key: row.get(key) for key in ("owner", "replaces")}
    numbers = {key: fields[key] for key in ("epsilon", "budget", "delta")}
    table |= {key: _fraction(text) for key, text in numbers.items() if text is not None}
    start, until = (date.fromisoformat(fields[key]) for key in ("from", "until"))
    table |= {"from": start, "until": until}
    table["segments"] = dict(fields["segments"])
    periods = count_periods(Unit(fields["unit"]), start, until)
    table["answers"] = fields["answers"] if fields["answers"] != periods else None
    waits = fields["takes"] != "first" or fields["held"] == "device"
    table["held"] = fields["held"] if waits else None
    if fields["batch"]:
        table["batch"] = _batch(fields["batch"])
        del table["late"]
    table["twin"] = fields["twin"] if fields["model"] != "central" else None
    table |= _DOMAINS[fields["domain"]["type"]](fields["domain"])
    return {key: value for key, value in table.items() if value not in (None, {}, [])}


def _groups(forms: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the table of the groups; the members' digest is derived again, so all are there."""
    groups = [form["group"] for form in forms if form["group"]]
    return {TABLE: {group["name"]: {"questions": group["questions"]} for group in groups}}


def _batch(fields: Mapping[str, Any]) -> dict[str, Any]:
    fractions = {key: fields[key] and _fraction(fields[key]) for key in ("epsilon", "delta")}
    return {key: value for key, value in {**fields, **fractions}.items() if value is not None}


def _fraction(text: str) -> Fraction:
    if not _FRACTION.fullmatch(text):
        raise ValueError("no fraction as a canonical text has it")
    return Fraction(text)


def _bounds(domain: Mapping[str, Any]) -> list[Fraction]:
    return [_fraction(domain["low"]), _fraction(domain["high"])]


def _cross(domain: Mapping[str, Any]) -> dict[str, Any]:
    answer = domain["answer"]
    return {**_DOMAINS[answer["type"]](answer), "cross": dict(domain["attributes"])}


_DOMAINS: dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
    "boolean": lambda _domain: {"boolean": True},
    "choice": lambda domain: {"values": domain["values"], "other": domain["other"]},
    "several": lambda domain: {
        **{key: domain[key] for key in ("values", "other", "most")},
        "choose": "several",
    },
    "range": lambda domain: {"range": _bounds(domain)},
    "features": lambda domain: {
        "features": {name: _bounds(number) for name, number in domain["features"]}
    },
    "questions": lambda domain: {"questions": dict(domain["questions"]), "tables": True},
    "open": lambda domain: {"values": "open", "discover": bool(domain["prefixes"]) or None},
    "cross": _cross,
}
