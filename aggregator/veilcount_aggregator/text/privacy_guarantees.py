"""The privacy guarantees of a definition in words, and whether its exact counts are public."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from veilcount_shared import Collection
from veilcount_shared.collection import Adjacency, Linkage, Model, Presence, describe_held
from veilcount_shared.errors import format_value

from ..series.series import publishes_n
from .api_types import Decimal
from .number_format import adjacency


class PrivacyFigures(Struct):
    """The three figures, which stand together, of one adjacency: decimals in strings, so exact."""

    event: Decimal
    day: Decimal
    user: Decimal
    adjacency: Adjacency


_LINKED = {
    Linkage.COLLECTION: "One pseudonym for the whole campaign: the aggregator refuses what is over"
    " the figure for a user, and can tell which answers are one person's.",
    Linkage.PERIOD: "A new pseudonym each period: the aggregator refuses what is over the period's"
    " cap; the figure for a user is kept by the device.",
    Linkage.NONE: "A new pseudonym each report: the aggregator refuses what comes twice; all caps"
    " are kept by the device.",
    Linkage.TOKEN: "A new pseudonym and a token each report: enforced by the server for every"
    " account. An issuer signs no more tokens than the caps allow, and neither it nor the"
    " aggregator can tell whose token came back.",
}
_SEEN = {
    Presence.PUBLIC: "Values only: that somebody answered, when and how often, is public.",
    Presence.HIDDEN: "Whether the feature was used is hidden while the app runs: every person sends"
    " the same number of reports.",
}
_CURATED = (
    "The curator's server knows who answered, when and what: it is trusted to keep that secret, and"
    " to delete it."
)
_WATCHED = (
    "Whoever sees network addresses can join more than a pseudonym does: the figure for a user"
    " holds even then."
)


def epsilons(collection: Collection) -> PrivacyFigures:
    """Return the three figures, exactly."""
    return PrivacyFigures(
        format_value(collection.epsilon_event),
        format_value(collection.epsilon_day),
        format_value(collection.epsilon_user),
        collection.epsilon_adjacency,
    )


def promise(collection: Collection) -> list[str]:
    """Return what is promised to a person, and what is not."""
    figures = epsilons(collection)
    spent = (
        f"Epsilon ({adjacency(figures.adjacency)}) {figures.event} an event, {figures.day} a UTC"
        f" day, {figures.user} a user ({_for_what(collection)})"
        f"{_with_delta(collection)}."
    )
    linked = _LINKED[collection.linkage or Linkage.PERIOD]
    seen = _SEEN[collection.presence] if collection.model is Model.LOCAL else _CURATED
    return [_how(collection), spent, linked, seen, *_held(collection), _WATCHED]


def _for_what(collection: Collection) -> str:
    if collection.is_trend:
        return "all reports of the campaign together"
    return f"{collection.answering} of {collection.periods} periods"


def _with_delta(collection: Collection) -> str:
    if collection.delta is None:
        return ""
    return f", each with delta {format_value(collection.delta)}"


def _how(collection: Collection) -> str:
    if collection.model is Model.LOCAL:
        return "Each answer is randomized on the device: no true value ever leaves it."
    neighbours = {
        Adjacency.ADD_REMOVE: "with or without one unit",
        Adjacency.SUBSTITUTE: "with one unit's answers exchanged for others",
    }
    return (
        "True values, to a trusted curator: what is released of a period looks nearly the same"
        f" {neighbours[collection.adjacency or Adjacency.ADD_REMOVE]}."
    )


def _held(collection: Collection) -> Iterator[str]:
    meaning = describe_held(collection)
    if meaning:
        yield f"{meaning[0].upper()}{meaning[1:]}."


def counts_are_public(collection: Collection) -> bool:
    """Whether exact numbers of reports may be shown: of a curator's by one rule for all of it."""
    return collection.model is Model.LOCAL or publishes_n(collection)
