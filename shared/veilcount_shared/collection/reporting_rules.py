"""Validation rules of what a period reports: which value, where it waits, what absence is."""

from __future__ import annotations

from enum import StrEnum

from ..domain import Boolean, Number
from ..enums import Held, Linkage, Measure, Model, Presence, Takes
from ..errors import DefinitionError
from ..periods import Unit
from .definition_record import Definition

LONG = frozenset({Unit.WEEK, Unit.MONTH, Unit.USER})
TREND_CHANGES = range(1, 64, 2)


def takes(collection: Definition) -> None:
    """The aggregation within a period must suit the domain."""
    taken, domain = collection.takes, collection.domain
    if taken is not Takes.FIRST and collection.unit is Unit.EVENT:
        raise DefinitionError("takes", str(taken), "every event is reported: remove takes")
    if taken is Takes.ANY and not isinstance(domain, Boolean):
        raise DefinitionError("takes", "any", 'only for boolean = true: use "first" or "last"')
    if taken in {Takes.MAX, Takes.SUM} and not isinstance(domain, Number):
        raise DefinitionError("takes", str(taken), 'only for a range: use "first" or "last"')


def trend(collection: Definition) -> None:
    """A trend is of a state that each person's device keeps, through every restart."""
    if collection.measure is not Measure.TREND:
        if collection.changes is not None:
            fix = 'only for measure = "trend": remove it'
            raise DefinitionError("changes", collection.changes, fix)
        return
    needed: dict[str, tuple[object, object, str]] = {
        "model": (collection.model, Model.LOCAL, "a curator has running totals: remove measure"),
        "takes": (collection.takes, Takes.LAST, 'a state is what it was last: use "last"'),
        "held": (collection.held, Held.DEVICE, 'a state outlives a process: use "device"'),
        "presence": (collection.presence, Presence.HIDDEN, 'a state has no absence: use "hidden"'),
        "linkage": (
            collection.linkage,
            Linkage.COLLECTION,
            'when a person reports shows which reports are theirs: use "collection"',
        ),
        "answers": (collection.answers, None, "the reports are drawn by the trend: remove it"),
    }
    for key, (value, only, fix) in needed.items():
        if value is not only:
            raise DefinitionError(key, str(value) if isinstance(value, StrEnum) else value, fix)
    if not isinstance(collection.domain, Boolean):
        raise DefinitionError("measure", "trend", "a state is true or false: boolean = true")
    if collection.unit in {Unit.EVENT, Unit.USER}:
        fix = 'a state has a value at the end of each "day", "week" or "month"'
        raise DefinitionError("unit", str(collection.unit), fix)
    if collection.changes not in TREND_CHANGES:
        fix = f"give how often it changes at most: odd, {TREND_CHANGES[0]} to {TREND_CHANGES[-1]}"
        raise DefinitionError("changes", collection.changes, fix)


def retention(collection: Definition) -> None:
    """Whether a person came back is known to their device alone, which keeps their last period."""
    if not collection.is_retention:
        return
    if not isinstance(collection.domain, Boolean):
        raise DefinitionError("takes", "returning", "the answer is yes or no: boolean = true")
    if collection.unit in {Unit.EVENT, Unit.USER} or collection.periods == 1:
        fix = 'there is no period before: give a "day", "week" or "month", and several of them'
        raise DefinitionError("unit", str(collection.unit), fix)
    if collection.held is not Held.DEVICE:
        raise DefinitionError("held", str(collection.held), 'a visit outlives a process: "device"')
    if collection.model is Model.CENTRAL:
        fix = "a curator sees who comes back: count the pseudonyms of two periods"
        raise DefinitionError("takes", "returning", fix)
    if collection.linkage is Linkage.COLLECTION and collection.presence is Presence.PUBLIC:
        fix = 'one pseudonym for all periods would show who comes back: use "period"'
        raise DefinitionError("linkage", "collection", fix)


def held(collection: Definition) -> None:
    """`held` is required where a value is pending for long, and refused where none is pending."""
    where = collection.held
    # An app that restarts within a long period would silently report its first run only.
    if where is None and collection.unit in LONG and collection.takes is not Takes.FIRST:
        raise DefinitionError(
            "held",
            None,
            f'a {collection.unit} with takes = "{collection.takes}" needs it:'
            ' held = "process" (the answer is about the first process that recorded: a server that'
            ' never restarts) or held = "device" (the running value is kept on the device)',
        )
    waits = collection.takes is not Takes.FIRST or collection.model is Model.CENTRAL
    if where is not None and not waits:
        raise DefinitionError(
            "held",
            str(where),
            'only where takes is not "first", or for model = "central", does a value wait:'
            " remove held",
        )


def presence(collection: Definition) -> None:
    """Hidden presence needs an input of its own for `absent`."""
    if collection.presence is not Presence.HIDDEN:
        return
    if isinstance(collection.domain, Number):
        raise DefinitionError("presence", "hidden", "a range has no cell for absent: use values")
    if collection.segments:
        raise DefinitionError(
            "presence", "hidden", "an absence has no segment to name: cross it instead"
        )
    if collection.model is Model.CENTRAL:
        raise DefinitionError("presence", "hidden", "a trusted curator sees presence: remove it")
