"""`[group.NAME]`: collections of one file of which each person answers one."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass, replace
from itertools import pairwise
from typing import Any

from ..definition_record import QuestionGroup
from ..errors import DefinitionError, format_value
from ..kinds.toml_values import read_labels
from .canonical import canonical_text
from .definition import Collection
from .validation import NAME, NAME_FIX

TABLE = "group"  # a collection cannot have this name
MEMBERS = range(2, 101)
EXAMPLE = 'write [group.habits] with questions = ["a", "b", "c"]'
#: what members have in common: the key of the file, and what is compared. So that the draw alone
#: decides what leaves a device when, and how much of the epsilon it costs.
COMMON = {
    **{key: key for key in ("model", "epsilon", "unit", "per_day")},
    "from": "start",
    "until": "until",
    "answers": "answering",
    **{key: key for key in ("linkage", "held", "presence", "batch")},
}


def link_groups(tables: object, collections: Mapping[str, Collection]) -> dict[str, Collection]:
    """Return the collections, the members of each group with it; raise if one does not fit."""
    if not isinstance(tables, dict):
        raise DefinitionError(TABLE, tables, EXAMPLE)
    linked = dict(collections)
    for name, table in tables.items():
        try:
            members = _members(name, table, linked)
            group = QuestionGroup(name, tuple(members), _digest(name, members))
            for member in members.values():
                linked[member.name] = replace(member, group=group)
        except DefinitionError as error:
            raise error.with_location(collection=f"{TABLE}.{name}") from error
    return linked


def _members(name: str, table: object, collections: Mapping[str, Collection]) -> dict[str, Any]:
    """Return the members of a group by name, in its order."""
    if not isinstance(table, dict):
        raise DefinitionError(TABLE, name, f"a collection cannot be called {TABLE}: {EXAMPLE}")
    if not NAME.fullmatch(name):
        raise DefinitionError(TABLE, name, NAME_FIX)
    for key in table:
        if key != "questions":
            raise DefinitionError(key, table[key], "unknown key: a group has questions alone")
    names = read_labels("questions", table.get("questions"))
    if len(names) not in MEMBERS or len({*map(str, names)}) < len(names):
        fix = f"give {MEMBERS[0]} to {MEMBERS[-1]} collections, each once"
        raise DefinitionError("questions", list(names), fix)
    members = {str(member): _member(member, collections) for member in names}
    for first, second in pairwise(members.values()):
        _check_common(first, second)
    return members


def _member(name: object, collections: Mapping[str, Collection]) -> Collection:
    member = collections.get(name) if isinstance(name, str) else None
    if member is None:
        raise DefinitionError("questions", name, "name collections of this file")
    if member.group is not None:
        fix = f"it is in group.{member.group.name} already: a collection is in one group at most"
        raise DefinitionError("questions", name, fix)
    return member


def _check_common(first: Collection, second: Collection) -> None:
    for key, field in COMMON.items():
        ours, theirs = getattr(first, field), getattr(second, field)
        if ours != theirs:
            fix = f"[{first.name}] has {key} = {_written(ours)}: members of a group share it"
            raise DefinitionError(key, _plain(theirs), fix, collection=second.name)


def _written(value: object) -> str:
    return format_value(_plain(value))


def _plain(value: Any) -> object:
    """Return a value as a file has it."""
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else value


def _digest(name: str, members: Mapping[str, Collection]) -> str:
    """Return the SHA-256 of a group's canonical text, whose lines are its name and its members.

    Each member is the canonical text that it has without the group, which has no line break.
    """
    lines = [canonical_text(member, member.mechanism) for member in members.values()]
    return hashlib.sha256("\n".join([name, *lines]).encode()).hexdigest()
