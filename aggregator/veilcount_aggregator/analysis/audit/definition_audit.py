"""The audit of a definition: the bytes that its own randomizer sends for two of its values."""

from __future__ import annotations

from veilcount_shared import Collection, RandomSource
from veilcount_shared.collection import Model, Presence
from veilcount_shared.domain import Cross, Number

from ...mechanisms import handler_of
from .audit import CLAIM_MAX, AuditResult, audit

ABSENT = object()  # no value at all: what a hidden presence is distinguished from


def unaudited_reason(collection: Collection) -> str:
    """Return why a definition cannot be audited; nothing, where it can."""
    if collection.model is Model.CENTRAL:
        return "sends true values, to a trusted curator"
    if collection.unit_epsilon > CLAIM_MAX:
        return f"beyond epsilon {CLAIM_MAX:g} samples that one can afford show nothing"
    return ""


def audit_definition(
    collection: Collection, randomness: RandomSource, *, samples: int, alpha: float
) -> AuditResult:
    """Audit what a device sends for the two values that are easiest to distinguish.

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
        symbol_bits=handler_of(collection.mechanism).symbol_bits,
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
