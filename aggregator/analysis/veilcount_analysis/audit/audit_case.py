"""The two values of a definition that are easiest to distinguish, and what sends their reports."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from veilcount_shared import Collection, RandomSource

from ..mechanisms import handler_of
from .audit import CLAIM_MAX, AuditResult, audit
from .events import MessageFeature, ValueSupport

ABSENT = object()  # no value at all: what a hidden presence is distinguished from


@dataclass(frozen=True, slots=True)
class AuditCase:
    """A pair of values, the bytes that a device sends of one, and events to look for in them."""

    collection: Collection
    pair: tuple[object, object]
    emit: Callable[[object], bytes]
    features: tuple[MessageFeature, ...] = ()

    def run(self, *, samples: int, alpha: float) -> AuditResult:
        """Audit the definition's epsilon on so many samples of each value."""
        return audit(
            self.emit,
            self.pair,
            float(self.collection.unit_epsilon),
            samples=samples,
            alpha=alpha,
            symbol_bits=handler_of(self.collection.mechanism).symbol_bits,
            features=self.features,
        )


def unaudited_reason(collection: Collection) -> str:
    """Return why a definition cannot be audited; nothing, where it can."""
    if collection.trust.reveals:
        return "sends true values, to a trusted curator"
    if collection.unit_epsilon > CLAIM_MAX:
        return f"beyond epsilon {CLAIM_MAX:g} samples that one can afford show nothing"
    return ""


def report_case(collection: Collection, randomness: RandomSource) -> AuditCase:
    """Return the case of one report: of two values; of a hidden presence, of a value and none."""

    def emit(value: object) -> bytes:
        if value is ABSENT:
            return collection.pack(collection.randomize_absent(randomness))
        return collection.pack(collection.randomize(value, randomness))

    first, last = collection.domain.extremes
    if collection.has_absent:
        return AuditCase(collection, (first, ABSENT), emit)
    features = tuple(_supports(collection, (first, last), randomness))
    return AuditCase(collection, (first, last), emit, features)


def _supports(
    collection: Collection, values: tuple[object, object], randomness: RandomSource
) -> Iterator[ValueSupport]:
    """Yield whether a message supports each of the values, where there are millions of messages."""
    supports = handler_of(collection.mechanism).message_supports
    if supports is None:
        return
    for value in values:
        point = collection.domain.input(value, randomness)
        yield ValueSupport(value, _of_bytes(supports, point))


def _of_bytes(supports: Callable[[int, int], bool], point: int) -> Callable[[bytes], bool]:
    return lambda packed: supports(int.from_bytes(packed, "big"), point)
