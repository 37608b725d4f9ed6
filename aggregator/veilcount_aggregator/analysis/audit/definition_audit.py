"""The audit of a definition: the bytes that its own randomizer sends for two of its values."""

from __future__ import annotations

from veilcount_shared import Collection, RandomSource
from veilcount_shared.collection import Model, Presence
from veilcount_shared.domain import Cross, Number
from veilcount_shared.mechanisms import SubsetSelection

from .audit import CLAIM_MAX, AuditResult, audit
from .message_table import SYMBOL_BITS_MAX

ABSENT = object()  # no value at all: what a hidden presence is told apart from


def why_not(collection: Collection) -> str:
    """Return why a definition cannot be audited; nothing, where it can."""
    if collection.model is Model.CENTRAL:
        return "sends true values, to a trusted curator"
    if collection.unit_epsilon > CLAIM_MAX:
        return f"beyond epsilon {CLAIM_MAX:g} samples that one can afford show nothing"
    return ""


def audit_definition(
    collection: Collection, randomness: RandomSource, *, samples: int, alpha: float
) -> AuditResult:
    """Audit what a device sends for the two values that are told apart best.

    Of values any two are as good as any other; of a number its ends; of a hidden presence, a value
    and none.
    """

    def emit(value: object) -> bytes:
        absent = value is ABSENT
        message = (
            collection.randomize_absent(randomness)
            if absent
            else collection.randomize(value, randomness)
        )
        return collection.pack(message)

    return audit(
        emit,
        _pair(collection),
        float(collection.unit_epsilon),
        samples=samples,
        alpha=alpha,
        symbol_bits=_symbol_bits(collection),
    )


def _pair(collection: Collection) -> tuple[object, object]:
    domain = collection.domain
    if isinstance(domain, Number):
        return domain.low, domain.high
    if isinstance(domain, Cross):
        first: object = tuple(part.labels[0] for part in domain.parts)
        last: object = tuple(part.labels[-1] for part in domain.parts)
    else:
        first, last = domain.labels[0], domain.labels[-1]
    return first, ABSENT if collection.presence is Presence.HIDDEN else last


def _symbol_bits(collection: Collection) -> tuple[int, ...]:
    """Return the widths of a message's parts: bits, bytes, and packed members."""
    mechanism = collection.mechanism
    packed = isinstance(mechanism, SubsetSelection) and mechanism.w > 1 and not mechanism.masked
    if (
        packed
        and isinstance(mechanism, SubsetSelection)
        and mechanism.label_bits <= SYMBOL_BITS_MAX
    ):
        return (1, 8, mechanism.label_bits)
    return (1, 8)
