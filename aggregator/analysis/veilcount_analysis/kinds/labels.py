"""Values of a domain as parameters and JSON, and their places.

A value of a crossed domain is an object, {"answer": "dark", "plan": "free"}; in a parameter too.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache
from typing import cast

import numpy as np

from veilcount_shared import Collection
from veilcount_shared.domain import (
    MAX_LABEL,
    Boolean,
    Choice,
    Cross,
    Label,
    Number,
    OpenStrings,
    Several,
)

from ..errors import QueryError
from ..estimation import margin
from ..estimation.confidence_intervals import Counts
from ..mechanisms.candidate_search import Candidates
from ..text.result_columns import ANSWER, TAKEN, spelled

FEW = 10_000  # labels among which a similar one is looked for

Plain = str | int | float | bool
Value = Plain | Mapping[str, Plain]


@dataclass(frozen=True, slots=True)
class ValuePlaces:
    """The places of the values that a domain has, in the requested order, and unknown words."""

    places: Counts
    unknown: tuple[str, ...]


def part_names(domain: Cross) -> tuple[str, ...]:
    """Return what the parts of a crossed value are called, the answer first."""
    names = tuple(name for name, _ in domain.attributes)
    return (TAKEN if ANSWER in names else ANSWER, *names)


def value_at(collection: Collection, place: int) -> Value:
    """Return the value of a place."""
    domain = collection.domain
    if isinstance(domain, Cross):
        return _combination(domain, place)
    if isinstance(domain, Number | OpenStrings):
        raise TypeError(f"{collection.name}: values are not listed")
    return domain.labels[place]


def _combination(domain: Cross, place: int) -> Value:
    labels: list[Label] = []
    for part in reversed(domain.parts):
        place, digit = divmod(place, part.size)
        labels.append(part.labels[digit])
    return dict(zip(part_names(domain), reversed(labels), strict=True))


def value_of_label(collection: Collection, label: object) -> Value:
    """Return the label of a release as values are written here."""
    if isinstance(label, Sequence) and isinstance(collection.domain, Cross):
        return dict(zip(part_names(collection.domain), label, strict=True))
    return cast("Plain", label)


def value_key(value: Value | None) -> str:
    """Return what two definitions have in common of a value; the order of parts is none of it."""
    return json.dumps(value, sort_keys=True)


def places_of(collection: Collection, words: Iterable[str]) -> ValuePlaces:
    """Return where values stand; a word that is no value may be several, with commas between."""
    if isinstance(collection.domain, OpenStrings):
        named = Candidates.from_texts(collection.domain, tuple(words))
        return ValuePlaces(named.places, named.unreadable)
    table = _table(collection)
    places: list[int] = []
    unknown: list[str] = []
    for word in words:
        one = _place(collection, table, word)
        several = [word] if one is not None or word.startswith("{") else word.split(",")
        for part in several:
            place = _place(collection, table, part)
            if place is None:
                unknown.append(part)
            else:
                places.append(place)
    return ValuePlaces(np.array(list(dict.fromkeys(places)), np.int64), tuple(unknown))


def no_value(collection: Collection, word: str, name: str = "values") -> QueryError:
    """Return the error for an unknown value."""
    if isinstance(collection.domain, Cross):
        example = json.dumps(value_at(collection, 0), ensure_ascii=False)
        return QueryError(name, word, f"no such value: give objects such as {example}")
    if isinstance(collection.domain, OpenStrings):
        return QueryError(name, word, f"give strings of 1 to {MAX_LABEL} visible characters")
    table = _table(collection)
    near = get_close_matches(word, list(table), 3) if len(table) <= FEW else []
    some = near or list(table)[:3]
    meant = "did you mean" if near else "its values are such as"
    return QueryError(name, word, f"no such value: {meant} {', '.join(some)}")


def groups_of(collection: Collection, words: Sequence[str]) -> dict[str, Counts]:
    """Return groups of values by their names.

    Of a crossed domain, the labels of one part; of any other, NAME:VALUE,VALUE.
    """
    domain = collection.domain
    if isinstance(domain, Cross):
        return _margin(domain, words)
    groups = {}
    for word in words:
        name, colon, values = word.partition(":")
        if not (name and colon and values) or name in groups:
            raise QueryError("group", word, "give a name and values, such as warm:red,orange")
        places = places_of(collection, [values])
        if places.unknown:
            raise no_value(collection, places.unknown[0], "group")
        groups[name] = places.places
    return groups


def _margin(domain: Cross, words: Sequence[str]) -> dict[str, Counts]:
    names = part_names(domain)
    if len(words) > 1 or words[0] not in names:
        raise QueryError("group", ", ".join(words), f"give one of {', '.join(names)}")
    part = None if words[0] == names[0] else words[0]
    return {spelled(label): places for label, places in margin(domain, part).items()}


@lru_cache(maxsize=8)  # of a million values it takes a while
def _table(collection: Collection) -> Mapping[str, int]:
    domain = collection.domain
    if not isinstance(domain, Boolean | Choice | Several):
        return {}
    return {spelled(label): place for place, label in enumerate(domain.labels)}


def _place(collection: Collection, table: Mapping[str, int], word: str) -> int | None:
    domain = collection.domain
    return _crossed(domain, word) if isinstance(domain, Cross) else table.get(word)


def _crossed(domain: Cross, word: str) -> int | None:
    try:
        value = json.loads(word)
    except (ValueError, RecursionError):
        return None
    names = part_names(domain)
    if not isinstance(value, dict) or set(value) != set(names):
        return None
    place = 0
    for name, part in zip(names, domain.parts, strict=True):
        known = [spelled(label) for label in part.labels]
        if spelled(value[name]) not in known:
            return None
        place = place * part.size + known.index(spelled(value[name]))
    return place
