"""Check a recorded value for the developer: in `strict`, in development and in tests only.

In production nothing looks: a domain is total, and what is raised or logged must not depend on a
person's value. The value itself is in no message; its type is, and the listed value that comes
closest to it, but that only where values are a developer's own. Segments are public.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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
from veilcount_shared.domain.labels import Label
from veilcount_shared.errors import UnknownSegment, format_types, format_value

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
            return _expected(part, piece) + (_closest(part, piece) if closest else "")
    return None


def check_segments(collection: Collection, labels_by_name: Mapping[str, object]) -> None:
    """Raise UnknownSegment with the listed value that comes closest."""
    try:
        collection.segment(**labels_by_name)
    except UnknownSegment as error:
        closest = _closest_label(error.labels, labels_by_name.get(error.name))
        problem = error.problem + closest
        raise UnknownSegment(error.collection, error.name, problem, error.labels) from None


def near_miss(collection: Collection, value: object) -> str | None:
    """Return which listed value one that counts as `other` looks like."""
    for part, piece in _parts(collection.domain, value):
        if _is_other(part, piece) and (near := _closest(part, piece)):
            return f"a value that is not listed ({_types(part, piece)}) counts as `other`{near}"
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


def _expected(domain: Domain, value: object) -> str:
    problem, fix = _problem_and_fix(domain)
    return f"a value that is {problem} ({_types(domain, value)}): {fix}"


def _problem_and_fix(domain: Domain) -> tuple[str, str]:
    match domain:
        case Number():
            return "no number", "record an int, a float or a Fraction"
        case Boolean():
            return "not a boolean", "record True or False"
        case Cross():
            return "no sequence", f"record a tuple of {len(domain.parts)} parts"
        case Features():
            return "no mapping", f"record a dict of {', '.join(domain.names)}"
        case OpenStrings():
            return f"no string of 1 to {MAX_LABEL} visible characters", "record a str"
        case Choice():
            return "not listed", "add it to `values`, declare `other`, or correct it"


def _types(domain: Domain, value: object) -> str:
    if isinstance(domain, Choice):
        return format_types(value, domain.values)
    return f"got {type(value).__name__}"


def _is_other(domain: Domain, value: object) -> bool:
    """Whether a value has the place of `other` without being its label."""
    if not isinstance(domain, Choice) or domain.other is None:
        return False
    return domain.input(value, _NoDraws()) == len(domain.values) and value != domain.other


def _closest(domain: Domain, value: object) -> str:
    return _closest_label(domain.values, value) if isinstance(domain, Choice) else ""


def _closest_label(labels: Iterable[Label], value: object) -> str:
    """Return the listed value that looks most like one that is not; empty if none does."""
    from difflib import get_close_matches  # noqa: PLC0415 - no production process needs it

    labels_by_text = {str(label): label for label in islice(labels, MOST_COMPARED)}
    try:
        matches = get_close_matches(str(value)[:MOST_TEXT], labels_by_text, n=1)
    except Exception:  # noqa: BLE001 - a value's own code may raise anything: it looks like none
        return ""
    return f" (closest: {format_value(labels_by_text[matches[0]])})" if matches else ""
