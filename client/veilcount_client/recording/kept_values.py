"""What a device keeps of a person before it is reported: where, for which period, until when.

For the receipt, `explain` and `doctor`. The value itself is nowhere here, and neither is the period
of a visit, since that is what a visit tells.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from enum import StrEnum

from veilcount_shared import Collection, schedule
from veilcount_shared.enums import Waiting

from ..clock import instant
from ..state import HeldValue
from .known_definitions import period_label
from .recorder import Recorder

#: for the person, by kind and place of what is kept; an app may replace them, as all messages
SENTENCES = {
    "kept_answer_device": "Not randomized yet: an answer for {when} waits on this device, until"
    " {until} at the latest or until this app next runs after that.",
    "kept_answer_memory": "Not randomized yet: an answer for {when} waits in this app's memory,"
    " until {until} at the latest or until the app ends.",
    "kept_true_value_device": "Not sent yet: a true value for {when} waits on this device, until"
    " {until} at the latest or until this app next runs after that.",
    "kept_true_value_memory": "Not sent yet: a true value for {when} waits in this app's memory,"
    " until {until} at the latest or until the app ends.",
    "kept_state_device": "The state is kept on this device; the next report, for {when}, is"
    " randomized from it by {until} or when this app next runs after that.",
    "kept_visit_device": "When you were last here is kept on this device, until {until} or until"
    " this app next runs after that; the next report is randomized from it.",
}


class KeptKind(StrEnum):
    """What is kept."""

    ANSWER = "answer"  # it is randomized at the person's instant of the period
    TRUE_VALUE = "true_value"  # likewise, for a trusted curator
    STATE = "state"  # of a trend
    VISIT = "visit"  # the last one


class Place(StrEnum):
    """Where it is kept."""

    DEVICE = "device"  # in the state, across processes
    MEMORY = "memory"  # of one process


@dataclass(frozen=True, slots=True)
class KeptValue:
    """That a value is kept: everything but the value."""

    kind: KeptKind
    place: Place
    when: str  # the period of the next report; "" of a visit
    until: str  # the day by which it is reported or wiped, if the app runs then

    @property
    def message_key(self) -> str:
        """The key of its sentence in SENTENCES."""
        return f"kept_{self.kind}_{self.place}"

    def line(self) -> str:
        """Return the sentence in plain words."""
        return SENTENCES[self.message_key].format(when=self.when, until=self.until)


def kind_on_device(collection: Collection) -> KeptKind:
    """Classify the value that the state keeps of a collection."""
    if collection.waiting is Waiting.TREND:
        return KeptKind.STATE
    is_visit = collection.waiting is Waiting.RETURNING
    return KeptKind.VISIT if is_visit else _kind_in_memory(collection)


def kept_values(recorder: Recorder, person: bytes, collection: Collection) -> Iterator[KeptValue]:
    """List the values that wait for an instant, and a state or a visit."""
    if value := recorder.state.held(person, collection.fingerprint):
        yield _on_device(collection, value)
    for period in recorder.pending_periods(person, collection.fingerprint):
        until = schedule.period_end(collection, period).date()
        yield _in_memory(collection, period, until)


def unsent_values(recorder: Recorder, person: bytes, collection: Collection) -> Iterator[KeptValue]:
    """List the true values that are charged, and in memory until they are delivered."""
    for draw in recorder.unsent(person, collection.fingerprint):
        yield _in_memory(collection, draw.period, instant(draw.expires).date())


def _on_device(collection: Collection, value: HeldValue) -> KeptValue:
    kind = kind_on_device(collection)
    if kind is KeptKind.VISIT:
        return KeptValue(kind, Place.DEVICE, "", f"{instant(value.due):%Y-%m-%d}")
    until = schedule.period_end(collection, value.period).date()
    return KeptValue(kind, Place.DEVICE, period_label(collection, value.period), f"{until}")


def _in_memory(collection: Collection, period: int, until: date) -> KeptValue:
    kind, when = _kind_in_memory(collection), period_label(collection, period)
    return KeptValue(kind, Place.MEMORY, when, f"{until}")


def _kind_in_memory(collection: Collection) -> KeptKind:
    return KeptKind.TRUE_VALUE if collection.waiting is Waiting.TRUE else KeptKind.ANSWER
