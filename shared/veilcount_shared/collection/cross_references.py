"""What one collection of a file says of another: twins, cohorts, what replaces what."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from ..errors import DefinitionError
from .definition import Collection
from .enums import Model, Takes

Family = Mapping[str, Collection]

#: fields whose key in the file is another word
WRITTEN = {
    "start": "from",
    "per_period": "per_day",
    "answering": "answers",
}
SHARED_BY_TWINS = (
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


def link_collections(family: Family) -> dict[str, Collection]:
    """Return the collections with each twin told of the other, or refuse what does not fit."""
    for collection in family.values():
        for rule in (_named_alike, _replaced, _cohorts, _twins):
            _apply(rule, collection, family)
    twins = {collection.twin: name for name, collection in family.items() if collection.twin}
    return {
        name: replace(collection, twin=twins[name]) if name in twins else collection
        for name, collection in family.items()
    }


def _apply(
    rule: Callable[[Collection, Family], None], collection: Collection, all_: Family
) -> None:
    try:
        rule(collection, all_)
    except DefinitionError as error:
        raise error.with_location(collection=collection.name) from error


def _replaced(collection: Collection, family: Family) -> None:
    if collection.replaces is None:
        return
    old = collection.replaces.lower()
    if old in map(str.lower, family):
        raise DefinitionError(
            "replaces", collection.replaces, "that collection is still in this file: remove it"
        )
    heirs = [each.name for each in family.values() if (each.replaces or "").lower() == old]
    if heirs[0] != collection.name:
        raise DefinitionError(
            "replaces",
            collection.replaces,
            f"[{heirs[0]}] replaces it: one heir only",
        )


def _named_alike(collection: Collection, family: Family) -> None:
    first = next(name for name in family if name.lower() == collection.name.lower())
    if first != collection.name:
        raise DefinitionError("name", collection.name, f"[{first}] differs in its capitals only")


def _cohorts(collection: Collection, family: Family) -> None:
    given = collection.cohort
    for other in family.values():
        if (
            given
            and other.cohort
            and given.draw == other.cohort.draw
            and given.of != other.cohort.of
        ):
            raise DefinitionError(
                "cohort.of",
                given.of,
                f"[{other.name}] draws {given.draw!r} out of {other.cohort.of}: give the same",
            )


def _twins(local: Collection, family: Family) -> None:
    name = local.twin
    if name is None:
        return
    if local.model is not Model.LOCAL:
        raise DefinitionError("twin", name, "name the twin on the local collection only")
    central = family.get(name)
    if central is None or central.model is not Model.CENTRAL:
        raise DefinitionError("twin", name, "name a central collection of this file")
    first = next(other for other in family.values() if other.twin == name)
    if first is not local:
        raise DefinitionError("twin", name, f"[{first.name}] has this twin already")
    for key in SHARED_BY_TWINS:
        if getattr(local, key) != getattr(central, key):
            raise DefinitionError("twin", name, f"both must have the same {WRITTEN.get(key, key)}")
    # Of a first value both report the same, wherever the curator's waits for its transmission.
    if local.takes is not Takes.FIRST and local.held_on_device != central.held_on_device:
        raise DefinitionError("twin", name, "both must have the same held")
