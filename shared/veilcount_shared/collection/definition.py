"""One collection: valid from birth, with its design, its three epsilons and its slots."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from functools import cached_property
from math import prod

from .. import periods
from ..domain import GRID_BITS, Boolean, Choice, Cross, Number
from ..errors import MessageOutOfRange, TrustModelError, UnknownSegment
from ..mechanisms import (
    DistributionMechanism,
    Identity,
    MeanMechanism,
    ProjectiveGeometry,
    RangeTree,
    SubsetSelection,
    select_mechanism,
)
from ..periods import Unit
from ..randomness import RandomSource
from . import canonical, validation
from .enums import Adjacency, Cohort, Held, Linkage, Measure, Model, Presence, Segments, Takes

_BY_MEASURE: dict[Measure, type[MeanMechanism | DistributionMechanism | RangeTree]] = {
    Measure.MEAN: MeanMechanism,
    Measure.DISTRIBUTION: DistributionMechanism,
    Measure.RANGES: RangeTree,
}

Mechanism = (
    SubsetSelection
    | ProjectiveGeometry
    | MeanMechanism
    | DistributionMechanism
    | RangeTree
    | Identity
)


@dataclass(frozen=True, kw_only=True)
class Collection:
    """One question put to the crowd. The README's table says what each key means."""

    app: str
    name: str
    question: str
    domain: Boolean | Choice | Number | Cross
    unit: Unit
    start: date
    until: date
    epsilon: Fraction | None = None
    measure: Measure | None = None
    per_period: int = 1
    takes: Takes = Takes.FIRST
    held: Held | None = None
    answers: int | None = None
    late: int = 30
    linkage: Linkage | None = None
    presence: Presence = Presence.PUBLIC
    segments: Segments = ()
    cohort: Cohort | None = None
    model: Model = Model.LOCAL
    twin: str | None = None
    budget: Fraction | None = None
    adjacency: Adjacency | None = None
    owner: str | None = None
    purpose: str | None = None
    replaces: str | None = None

    def __post_init__(self) -> None:
        """Fill in what depends on the unit, then refuse what no one could keep."""
        object.__setattr__(self, "linkage", self.linkage or _default_linkage(self.unit))
        validation.check_definition(self)

    # -- the promise ---------------------------------------------------------------------------

    @property
    def unit_epsilon(self) -> Fraction:
        """What one unit reveals: of one answer, or of all releases of its period."""
        given = self.budget if self.model is Model.CENTRAL else self.epsilon
        assert given is not None, "rules.check has required it"  # noqa: S101 - told to the type checker
        return given

    @property
    def epsilon_event(self) -> Fraction:
        """What one event reveals: at most one answer."""
        return self.unit_epsilon

    @property
    def epsilon_day(self) -> Fraction:
        """What a UTC day reveals."""
        return self.unit_epsilon * self.per_period

    @property
    def epsilon_user(self) -> Fraction:
        """What the whole campaign reveals of one person: the plain sum."""
        return self.epsilon_day * self.answering

    @property
    def epsilon_adjacency(self) -> Adjacency:
        """Which data sets every epsilon here compares: a local one exchanges one value."""
        return self.adjacency or Adjacency.SUBSTITUTE

    @property
    def substitution_factor(self) -> int:
        """How many times epsilon bounds the exchange of one value for another.

        Under add-remove an exchange is a removal and an addition, so group privacy doubles it.
        """
        return 2 if self.epsilon_adjacency is Adjacency.ADD_REMOVE else 1

    @property
    def answering(self) -> int:
        """In how many periods a person answers."""
        return self.answers or self.periods

    @property
    def held_on_device(self) -> bool:
        """Whether a value waits on the device's disk; if not, it waits in the process's memory."""
        return self.held is Held.DEVICE

    # -- the design ----------------------------------------------------------------------------

    @cached_property
    def mechanism(self) -> Mechanism:
        """The randomizer; for a trusted curator, none."""
        if self.model is Model.CENTRAL:
            return Identity(self.inputs)
        if isinstance(self.domain, Number):
            assert self.measure is not None, "rules.check has required it"  # noqa: S101 - told to the type checker
            return _BY_MEASURE[self.measure].for_epsilon(self.unit_epsilon)
        return select_mechanism(self.inputs, self.unit_epsilon).mechanism

    @property
    def inputs(self) -> int:
        """How many inputs the design tells apart: the domain's, and `absent` where it is hidden."""
        if isinstance(self.domain, Number):
            return int(self.domain.high - self.domain.low) + 1  # used for integer grids only
        return self.domain.size + (self.presence is Presence.HIDDEN)

    @cached_property
    def message_bits(self) -> int:
        """A message lies below 2 ** message_bits."""
        return self.mechanism.bits

    @property
    def message_bytes(self) -> int:
        """The fixed width of a message on the wire."""
        return -(-self.message_bits // 8)

    def randomize(self, value: object, randomness: RandomSource) -> int:
        """Return the message of any value whatever: epsilon-LDP, and never an error."""
        return self.randomizer.randomize(self.domain.input(value, randomness), randomness)

    def randomize_absent(self, randomness: RandomSource) -> int:
        """Return the message of a period without a record, where presence is hidden."""
        if self.presence is not Presence.HIDDEN:
            raise TrustModelError(self.name, "presence is public: a period without a record is")
        return self.randomizer.randomize(self.inputs - 1, randomness)

    def reveal(self, value: object, randomness: RandomSource) -> int:
        """Return the true value's message, for a trusted curator and nobody else."""
        if not isinstance(self.mechanism, Identity):
            raise TrustModelError(self.name, "the model is local: use randomize()")
        place = self.domain.input(value, randomness)
        if isinstance(self.domain, Number):  # from the grid to the nearest integer of the range
            place = (place * (self.inputs - 1) + (1 << GRID_BITS - 1)) >> GRID_BITS
        return self.mechanism.reveal(place)

    def pack(self, message: int) -> bytes:
        """Return the message at its fixed width, the highest byte first."""
        return message.to_bytes(self.message_bytes, "big")

    def unpack(self, packed: bytes) -> int:
        """Return the message, or refuse what is none."""
        message = int.from_bytes(packed, "big")
        if len(packed) != self.message_bytes or not self.mechanism.valid(message):
            raise MessageOutOfRange(
                f"message: give {self.message_bytes} bytes that are a message of this design"
            )
        return message

    @cached_property
    def randomizer(
        self,
    ) -> SubsetSelection | ProjectiveGeometry | MeanMechanism | DistributionMechanism | RangeTree:
        """The mechanism of a local collection; refused for a trusted curator's."""
        if isinstance(self.mechanism, Identity):
            raise TrustModelError(self.name, "the model is central: use reveal()")
        return self.mechanism

    # -- periods, slots, segments --------------------------------------------------------------

    @cached_property
    def periods(self) -> int:
        """How many periods the campaign touches."""
        return periods.count_periods(self.unit, self.start, self.until)

    @property
    def slots(self) -> int:
        """How many slots an epoch has."""
        if self.linkage is Linkage.COLLECTION:
            return self.periods * self.per_period
        return self.per_period if self.linkage is Linkage.PERIOD else 1

    @property
    def cells(self) -> int:
        """How many segments are told apart."""
        return prod(len(labels) for _, labels in self.segments)

    def segment(self, /, **given: object) -> int:
        """Return the cell of the given segment values, the first segment as the highest digit."""
        place = 0
        for name, labels in self.segments:
            label = given.pop(name, None)
            if label not in labels:
                raise UnknownSegment(self.name, name, tuple(map(str, labels)))
            place = place * len(labels) + labels.index(label)
        if given:
            raise UnknownSegment(self.name, min(given), tuple(name for name, _ in self.segments))
        return place

    def __hash__(self) -> int:
        """By the fingerprint: a tuple of a million values would be hashed anew at every look."""
        return hash(self.fingerprint)

    # -- the name ------------------------------------------------------------------------------

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256, in hex, of everything that affects privacy or decoding."""
        return canonical.fingerprint(self)


def _default_linkage(unit: Unit) -> Linkage:
    """Long units have few periods: the server can enforce the user figure at little linkage."""
    return Linkage.PERIOD if unit in {Unit.EVENT, Unit.DAY} else Linkage.COLLECTION
