"""Checks across the collections of one file: twins, cohorts, replacements."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from ..errors import DefinitionError
from .definition import Collection
from .enums import Model, Takes

Collections = Mapping[str, Collection]

#: the key in the file where it differs from the field
FILE_KEYS = {
    "start": "from",
    "per_period": "per_day",
    "answering": "answers",
}
TWIN_FIELDS = (
    "domain",
    "unit",
    "per_period",
    "takes",
    "start",
    "until",
    "answering",
    "segments",
    "cohort",
)


def link_collections(collections: Collections) -> dict[str, Collection]:
    """Return the collections with twins linked both ways; raise if a reference does not fit."""
    for collection in collections.values():
        for rule in (_check_names, _check_replacements, _check_cohorts, _check_twins):
            _apply(rule, collection, collections)
    twins = {collection.twin: name for name, collection in collections.items() if collection.twin}
    return {
        name: replace(collection, twin=twins[name]) if name in twins else collection
        for name, collection in collections.items()
    }


def _apply(
    rule: Callable[[Collection, Collections], None],
    collection: Collection,
    collections: Collections,
) -> None:
    try:
        rule(collection, collections)
    except DefinitionError as error:
        raise error.with_location(collection=collection.name) from error


def _check_replacements(collection: Collection, collections: Collections) -> None:
    if collection.replaces is None:
        return
    old = collection.replaces.lower()
    if old in map(str.lower, collections):
        raise DefinitionError(
            "replaces", collection.replaces, "that collection is still in this file: remove it"
        )
    successors = [
        each.name for each in collections.values() if (each.replaces or "").lower() == old
    ]
    if successors[0] != collection.name:
        raise DefinitionError(
            "replaces",
            collection.replaces,
            f"[{successors[0]}] replaces it: only one collection may replace another",
        )


def _check_names(collection: Collection, collections: Collections) -> None:
    first = next(name for name in collections if name.lower() == collection.name.lower())
    if first != collection.name:
        raise DefinitionError(
            "name", collection.name, f"[{first}] has the same name but for upper and lower case"
        )


def _check_cohorts(collection: Collection, collections: Collections) -> None:
    cohort = collection.cohort
    for other in collections.values():
        if (
            cohort
            and other.cohort
            and cohort.draw == other.cohort.draw
            and cohort.of != other.cohort.of
        ):
            raise DefinitionError(
                "cohort.of",
                cohort.of,
                f"[{other.name}] has of = {other.cohort.of} for the same draw: use one number",
            )


def _check_twins(local: Collection, collections: Collections) -> None:
    name = local.twin
    if name is None:
        return
    if local.model is not Model.LOCAL:
        raise DefinitionError("twin", name, "name the twin on the local collection only")
    central = collections.get(name)
    if central is None or central.model is not Model.CENTRAL:
        raise DefinitionError("twin", name, "name a central collection of this file")
    first = next(other for other in collections.values() if other.twin == name)
    if first is not local:
        raise DefinitionError("twin", name, f"[{first.name}] already has this twin")
    for key in TWIN_FIELDS:
        if getattr(local, key) != getattr(central, key):
            raise DefinitionError(
                "twin", name, f"both must have the same {FILE_KEYS.get(key, key)}"
            )
    # Of a first value both report the same, wherever the curator's waits for its transmission.
    if local.takes is not Takes.FIRST and local.held_on_device != central.held_on_device:
        raise DefinitionError("twin", name, "both must have the same held")
