"""What a definition says to people, in the languages that its author gives.

All languages are in the canonical form: a person agreed to the words of one of them, and whoever
answers a question in another language must have been asked the same.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

#: a language tag of BCP 47: language, script, region
TAG = re.compile(r"[a-z]{2,3}(-[A-Z][a-z]{3})?(-([A-Z]{2}|[0-9]{3}))?")
MOST_LANGUAGES = 64
FALLBACK = "en"  # for a language without a text; without English, the first tag
TEXT_KEYS = ("question", "purpose", "labels")


@dataclass(frozen=True, slots=True)
class Translation:
    """The texts of one language; None where a text is not translated."""

    language: str
    question: str | None = None
    purpose: str | None = None
    labels: tuple[str, ...] | None = None  # in the order of the inputs


Translations = tuple[Translation, ...]


def translations_of(tables: Mapping[str, Mapping[str, Any]]) -> Translations:
    """Return the translations of texts by key and language, in the order of the languages."""
    languages = sorted({language for texts in tables.values() for language in texts})
    return tuple(
        Translation(language, **{key: texts.get(language) for key, texts in tables.items()})
        for language in languages
    )


def by_language(translations: Translations, key: str) -> dict[str, Any]:
    """Return the texts of one key, by language."""
    texts = {entry.language: getattr(entry, key) for entry in translations}
    return {language: text for language, text in texts.items() if text is not None}


def fallback_text(texts: Mapping[str, str]) -> str:
    """Return the text for a language that has none."""
    return texts[FALLBACK if FALLBACK in texts else min(texts)]


def best_tag(tags: Collection[str], language: str) -> str:
    """Return the longest of the tags that a language begins with; empty if there is none."""
    by_case = {tag.casefold(): tag for tag in tags}
    subtags = language.replace("_", "-").casefold().split("-")
    beginnings = ("-".join(subtags[:length]) for length in range(len(subtags), 0, -1))
    return next((by_case[tag] for tag in beginnings if tag in by_case), "")
