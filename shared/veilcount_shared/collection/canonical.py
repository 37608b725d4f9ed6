"""The canonical form of a definition, and the fingerprint: its SHA-256.

It holds everything that affects privacy or decoding, the resolved mechanism included, and nothing
else: a question may be reworded, an owner may change. A key added by a later release is omitted at
its old implicit value, so that no fingerprint ever changes. JSON with sorted
keys, no white space, UTF-8; numbers that could outgrow a double are decimal strings, fractions are
"numerator/denominator".
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ..domain import format_fraction

if TYPE_CHECKING:
    from .definition import Collection

PROTOCOL = 1


def canonical_fields(collection: Collection) -> dict[str, Any]:
    """Return the fingerprinted fields as JSON values."""
    cohort = collection.cohort
    fields = {
        "protocol": PROTOCOL,
        "app": collection.app,
        "name": collection.name,
        "domain": collection.domain.canonical(),
        "measure": collection.measure,
        "mechanism": collection.mechanism.canonical(),
        "model": collection.model,
        "epsilon": collection.epsilon and format_fraction(collection.epsilon),
        "budget": collection.budget and format_fraction(collection.budget),
        "adjacency": collection.adjacency,
        "unit": collection.unit,
        "per_period": collection.per_period,
        "takes": collection.takes,
        "from": collection.start.isoformat(),
        "until": collection.until.isoformat(),
        "answers": collection.answering,
        "late": collection.late,
        "linkage": collection.linkage,
        "presence": collection.presence,
        "segments": [[name, list(labels)] for name, labels in collection.segments],
        "cohort": asdict(cohort) if cohort else None,
        "twin": collection.twin,
    }
    # Omitted at what definitions without the key mean ("process", no delta): no new series.
    if collection.held_on_device:
        fields["held"] = collection.held
    if collection.delta is not None:
        fields["delta"] = format_fraction(collection.delta)
    if collection.changes is not None:
        fields["changes"] = collection.changes
    if collection.tokens is not None:
        fields["tokens"] = collection.tokens
    return fields


def canonical_bytes(collection: Collection) -> bytes:
    """Return the canonical bytes."""
    text = json.dumps(
        canonical_fields(collection),
        sort_keys=True,
        separators=(",", ":"),
        ensure_ascii=False,
        allow_nan=False,
    )
    return text.encode()


def fingerprint(collection: Collection) -> str:
    """Return the SHA-256 of the canonical bytes, in hex."""
    return hashlib.sha256(canonical_bytes(collection)).hexdigest()
