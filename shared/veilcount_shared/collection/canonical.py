"""The canonical form of a definition, and the fingerprint: its SHA-256.

It holds everything that affects privacy or decoding, the resolved mechanism included, and what a
person agreed to: the question, its purpose and the labels, in all languages. Every key is always
there, and a kind of question adds keys of its own: a new kind changes no other's text. JSON with
sorted keys, no white space, UTF-8; numbers that could outgrow a double are decimal strings,
fractions are "numerator/denominator".
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from typing import Any

from ..definition_record import BatchRules, Definition
from ..domain import format_fraction
from ..enums import Held
from ..kinds import kind_of
from ..mechanisms import Mechanism
from ..translations import by_language

PROTOCOL = 1


def canonical_fields(definition: Definition, mechanism: Mechanism) -> dict[str, Any]:
    """Return the fingerprinted fields as JSON values."""
    kind = kind_of(definition.domain, definition.measure)
    own = {
        "changes": definition.changes,
        "noise": definition.noise,
        "labels": by_language(definition.translations, "labels"),
    }
    return _common_fields(definition, mechanism) | {key: own[key] for key in kind.canonical_keys}


def _common_fields(definition: Definition, mechanism: Mechanism) -> dict[str, Any]:
    cohort = definition.cohort
    return {
        "protocol": PROTOCOL,
        "app": definition.app,
        "name": definition.name,
        "question": _text(definition, "question"),
        "purpose": _text(definition, "purpose"),
        "domain": definition.domain.canonical(),
        "measure": definition.measure,
        "mechanism": mechanism.canonical(),
        "model": definition.model,
        "epsilon": definition.epsilon and format_fraction(definition.epsilon),
        "budget": definition.budget and format_fraction(definition.budget),
        "delta": definition.delta and format_fraction(definition.delta),
        "adjacency": definition.adjacency,
        "unit": definition.unit,
        "per_day": definition.per_day,
        "takes": definition.takes,
        "held": definition.held or Held.PROCESS,
        "from": definition.start.isoformat(),
        "until": definition.until.isoformat(),
        "answers": definition.answering,
        "late": definition.late,
        "linkage": definition.linkage,
        "tokens": definition.tokens,
        "presence": definition.presence,
        "segments": [[name, list(labels)] for name, labels in definition.segments],
        "cohort": asdict(cohort) if cohort else None,
        "twin": definition.twin,
        "batch": definition.batch and _batch(definition.batch),
        "group": asdict(definition.group) if definition.group else None,
    }


def _batch(rules: BatchRules) -> dict[str, Any]:
    fractions = {key: getattr(rules, key) for key in ("epsilon", "delta")}
    return asdict(rules) | {
        key: value and format_fraction(value) for key, value in fractions.items()
    }


def _text(definition: Definition, key: str) -> str | dict[str, str] | None:
    """Return a text, by language if it has one."""
    text: str | None = getattr(definition, key)
    return by_language(definition.translations, key) or text


def canonical_text(definition: Definition, mechanism: Mechanism) -> str:
    """Return the canonical form."""
    return json.dumps(
        canonical_fields(definition, mechanism),
        sort_keys=True,
        separators=(",", ":"),
        ensure_ascii=False,
        allow_nan=False,
    )


def fingerprint(definition: Definition, mechanism: Mechanism) -> str:
    """Return the SHA-256 of the canonical form in UTF-8, in hex."""
    return hashlib.sha256(canonical_text(definition, mechanism).encode()).hexdigest()
