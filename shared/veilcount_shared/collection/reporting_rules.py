"""Validation rules of what a period reports: which value, where it waits, what absence is."""

from __future__ import annotations

from ..definition_record import Definition
from ..enums import Held, Linkage, Presence, Takes
from ..errors import DefinitionError
from ..kinds import kind_of
from ..models import TRUST_MODELS
from ..periods import Unit

LONG = frozenset({Unit.WEEK, Unit.MONTH, Unit.USER})


_TAKES_FIXES = {
    Takes.ANY: 'only for boolean = true: use "first" or "last"',
    Takes.MAX: 'only for a range: use "first" or "last"',
    Takes.SUM: 'only for a range: use "first" or "last"',
    Takes.RETURNING: "the answer is yes or no: boolean = true",
}


def takes(collection: Definition) -> None:
    """The aggregation within a period must suit the kind."""
    if collection.takes is not Takes.FIRST and collection.unit is Unit.EVENT:
        fix = "every event is reported: remove takes"
        raise DefinitionError("takes", str(collection.takes), fix)
    if collection.takes not in kind_of(collection.domain, collection.measure).takes:
        raise DefinitionError("takes", str(collection.takes), _TAKES_FIXES[collection.takes])


def retention(collection: Definition) -> None:
    """Whether a person came back is known to their device alone, which keeps their last period."""
    if not collection.is_retention:
        return
    if collection.unit in {Unit.EVENT, Unit.USER} or collection.periods == 1:
        fix = 'there is no period before: give a "day", "week" or "month", and several of them'
        raise DefinitionError("unit", str(collection.unit), fix)
    if collection.held is not Held.DEVICE:
        raise DefinitionError("held", str(collection.held), 'a visit outlives a process: "device"')
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
    # Of two processes one has the value, and the other would answer that there is none.
    is_hidden = collection.presence is Presence.HIDDEN and collection.takes is not Takes.FIRST
    if is_hidden and where is not Held.DEVICE:
        raise DefinitionError(
            "held",
            str(where or Held.PROCESS),
            f'with presence = "hidden" and takes = "{collection.takes}" another process of the app'
            ' would answer that nothing was recorded: held = "device" (kept on the device)',
        )
    waits = collection.takes is not Takes.FIRST or TRUST_MODELS[collection.model].reveals
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
    if fix := kind_of(collection.domain, collection.measure).absent_fix:
        raise DefinitionError("presence", "hidden", fix)
    if collection.segments:
        raise DefinitionError(
            "presence", "hidden", "an absence has no segment to name: cross it instead"
        )
