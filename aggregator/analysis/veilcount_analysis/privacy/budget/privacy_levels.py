"""The three figures that stand together, what they are figures of, and who enforces the cap."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from veilcount_shared import Collection
from veilcount_shared.collection import Adjacency, Linkage, Model, Presence
from veilcount_shared.periods import Unit
from veilcount_shared.schedule import UNLINKED

VALUES_ONLY = "values only; counts and times are public"
PRESENCE_TOO = "values, and whether there was one, from readers of releases; the server sees both"
HIDDEN = "values, and whether there was one: hides use of the feature while the app runs, no more"
DAY = "a UTC day; any 24 hours touch two"


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivacyLevels:
    """Epsilon per event, per day and per user, and the cap behind them.

    `device` and `server` say what each of them enforces; the server's part is a number where it can
    refuse an answer by itself, and counts within one `time_range`.
    """

    unit: Unit
    model: Model
    adjacency: Adjacency  # of every epsilon here
    event: Fraction
    day: Fraction
    user: Fraction
    scope: str
    day_is: str
    user_is: str
    answers: int
    device: str
    server: str
    server_cap: Fraction | None
    time_range: str


def figures(collection: Collection) -> PrivacyLevels:
    """Return a collection's figures."""
    cap = _server_cap(collection)
    return PrivacyLevels(
        unit=collection.unit,
        model=collection.model,
        adjacency=collection.epsilon_adjacency,
        event=collection.epsilon_event,
        day=collection.epsilon_day,
        user=collection.epsilon_user,
        scope=scope(collection),
        day_is=DAY,
        user_is=_user(collection),
        answers=answers(collection),
        device=_device(collection),
        server=_server(collection, cap),
        server_cap=cap,
        time_range=_time_range(collection),
    )


def answers(collection: Collection) -> int:
    """Return how many answers, each at its own epsilon, a person gives at most."""
    return collection.priced_answers


def _user(collection: Collection) -> str:
    """Return what the epsilon of a user is of."""
    if collection.is_trend:
        return "all reports together"
    number = answers(collection)
    return f"all {number:,} answers" if number > 1 else "the one answer"


def scope(collection: Collection) -> str:
    """Return what the figures protect, and so what they do not."""
    if collection.epsilon_adjacency is Adjacency.ADD_REMOVE:
        return PRESENCE_TOO
    if collection.presence is Presence.HIDDEN:
        return HIDDEN
    if collection.unit is Unit.EVENT:
        return VALUES_ONLY
    if collection.unit is Unit.USER:
        return "values only; whether a person answered is public"
    return f"values only; in which {collection.unit}s a person answered is public"


def _server_cap(collection: Collection) -> Fraction | None:
    """Return what the server enforces by its bitmap of spent slots, of one pseudonym's epoch."""
    if collection.linkage in {Linkage.COLLECTION, Linkage.TOKEN}:
        return collection.epsilon_user
    return collection.epsilon_day if collection.linkage is Linkage.PERIOD else None


def _time_range(collection: Collection) -> str:
    """Return how long one pseudonym is used."""
    if collection.linkage is Linkage.COLLECTION:
        return "campaign"
    if collection.linkage in UNLINKED:
        return "report"
    return {Unit.EVENT: "day", Unit.USER: "campaign"}.get(collection.unit, str(collection.unit))


def _device(collection: Collection) -> str:
    number = answers(collection)
    most = f"at most {number:,} answer{'s' if number > 1 else ''}"
    if collection.trust.reveals:
        return f"the device sends {most}, each a true value, to a trusted curator"
    if collection.is_trend:
        return (
            "the device draws the signs of all its reports once: together they cost epsilon"
            f" {float(collection.epsilon_user):g} a person"
        )
    drawn = f" in {collection.answers:,} periods drawn beforehand" if collection.answers else ""
    return (
        f"the device refuses before it draws: {most}{drawn}, epsilon"
        f" {float(collection.epsilon_user):g} a person"
    )


def _server(collection: Collection, cap: Fraction | None) -> str:
    if collection.trust.reveals:
        return (
            f"the curator charges every release: at most epsilon"
            f" {float(collection.epsilon_day):g} a period of one {collection.unit}"
        )
    if cap is None:
        return "the server cannot join two reports: beyond replays, the device alone enforces"
    if collection.linkage is Linkage.TOKEN:
        return (
            f"enforced by the server for every account: at most epsilon {float(cap):g} in all, by"
            " tokens that nobody can join to who got them"
        )
    time_range = _time_range(collection)
    enforced = f"the server refuses beyond epsilon {float(cap):g} a pseudonym and {time_range}"
    if collection.linkage is Linkage.COLLECTION:
        return enforced
    return f"{enforced}; across {time_range}s, under new pseudonyms, the device alone enforces"
