"""Collection: one validated definition, its mechanism, its messages and its fingerprint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ..cached_property import cached_property
from ..definition_record import Definition
from ..domain import Domain, Label, find_label
from ..enums import Linkage, Presence, Takes, Waiting
from ..errors import MessageOutOfRange, TrustModelError, UnknownSegment, format_types, format_value
from ..kinds import DeviceKind, Price, TrueCells, kind_of
from ..mechanisms import Identity, Mechanism, Randomizer
from ..models import TRUST_MODELS, TrustModel
from ..periods import Unit
from ..randomness import RandomSource
from ..translations import TEXT_KEYS, best_tag, by_language
from . import batches, canonical, validation


@dataclass(frozen=True, slots=True)
class Wording:
    """What people read of a definition, in one language."""

    question: str
    purpose: str | None
    domain: Domain


@dataclass(frozen=True, kw_only=True)
class Collection(Definition):
    """One question put to a population, valid from birth, with its mechanism and fingerprint."""

    def __post_init__(self) -> None:
        validation.check_enums(self)
        object.__setattr__(self, "linkage", self.linkage or self._default_linkage())
        validation.check_definition(self)
        if self.batch is not None:
            has_tokens = self.linkage is Linkage.TOKEN
            batches.check_message_width(self.message_bytes, with_token=has_tokens)

    def _default_linkage(self) -> Linkage:
        """Return the default: long units have few periods, so linking them costs little.

        Messages that are one random choice cost epsilon once, linked or not.
        """
        if self.batch is not None:
            return Linkage.NONE
        is_short = self.unit in {Unit.EVENT, Unit.DAY} and self.kind.fresh
        return Linkage.PERIOD if is_short else Linkage.COLLECTION

    # -- privacy -------------------------------------------------------------------------------

    @property
    def epsilon_user(self) -> Fraction:
        """Epsilon of one person over the whole campaign: the plain sum."""
        return self.epsilon_within(self.periods)

    def epsilon_within(self, periods: int) -> Fraction:
        """Return the epsilon of one person within so many periods in a row."""
        return self.epsilon_day * min(periods, self.answering if self.kind.fresh else 1)

    @property
    def priced_answers(self) -> int:
        """The number of answers that each cost epsilon; messages drawn once cost it once."""
        return self.answering * self.per_day if self.kind.fresh else 1

    @property
    def is_trend(self) -> bool:
        """Whether a person's reports over time belong together, at one epsilon for all."""
        return not self.kind.fresh

    @property
    def waiting(self) -> Waiting | None:
        """What waits on the device; None: a report is made as soon as something is recorded."""
        if self.trust.reveals:
            return Waiting.TRUE
        if self.is_trend:
            return Waiting.TREND
        if self.is_retention:
            return Waiting.RETURNING
        return None if self.takes is Takes.FIRST else Waiting.RUNNING

    # -- the mechanism -------------------------------------------------------------------------

    @cached_property
    def kind(self) -> DeviceKind[Any]:
        """The kind of question that the domain and the measure make."""
        return kind_of(self.domain, self.measure)

    @property
    def trust(self) -> TrustModel:
        """The trust model: who adds the noise."""
        return TRUST_MODELS[self.model]

    @cached_property
    def mechanism(self) -> Mechanism:
        """The randomizer, or the identity for a trusted curator."""
        return self.trust.mechanism(self.kind, self.price)

    @cached_property
    def randomizer(self) -> Randomizer:
        """The mechanism of a local collection; raises for a trusted curator's."""
        if self.trust.reveals:
            raise TrustModelError(self.name, "the model is central: use reveal()")
        return self.kind.randomizer(self.price)

    @cached_property
    def true_cells(self) -> TrueCells:
        """The counters of a trusted curator; raises for a kind that has none."""
        cells = self.kind.true_cells(self.domain)
        if cells is None:
            raise TrustModelError(self.name, f"a curator has no counters of {self.kind.name}")
        return cells

    @property
    def price(self) -> Price[Any]:
        """What the randomizer depends on."""
        return Price(self.domain, self.inputs, self.unit_epsilon, self.periods, self.changes)

    @property
    def inputs(self) -> int:
        """The number of inputs: the domain's, and `absent` where presence is hidden.

        A trend has none of its own for it: a state is reported whether or not it was recorded.
        """
        return self.trust.inputs(self.kind, self.domain) + self.has_absent

    @property
    def has_absent(self) -> bool:
        """Whether a period without a record is an answer of its own."""
        return self.presence is Presence.HIDDEN and self.kind.fresh

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
        if not self.trust.reveals:
            raise TrustModelError(self.name, "the model is local: use randomize()")
        point = self.domain.input(value, randomness)
        return Identity(self.inputs).reveal(self.true_cells.cell(point))

    def message(self, value: object, randomness: RandomSource) -> int:
        """Return the message of a value, randomized unless the model reveals it."""
        report = self.reveal if self.trust.reveals else self.randomize
        return report(value, randomness)

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

    def describe_message(self, packed: bytes, language: str = "") -> str:
        """Return a packed message as a person can read it: the values that it may stand for."""
        domain = self.wording(language).domain
        labels = list(getattr(domain, "labels", range(self.mechanism.inputs)))
        if self.has_absent:
            labels.append("absent")
        return self.mechanism.describe_message(self.unpack(packed), labels)

    # -- segments ------------------------------------------------------------------------------

    def segment(self, /, **labels_by_name: object) -> int:
        """Return the cell of segment values as a mixed-radix number, the first segment highest."""
        place = 0
        for name, labels in self.segments:
            digit = _digit(labels, labels_by_name.get(name))  # None is no label
            if digit is None:
                raise self._unknown_segment(labels_by_name)
            place = place * len(labels) + digit
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
        name = next(
            key for key in segments if _digit(segments[key], labels_by_name.get(key)) is None
        )
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

    # -- what people read ----------------------------------------------------------------------

    def wording(self, language: str = "") -> Wording:
        """Return what people read, in a language as far as the definition has it."""
        question, purpose, labels = (
            texts.get(best_tag(texts, language))
            for texts in (by_language(self.translations, key) for key in TEXT_KEYS)
        )
        domain = self.kind.translated(self.domain, labels) if labels else self.domain
        return Wording(question or self.question, purpose or self.purpose, domain)

    # -- the identity ---------------------------------------------------------------------------

    @cached_property
    def fingerprint(self) -> str:
        """The SHA-256, in hex, of everything that affects privacy or decoding."""
        return canonical.fingerprint(self, self.mechanism)


def _digit(labels: tuple[Label, ...], value: object) -> int | None:
    return find_label({label: place for place, label in enumerate(labels)}, value)
