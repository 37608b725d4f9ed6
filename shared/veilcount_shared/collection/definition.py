"""Collection: one validated definition, its mechanism, its three epsilons and its slots."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from functools import cached_property
from math import prod
from typing import Any

from .. import periods
from ..domain import GRID_BITS, Domain, Number, OpenStrings
from ..enums import Adjacency, Cohort, Held, Linkage, Measure, Model, Presence, Segments, Takes
from ..errors import (
    MessageOutOfRange,
    TrustModelError,
    UnknownSegment,
    format_types,
    format_value,
)
from ..kinds import DeviceKind, Price, kind_of
from ..mechanisms import Identity, Mechanism, Randomizer
from ..periods import Unit
from ..randomness import RandomSource
from . import canonical, validation


@dataclass(frozen=True, kw_only=True)
class Collection:
    """One question put to a population; the README documents each key."""

    app: str
    name: str
    question: str
    domain: Domain
    unit: Unit
    start: date
    until: date
    epsilon: Fraction | None = None
    measure: Measure | None = None
    changes: int | None = None
    per_period: int = 1
    takes: Takes = Takes.FIRST
    held: Held | None = None
    answers: int | None = None
    late: int = 30
    linkage: Linkage | None = None
    tokens: str | None = None
    presence: Presence = Presence.PUBLIC
    segments: Segments = ()
    cohort: Cohort | None = None
    model: Model = Model.LOCAL
    twin: str | None = None
    budget: Fraction | None = None
    delta: Fraction | None = None
    adjacency: Adjacency | None = None
    owner: str | None = None
    purpose: str | None = None
    replaces: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "linkage", self.linkage or _default_linkage(self))
        validation.check_definition(self)

    # -- privacy -------------------------------------------------------------------------------

    @property
    def unit_epsilon(self) -> Fraction:
        """Epsilon of one unit: of one answer, or of all releases of its period."""
        epsilon = self.budget if self.model is Model.CENTRAL else self.epsilon
        assert epsilon is not None, "validation requires it"  # noqa: S101 - narrows the type
        return epsilon

    @property
    def epsilon_event(self) -> Fraction:
        """Epsilon of one event: at most one answer."""
        return self.unit_epsilon

    @property
    def epsilon_day(self) -> Fraction:
        """Epsilon of a UTC day."""
        return self.unit_epsilon * self.per_period

    @property
    def epsilon_user(self) -> Fraction:
        """Epsilon of one person over the whole campaign: the plain sum."""
        return self.epsilon_within(self.periods)

    def epsilon_within(self, periods: int) -> Fraction:
        """Return the epsilon of one person within so many periods in a row.

        All reports of a trend cost it once: their signs were drawn once.
        """
        return self.epsilon_day * min(periods, 1 if self.is_trend else self.answering)

    @property
    def priced_answers(self) -> int:
        """The number of answers that each cost epsilon; of a trend all together cost it once."""
        return 1 if self.is_trend else self.answering * self.per_period

    @property
    def epsilon_adjacency(self) -> Adjacency:
        """The neighbouring relation of every epsilon; the local model substitutes a value."""
        return self.adjacency or Adjacency.SUBSTITUTE

    @property
    def substitution_factor(self) -> int:
        """The factor by which epsilon bounds the substitution of one value.

        Under add-remove a substitution is a removal and an addition, so group privacy doubles it.
        """
        return 2 if self.epsilon_adjacency is Adjacency.ADD_REMOVE else 1

    @property
    def answering(self) -> int:
        """The number of periods in which a person answers; of a trend the most."""
        return self.answers or self.periods

    @property
    def is_trend(self) -> bool:
        """Whether a person's reports over time belong together, at one epsilon for all."""
        return self.measure is Measure.TREND

    @property
    def is_retention(self) -> bool:
        """Whether a period reports that the person was there in the period before as well."""
        return self.takes is Takes.RETURNING

    @property
    def held_on_device(self) -> bool:
        """Whether a pending value is kept on the device's disk instead of in process memory."""
        return self.held is Held.DEVICE

    # -- the mechanism -------------------------------------------------------------------------

    @cached_property
    def kind(self) -> DeviceKind[Any]:
        """The kind of question that the domain and the measure make."""
        return kind_of(self.domain, self.measure)

    @cached_property
    def mechanism(self) -> Mechanism:
        """The randomizer, or the identity for a trusted curator."""
        return Identity(self.inputs) if self.model is Model.CENTRAL else self.randomizer

    @cached_property
    def randomizer(self) -> Randomizer:
        """The mechanism of a local collection; raises for a trusted curator's."""
        if self.model is Model.CENTRAL:
            raise TrustModelError(self.name, "the model is central: use reveal()")
        price = Price(self.domain, self.inputs, self.unit_epsilon, self.periods, self.changes)
        return self.kind.randomizer(price)

    @property
    def inputs(self) -> int:
        """The number of inputs: the domain's, and `absent` where presence is hidden.

        A trend has none of its own for it: a state is reported whether or not it was recorded.
        """
        if isinstance(self.domain, Number):
            return int(self.domain.high - self.domain.low) + 1  # used for integer grids only
        if isinstance(self.domain, OpenStrings) and self.model is Model.CENTRAL:
            return self.domain.parts << self.domain.bucket_bits  # one bucket, of one part
        return self.domain.size + self.has_absent

    @property
    def has_absent(self) -> bool:
        """Whether a period without a record is an answer of its own."""
        return self.presence is Presence.HIDDEN and not self.is_trend

    @cached_property
    def message_bits(self) -> int:
        """The length of a message in bits."""
        return self.mechanism.bits

    @property
    def message_bytes(self) -> int:
        """The fixed width of a message on the wire."""
        return -(-self.message_bits // 8)

    def randomize(self, value: object, randomness: RandomSource) -> int:
        """Return the randomized message of a value; total: it never raises on a value."""
        return self.randomizer.randomize(self.domain.input(value, randomness), randomness)

    def randomize_absent(self, randomness: RandomSource) -> int:
        """Return the message of a period without a record; presence must be hidden."""
        if not self.has_absent:
            raise TrustModelError(self.name, "presence is public: a period without a record is")
        return self.randomizer.randomize(self.inputs - 1, randomness)

    def reveal(self, value: object, randomness: RandomSource) -> int:
        """Return the message of the true value; the trust model must be central."""
        if self.model is not Model.CENTRAL:
            raise TrustModelError(self.name, "the model is local: use randomize()")
        place = self.domain.input(value, randomness)
        if isinstance(self.domain, Number):  # from the grid to the nearest integer of the range
            place = (place * (self.inputs - 1) + (1 << GRID_BITS - 1)) >> GRID_BITS
        if isinstance(self.domain, OpenStrings):
            place = self.domain.draw_bucket(place, randomness)
        return Identity(self.inputs).reveal(place)

    def pack(self, message: int) -> bytes:
        """Return the message at its fixed width, the highest byte first."""
        return message.to_bytes(self.message_bytes, "big")

    def unpack(self, packed: bytes) -> int:
        """Return the message of packed bytes; raise MessageOutOfRange if they are not valid."""
        message = int.from_bytes(packed, "big")
        if len(packed) != self.message_bytes or not self.mechanism.valid(message):
            raise MessageOutOfRange(
                f"message: give {self.message_bytes} bytes that are a valid message"
            )
        return message

    def describe_message(self, packed: bytes) -> str:
        """Return a packed message as a person can read it: the values that it may stand for."""
        labels = list(getattr(self.domain, "labels", range(self.mechanism.inputs)))
        if self.has_absent:
            labels.append("absent")
        return self.mechanism.describe_message(self.unpack(packed), labels)

    # -- periods, slots, segments --------------------------------------------------------------

    @cached_property
    def periods(self) -> int:
        """The number of periods of the campaign."""
        return periods.count_periods(self.unit, self.start, self.until)

    @property
    def slots(self) -> int:
        """The number of slots of an epoch."""
        if self.linkage is Linkage.COLLECTION:
            return self.periods * self.per_period
        return self.per_period if self.linkage is Linkage.PERIOD else 1

    @property
    def cells(self) -> int:
        """The number of segment cells."""
        return prod(len(labels) for _, labels in self.segments)

    def segment(self, /, **labels_by_name: object) -> int:
        """Return the cell of segment values as a mixed-radix number, the first segment highest."""
        place = 0
        for name, labels in self.segments:
            label: Any = labels_by_name.get(name)  # None is no label
            if label not in labels:
                raise self._unknown_segment(labels_by_name)
            place = place * len(labels) + labels.index(label)
        if len(labels_by_name) > len(self.segments):
            raise self._unknown_segment(labels_by_name)
        return place

    def _unknown_segment(self, labels_by_name: Mapping[str, object]) -> UnknownSegment:
        """Return the cause; an undeclared name first: it may be one that is missing, misspelt."""
        segments = dict(self.segments)
        if unknown_names := labels_by_name.keys() - segments.keys():
            names = ", ".join(segments) or "none"
            problem = f"is not declared: leave it out, or add it to `segments` (declared: {names})"
            return UnknownSegment(self.name, min(unknown_names), problem)
        name = next(key for key in segments if labels_by_name.get(key) not in segments[key])
        labels = segments[name]
        fix = f"give one of {', '.join(map(format_value, labels))}"
        if name not in labels_by_name:
            return UnknownSegment(self.name, name, f"is missing: {fix}")
        types = format_types(labels_by_name[name], labels)
        return UnknownSegment(
            self.name, name, f"has a value that is not listed ({types}): {fix}", labels
        )

    def __hash__(self) -> int:
        """Hash the fingerprint: hashing a tuple of a million values each time would be slow."""
        return hash(self.fingerprint)

    # -- the identity ---------------------------------------------------------------------------

    @cached_property
    def fingerprint(self) -> str:
        """The SHA-256, in hex, of everything that affects privacy or decoding."""
        return canonical.fingerprint(self)


def _default_linkage(collection: Collection) -> Linkage:
    """Return the default: long units have few periods, so linking them costs little.

    All reports of a trend are one random choice, which cost epsilon once.
    """
    is_short = collection.unit in {Unit.EVENT, Unit.DAY} and not collection.is_trend
    return Linkage.PERIOD if is_short else Linkage.COLLECTION
