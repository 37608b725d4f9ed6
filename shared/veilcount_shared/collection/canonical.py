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
from typing import Any

from ..definition_record import Definition
from ..domain import format_fraction
from ..mechanisms import Mechanism

PROTOCOL = 1


def canonical_fields(definition: Definition, mechanism: Mechanism) -> dict[str, Any]:
    """Return the fingerprinted fields as JSON values."""
    cohort = definition.cohort
    fields = {
        "protocol": PROTOCOL,
        "app": definition.app,
        "name": definition.name,
        "domain": definition.domain.canonical(),
        "measure": definition.measure,
        "mechanism": mechanism.canonical(),
        "model": definition.model,
        "epsilon": definition.epsilon and format_fraction(definition.epsilon),
        "budget": definition.budget and format_fraction(definition.budget),
        "adjacency": definition.adjacency,
        "unit": definition.unit,
        "per_period": definition.per_period,
        "takes": definition.takes,
        "from": definition.start.isoformat(),
        "until": definition.until.isoformat(),
        "answers": definition.answering,
        "late": definition.late,
        "linkage": definition.linkage,
        "presence": definition.presence,
        "segments": [[name, list(labels)] for name, labels in definition.segments],
        "cohort": asdict(cohort) if cohort else None,
        "twin": definition.twin,
    }
    # Omitted at what definitions without the key mean ("process", no delta): no new series.
    if definition.held_on_device:
        fields["held"] = definition.held
    if definition.delta is not None:
        fields["delta"] = format_fraction(definition.delta)
    if definition.changes is not None:
        fields["changes"] = definition.changes
    if definition.tokens is not None:
        fields["tokens"] = definition.tokens
    return fields


def canonical_bytes(definition: Definition, mechanism: Mechanism) -> bytes:
    """Return the canonical bytes."""
    text = json.dumps(
        canonical_fields(definition, mechanism),
        sort_keys=True,
        separators=(",", ":"),
        ensure_ascii=False,
        allow_nan=False,
    )
    return text.encode()


def fingerprint(definition: Definition, mechanism: Mechanism) -> str:
    """Return the SHA-256 of the canonical bytes, in hex."""
    return hashlib.sha256(canonical_bytes(definition, mechanism)).hexdigest()
