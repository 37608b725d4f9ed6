"""Check a recorded value for the developer: in `strict`, in development and in tests only.

In production nothing looks: a domain is total, and what is raised or logged must not depend on a
person's value. The value itself is in no message; the listed value that comes closest to it is, but
only where values are a developer's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice

from veilcount_shared import Collection, RandomSource
from veilcount_shared.domain import (
    MAX_LABEL,
    Boolean,
    Choice,
    Cross,
    Domain,
    Features,
    Number,
    OpenStrings,
)
from veilcount_shared.errors import format_value

MOST_COMPARED = 500  # labels: milliseconds
MOST_TEXT = 200  # characters of a value: no label is longer


class _DrawNeeded(Exception):
    """A value has no place in its domain: a random one would take it."""


class _NoDraws(RandomSource):
    """A source that is empty: a domain draws only in place of a value that it does not have."""

    def word(self) -> int:
        raise _DrawNeeded


def value_problem(collection: Collection, value: object, *, closest: bool) -> str | None:
    """Return what is wrong with a value that the definition does not have, and the fix."""
    for part, piece in _parts(collection.domain, value):
        if not _has(part, piece):
            return _expected(part) + (_closest(part, piece) if closest else "")
    return None


def near_miss(collection: Collection, value: object) -> str | None:
    """Return which listed value one that counts as `other` looks like."""
    for part, piece in _parts(collection.domain, value):
        if _is_other(part, piece) and (near := _closest(part, piece)):
            return f"a value that is not listed counts as `other`{near}"
    return None


def _has(domain: Domain, value: object) -> bool:
    try:
        domain.input(value, _NoDraws())
    except _DrawNeeded:
        return False
    return True


def _parts(domain: Domain, value: object) -> list[tuple[Domain, object]]:
    """Return the parts of a crossed value, each with its domain; of another, itself."""
    if isinstance(domain, Features) and isinstance(value, Mapping):
        return [(number, value.get(name)) for name, number in domain.features]
    if not isinstance(domain, Cross) or not isinstance(value, tuple | list):
        return [(domain, value)]
    pieces = [*value, *[None] * len(domain.parts)]
    return list(zip(domain.parts, pieces, strict=False))


def _expected(domain: Domain) -> str:
    match domain:
        case Number():
            return "a value that is no number: record an int, a float or a Fraction"
        case Boolean():
            return "a value that is not a boolean: record True or False"
        case Cross():
            return f"a value that is no sequence: record a tuple of {len(domain.parts)} parts"
        case Features():
            return f"a value that is no mapping: record a dict of {', '.join(domain.names)}"
        case OpenStrings():
            return f"a value that is no string of 1 to {MAX_LABEL} visible characters: record a str"
        case Choice():
            return "a value that is not listed: add it to `values`, declare `other`, or correct it"


def _is_other(domain: Domain, value: object) -> bool:
    """Whether a value has the place of `other` without being its label."""
    if not isinstance(domain, Choice) or domain.other is None:
        return False
    return domain.input(value, _NoDraws()) == len(domain.values) and value != domain.other


def _closest(domain: Domain, value: object) -> str:
    """Return the listed value that looks most like one that is not; empty if none does."""
    from difflib import get_close_matches  # noqa: PLC0415 - no production process needs it

    if not isinstance(domain, Choice):
        return ""
    labels = {str(label): label for label in islice(domain.values, MOST_COMPARED)}
    try:
        found = get_close_matches(str(value)[:MOST_TEXT], labels, n=1)
    except Exception:  # noqa: BLE001 - a value's own code may raise anything: it looks like none
        return ""
    return f" (closest: {format_value(labels[found[0]])})" if found else ""
