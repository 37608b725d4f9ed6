"""Check a recorded value for the developer: in `strict`, in development and in tests only.

In production nothing looks: a domain is total, and what is raised or logged must not depend on a
person's value. The value itself is in no message; its type is, and the listed value that comes
closest to it, but that only where values are a developer's own. Segments are public.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice

from veilcount_shared import Collection, RandomSource
from veilcount_shared.domain import MAX_LABEL, Choice, ValuePart
from veilcount_shared.domain.labels import Label
from veilcount_shared.errors import UnknownSegment, format_types, format_value

MOST_COMPARED = 500  # labels: milliseconds


class _DrawNeeded(Exception):
    """A value has no place in its domain: a random one would take it."""


class _NoDraws(RandomSource):
    """A source that is empty: a domain draws only in place of a value that it does not have."""

    def word(self) -> int:
        raise _DrawNeeded


def value_problem(collection: Collection, value: object, *, closest: bool) -> str | None:
    """Return what is wrong with a value that the definition does not have, and the fix."""
    for part, piece in collection.domain.split(value):
        if not _has(part, piece):
            return _expected(part, piece) + (_closest_label(part.listed, piece) if closest else "")
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
    for part, piece in collection.domain.split(value):
        if _is_other(part, piece) and (near := _closest_label(part.listed, piece)):
            return f"a value that is not listed ({_types(part, piece)}) counts as `other`{near}"
    return None


def _has(domain: ValuePart, value: object) -> bool:
    try:
        domain.input(value, _NoDraws())
    except _DrawNeeded:
        return False
    return True


def _expected(domain: ValuePart, value: object) -> str:
    problem, fix = domain.expected()
    return f"a value that is {problem} ({_types(domain, value)}): {fix}"


def _types(domain: ValuePart, value: object) -> str:
    if domain.listed:
        return format_types(value, domain.listed)
    return f"got {type(value).__name__}"


def _is_other(domain: ValuePart, value: object) -> bool:
    """Whether a value has the place of `other` without being its label."""
    if not isinstance(domain, Choice) or domain.other is None:
        return False
    return domain.input(value, _NoDraws()) == len(domain.values) and value != domain.other


def _closest_label(labels: Iterable[Label], value: object) -> str:
    """Return the listed value that looks most like one that is not; empty if none does."""
    from difflib import get_close_matches  # noqa: PLC0415 - no production process needs it

    labels_by_text = {str(label): label for label in islice(labels, MOST_COMPARED)}
    try:
        matches = get_close_matches(str(value)[:MAX_LABEL], labels_by_text, n=1)
    except Exception:  # noqa: BLE001 - a value's own code may raise anything: it looks like none
        return ""
    return f" (closest: {format_value(labels_by_text[matches[0]])})" if matches else ""
