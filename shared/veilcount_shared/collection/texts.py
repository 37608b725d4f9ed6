"""Reads and checks what a definition says to people: one text, or a table by language."""

from __future__ import annotations

from typing import Any

from ..definition_record import Definition
from ..domain import Number, check_labels, is_normalized
from ..errors import DefinitionError
from ..kinds import kind_of
from ..kinds.toml_values import Table, read_labels, read_text
from ..translations import (
    MOST_LANGUAGES,
    TAG,
    TEXT_KEYS,
    by_language,
    fallback_text,
    translations_of,
)

MAX_TEXT = 300
_EXAMPLES = {
    "question": '{en = "Which theme?", de = "Welches Farbschema?"}',
    "purpose": '{en = "To design it.", de = "Um es zu gestalten."}',
    "labels": '{de = ["hell", "dunkel"]}',
}


def read_texts(table: Table) -> dict[str, Any]:
    """Return the fields that a table's texts make: each fallback, and the translations."""
    fields: dict[str, Any] = {}
    tables: dict[str, dict[str, Any]] = {}
    for key in TEXT_KEYS:
        value = table.get(key)
        if isinstance(value, dict) or key == "labels":
            tables[key] = _read_languages(key, value) if value is not None else {}
        elif value is not None:
            fields[key] = read_text(key, value)
    fallbacks = {key: fallback_text(tables[key]) for key in tables if key != "labels"}
    return {**fields, **fallbacks, "translations": translations_of(tables)}


def _read_languages(key: str, value: object) -> dict[str, Any]:
    read = read_labels if key == "labels" else read_text
    if not isinstance(value, dict) or not value:
        raise DefinitionError(key, value, f"give a table by language: {key} = {_EXAMPLES[key]}")
    return {language: read(f"{key}.{language}", text) for language, text in value.items()}


def check_texts(definition: Definition) -> None:
    """Texts are one line each, and labels as many as there are answers."""
    for key in ("question", "owner", "purpose", "measured_in"):
        _check_line(key, getattr(definition, key))
    if definition.measured_in is not None and not isinstance(definition.domain, Number):
        fix = "only a number, with range, is measured in something: remove it"
        raise DefinitionError("measured_in", definition.measured_in, fix)
    if len(definition.translations) > MOST_LANGUAGES:
        languages = [entry.language for entry in definition.translations]
        raise DefinitionError("question", languages, f"at most {MOST_LANGUAGES} languages")
    for key in ("question", "purpose"):
        texts = by_language(definition.translations, key)
        if texts and getattr(definition, key) != fallback_text(texts):
            raise DefinitionError(key, texts, "the text without a language is one of these")
    for entry in definition.translations:
        if not TAG.fullmatch(entry.language):
            fix = 'give a language tag, such as "de", "pt-BR" or "zh-Hant"'
            raise DefinitionError("question", entry.language, fix)
        for key in ("question", "purpose"):
            _check_line(f"{key}.{entry.language}", getattr(entry, key))
        _check_translated(definition, f"labels.{entry.language}", entry.labels)


def _check_line(key: str, text: str | None) -> None:
    if text is not None and not is_normalized(text, MAX_TEXT):
        fix = f"give one line of 1 to {MAX_TEXT} characters, as a label is written"
        raise DefinitionError(key, text, fix)


def _check_translated(definition: Definition, key: str, labels: tuple[str, ...] | None) -> None:
    if labels is None:
        return
    count = kind_of(definition.domain, definition.measure).labels(definition.domain)
    if not count:
        raise DefinitionError(key, list(labels), "only for listed values: remove it")
    if len(labels) != count or not all(isinstance(label, str) for label in labels):
        fix = f"give {count} strings, one for each of the values in their order, `other` last"
        raise DefinitionError(key, list(labels[:5]), fix)
    check_labels(key, labels)
