"""`batch`: the key of a collection whose reports travel by shuffler, read and checked.

A refused combination is one whose reports a shuffler could not hide, or could not hide once only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any

from ..definition_record import BatchRules, Definition, default_grace
from ..enums import Linkage, Model
from ..errors import DefinitionError
from ..kinds import kind_of
from ..kinds.toml_values import read_flag, read_number, read_whole
from ..limits import TOKEN_BYTES
from ..models import TRUST_MODELS
from ..periods import Unit
from ..shuffling.plain_report import message_limit

MAX_GRACE = 60
MOST = 100_000_000
_KEYS = tuple(field.name for field in fields(BatchRules))


def read_batch(value: object, model: Model, unit: Unit) -> BatchRules:
    """Return the rules of a table, with the defaults of the model and the unit."""
    if not isinstance(value, dict):
        raise DefinitionError("batch", value, "give a table: batch = {least = 1000, grace = 14}")
    for key, entry in value.items():
        if key not in _KEYS:
            raise DefinitionError(f"batch.{key}", entry, f"unknown key: give {', '.join(_KEYS)}")
    sizes = TRUST_MODELS[model].batch_sizes
    chosen: dict[str, Any] = {"least": sizes.default if sizes else 0, "grace": default_grace(unit)}
    chosen |= {key: _READERS.get(key, read_whole)(f"batch.{key}", value[key]) for key in value}
    return BatchRules(**chosen)


def check_batch(definition: Definition) -> None:
    """Require rules that a shuffler can keep, and nothing that it could not hide."""
    rules = definition.batch
    if rules is None:
        return
    model = TRUST_MODELS[definition.model]
    if model.batch_sizes is None:
        fix = "a curator must know whose value it is: no shuffler can be between. Remove batch"
        raise DefinitionError("batch", f"model = {definition.model}", fix)
    if not model.batch_sizes.least <= rules.least <= MOST:
        raise DefinitionError(
            "batch.least", rules.least, f"give {model.batch_sizes.least:,} to {MOST:,}"
        )
    if not 1 <= rules.grace <= MAX_GRACE:
        raise DefinitionError("batch.grace", rules.grace, f"give 1 to {MAX_GRACE} days")
    model.check_batch(rules)
    for key, value, fix in _refusals(definition):
        raise DefinitionError(key, value, fix)


def _refusals(definition: Definition) -> list[tuple[str, object, str]]:
    """Return what does not go with a batch: the key, its value, and the way out."""
    fresh = kind_of(definition.domain, definition.measure).fresh
    cases = [
        (definition.unit is Unit.EVENT, "unit", 'a person has one report a batch: "day" or longer'),
        (definition.per_day != 1, "per_day", "a person has one report a batch: remove it"),
        (bool(definition.segments), "segments", "they split a batch: cross them instead"),
        (not fresh, "measure", "reports of a trend belong together, and none may: remove batch"),
        (
            definition.is_retention,
            "takes",
            "an answer about two periods is in two batches: remove batch",
        ),
        (definition.twin is not None, "twin", "twins must travel alike: remove it"),
        (definition.late != 0, "late", "a batch leaves once, after its grace: remove late"),
        (
            definition.linkage not in {Linkage.NONE, Linkage.TOKEN},
            "linkage",
            'a shuffler cannot hide what links reports: "none" or "token"',
        ),
    ]
    values = {"segments": [name for name, _ in definition.segments]}
    return [
        (key, values.get(key, getattr(definition, key)), fix)
        for refused, key, fix in cases
        if refused
    ]


def check_message_width(message_bytes: int, *, with_token: bool) -> None:
    """Refuse messages that do not fit into a sealed report, all of which have one size."""
    most = message_limit(TOKEN_BYTES if with_token else 0)
    if message_bytes > most:
        fix = f"a message of {message_bytes} bytes, {most} at most in a batch: give fewer values"
        raise DefinitionError("batch", None, fix)


_READERS: dict[str, Callable[[str, object], Any]] = {
    "epsilon": read_number,
    "delta": read_number,
    "allow_large_epsilon": read_flag,
}
