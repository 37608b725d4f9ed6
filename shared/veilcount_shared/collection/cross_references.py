"""Checks across the collections of one file: twins, cohorts, replacements."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ..enums import Takes
from ..errors import DefinitionError
from .definition import Collection

Collections = Mapping[str, Collection]

#: the field of a key of the file, where the names differ
FIELD_NAMES = {"from": "start"}
#: what twins must have in common: the key of the file, and what is compared
TWIN_FIELDS = {
    "from": "start",
    **{key: key for key in ("domain", "unit", "per_day", "takes", "until", "segments", "cohort")},
    **FIELD_NAMES,
    "answers": "answering",
}


@dataclass(frozen=True, slots=True)
class _Firsts:
    """Who has what first, so that no check looks through all collections for each of them."""

    names: dict[str, str]  # by themselves, in lower case
    replacements: dict[str, str]  # by what they replace, in lower case
    locals: dict[str, Collection]  # by their twin
    cohorts: dict[str, dict[int, str]]  # by draw, and into how many cohorts

    @classmethod
    def of(cls, collections: Collections) -> _Firsts:
        """Look through all collections once."""
        firsts = cls({}, {}, {}, {})
        for name, collection in collections.items():
            firsts.names.setdefault(name.lower(), name)
            firsts.replacements.setdefault((collection.replaces or "").lower(), name)
            firsts.locals.setdefault(collection.twin or "", collection)
            if cohort := collection.cohort:
                firsts.cohorts.setdefault(cohort.draw, {}).setdefault(cohort.of, name)
        return firsts


def link_collections(collections: Collections) -> dict[str, Collection]:
    """Return the collections with twins linked both ways; raise if a reference does not fit."""
    firsts = _Firsts.of(collections)
    for collection in collections.values():
        try:
            _check_names(collection, firsts)
            _check_replacements(collection, firsts)
            _check_cohorts(collection, firsts)
            _check_twins(collection, collections, firsts)
        except DefinitionError as error:
            raise error.with_location(collection=collection.name) from error
    twins = {collection.twin: name for name, collection in collections.items() if collection.twin}
    return {
        name: replace(collection, twin=twins[name]) if name in twins else collection
        for name, collection in collections.items()
    }


def _check_replacements(collection: Collection, firsts: _Firsts) -> None:
    if collection.replaces is None:
        return
    old = collection.replaces.lower()
    if old in firsts.names:
        raise DefinitionError(
            "replaces", collection.replaces, "that collection is still in this file: remove it"
        )
    first = firsts.replacements[old]
    if first != collection.name:
        fix = f"[{first}] replaces it: only one collection may replace another"
        raise DefinitionError("replaces", collection.replaces, fix)


def _check_names(collection: Collection, firsts: _Firsts) -> None:
    first = firsts.names[collection.name.lower()]
    if first != collection.name:
        raise DefinitionError(
            "name", collection.name, f"[{first}] has the same name but for upper and lower case"
        )


def _check_cohorts(collection: Collection, firsts: _Firsts) -> None:
    cohort = collection.cohort
    if cohort is None:
        return
    for of, name in firsts.cohorts[cohort.draw].items():
        if of != cohort.of:
            fix = f"[{name}] has of = {of} for the same draw: use one number"
            raise DefinitionError("cohort.of", cohort.of, fix)


def _check_twins(local: Collection, collections: Collections, firsts: _Firsts) -> None:
    name = local.twin
    if name is None:
        return
    if local.trust.reveals:
        raise DefinitionError("twin", name, "name the twin on the local collection only")
    central = collections.get(name)
    if central is None or not central.trust.reveals:
        raise DefinitionError("twin", name, "name a central collection of this file")
    first = firsts.locals[name]
    if first is not local:
        raise DefinitionError("twin", name, f"[{first.name}] already has this twin")
    for key, field in TWIN_FIELDS.items():
        if getattr(local, field) != getattr(central, field):
            raise DefinitionError("twin", name, f"both must have the same {key}")
    # Of a first value both report the same, wherever the curator's waits for its transmission.
    if local.takes is not Takes.FIRST and local.held_on_device != central.held_on_device:
        raise DefinitionError("twin", name, "both must have the same held")
