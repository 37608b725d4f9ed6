"""Checks across the collections of one file: twins, cohorts, replacements."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

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


def link_collections(collections: Collections) -> dict[str, Collection]:
    """Return the collections with twins linked both ways; raise if a reference does not fit."""
    for collection in collections.values():
        try:
            for rule in (_check_names, _check_replacements, _check_cohorts, _check_twins):
                rule(collection, collections)
        except DefinitionError as error:
            raise error.with_location(collection=collection.name) from error
    twins = {collection.twin: name for name, collection in collections.items() if collection.twin}
    return {
        name: replace(collection, twin=twins[name]) if name in twins else collection
        for name, collection in collections.items()
    }


def _check_replacements(collection: Collection, collections: Collections) -> None:
    if collection.replaces is None:
        return
    old = collection.replaces.lower()
    if old in map(str.lower, collections):
        raise DefinitionError(
            "replaces", collection.replaces, "that collection is still in this file: remove it"
        )
    first = next(
        collection.name
        for collection in collections.values()
        if (collection.replaces or "").lower() == old
    )
    if first != collection.name:
        fix = f"[{first}] replaces it: only one collection may replace another"
        raise DefinitionError("replaces", collection.replaces, fix)


def _check_names(collection: Collection, collections: Collections) -> None:
    first = next(name for name in collections if name.lower() == collection.name.lower())
    if first != collection.name:
        raise DefinitionError(
            "name", collection.name, f"[{first}] has the same name but for upper and lower case"
        )


def _check_cohorts(collection: Collection, collections: Collections) -> None:
    cohort = collection.cohort
    if cohort is None:
        return
    for other in collections.values():
        if other.cohort and other.cohort.draw == cohort.draw and other.cohort.of != cohort.of:
            fix = f"[{other.name}] has of = {other.cohort.of} for the same draw: use one number"
            raise DefinitionError("cohort.of", cohort.of, fix)


def _check_twins(local: Collection, collections: Collections) -> None:
    name = local.twin
    if name is None:
        return
    if local.trust.reveals:
        raise DefinitionError("twin", name, "name the twin on the local collection only")
    central = collections.get(name)
    if central is None or not central.trust.reveals:
        raise DefinitionError("twin", name, "name a central collection of this file")
    first = next(other for other in collections.values() if other.twin == name)
    if first is not local:
        raise DefinitionError("twin", name, f"[{first.name}] already has this twin")
    for key, field in TWIN_FIELDS.items():
        if getattr(local, field) != getattr(central, field):
            raise DefinitionError("twin", name, f"both must have the same {key}")
    # Of a first value both report the same, wherever the curator's waits for its transmission.
    if local.takes is not Takes.FIRST and local.held_on_device != central.held_on_device:
        raise DefinitionError("twin", name, "both must have the same held")
