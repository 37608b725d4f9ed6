"""Lint for valid definitions: advice on what its author may not have meant."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from ..enums import Held, Presence, Takes, Waiting
from .definition import Collection

HIGH_EPSILON = Fraction(10)
MANY_CELLS = 8

#: words whose values, alone or with a few others, point at one person
IDENTIFYING = frozenset(
    (  # noqa: SIM905 - a list of words reads best as words
        "address age birth birthday birthdate city country county device diagnosis dob email"
        " employer gender host hostname imei ip job language lat latitude location lon longitude"
        " mac model name nationality occupation phone postcode postal race region religion school"
        " serial sex ssn street timezone town user username village zip zipcode"
    ).split()
)


@dataclass(frozen=True, slots=True)
class Remark:
    """One piece of advice on a key."""

    key: str
    text: str


def lint(collection: Collection, answers: int = 100_000) -> list[Remark]:
    """Return advice on a definition for an expected number of answers."""
    return [
        *_check_campaign_epsilon(collection),
        *_check_precision(collection, answers),
        *_check_identifying_names(collection),
        *_explain_held_values(collection),
        *_check_batch_presence(collection),
    ]


def _check_campaign_epsilon(collection: Collection) -> Iterator[Remark]:
    total = collection.epsilon_user
    if not collection.trust.reveals and total > HIGH_EPSILON:
        both = "" if collection.batch is None else " to shuffler and server together"
        yield Remark(
            "epsilon",
            f"over the campaign one person reveals epsilon {float(total):g}{both}: above"
            f" {HIGH_EPSILON}"
            " user-level privacy is weak; give answers, a longer unit or nearer dates",
        )


def _check_precision(collection: Collection, answers: int) -> Iterator[Remark]:
    """Compare the predicted margin of error with what it is about."""
    if not collection.trust.reveals:
        advice = collection.kind.precision_advice(collection.price, answers)
        if advice:
            yield Remark("epsilon", f"with {answers:,} answers {advice}")


def _check_batch_presence(collection: Collection) -> Iterator[Remark]:
    """Advise to hide from a shuffler, which sees addresses, who had an answer."""
    can_hide = not collection.kind.absent_fix
    if collection.batch is not None and collection.presence is Presence.PUBLIC and can_hide:
        yield Remark(
            "presence",
            "the shuffler sees in which periods a device had an answer: hidden presence hides it",
        )


def _check_identifying_names(collection: Collection) -> Iterator[Remark]:
    for key, name in [
        ("name", collection.name),
        *(("cross", name) for name in collection.domain.declaration().get("cross", ())),
        *(("segments", name) for name, _ in collection.segments),
    ]:
        words = re.sub(r"([a-z])([A-Z])", r"\1 \2", name).lower()
        matches = IDENTIFYING.intersection(re.split(r"[^a-z]+", words))
        if matches and key == "segments":
            yield Remark(
                key, f"{name} is sent in clear and may single people out: cross it instead"
            )
        elif matches:
            yield Remark(key, f"{name} may identify a person together with other answers")
    if collection.cells > MANY_CELLS:
        yield Remark("segments", f"{collection.cells} public cells: small ones single people out")


def _explain_held_values(collection: Collection) -> Iterator[Remark]:
    """Explain `held` where it is set, and where a running value depends on it."""
    if collection.held is None and collection.takes is Takes.FIRST:
        return
    held = collection.held or Held.PROCESS
    default = "" if collection.held else " (the default)"
    yield Remark("held", f'"{held}"{default}: {describe_held(collection)}')


_ON_DISK = "kept on the device's disk, readable by the app's user only, until"
_STATES = {
    Waiting.TREND: "the state",
    Waiting.RETURNING: "the last period that the person was there",
}


def describe_held(collection: Collection) -> str:
    """Return the meaning in one sentence; empty where values are randomized at once."""
    running, waiting = collection.takes is not Takes.FIRST, collection.waiting
    if waiting is None:
        return ""
    if waiting in _STATES:
        return f"{_STATES[waiting]} is {_ON_DISK} it is forgotten or withdrawn"
    value = "running value" if running else "true value"
    if collection.held_on_device:
        end = "delivered" if waiting is Waiting.TRUE else "frozen"
        return f"the {value} is {_ON_DISK} it is {end}, forgotten or withdrawn"
    lost = f"the {value} is in memory only, and lost with the process if it is killed"
    if not running:
        return lost
    return (
        "the answer is about the first process that recorded in the period, which suits a server"
        f" that never restarts; {lost}"
    )
