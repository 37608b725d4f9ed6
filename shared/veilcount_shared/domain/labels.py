"""Labels: the strings and integers that name listed values, as people and JSON can read them."""

from __future__ import annotations

import unicodedata
from collections import Counter

from ..errors import DefinitionError

MAX_VALUES = 1_000_000
MAX_LABEL = 200

Label = str | int

#: controls, surrogates, line and paragraph separators: categories that no Unicode version changes;
#: and marks of no width that turn the text after them or make two labels look alike
_INVISIBLE = frozenset({"Cc", "Cs", "Zl", "Zp"})
_ZERO_WIDTH = frozenset(
    "\u061c\u200b\ufeff\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
)


def check_labels(key: str, labels: tuple[Label, ...]) -> None:
    """Raise if a list of labels is too long, mixed, repeated or unreadable."""
    if len(labels) > MAX_VALUES:
        raise DefinitionError(key, f"{len(labels)} values", f"at most {MAX_VALUES:,} are possible")
    if len({type(label) for label in labels}) > 1:
        raise DefinitionError(key, list(labels[:5]), "give all strings or all integers")
    for label in labels:
        check_label(key, label)
    repeated = [label for label, count in Counter(labels).items() if count > 1]
    if repeated:
        raise DefinitionError(key, repeated[0], "this value is listed twice: list it once")


def has_hidden_characters(text: str) -> bool:
    """Whether a text holds characters that a reader cannot see."""
    return not (
        _ZERO_WIDTH.isdisjoint(text) and _INVISIBLE.isdisjoint(map(unicodedata.category, text))
    )


def check_label(key: str, label: object) -> None:
    """Refuse a label that is empty, too long, unprintable or written in two ways."""
    if isinstance(label, int) and not isinstance(label, bool):
        if abs(label) >= 1 << 53:  # beyond it JSON readers in other languages round
            raise DefinitionError(key, label, "integers must lie within +/- 2^53")
        return
    if not isinstance(label, str):
        raise DefinitionError(key, label, "give a string or an integer")
    if not 0 < len(label) <= MAX_LABEL or label != label.strip():
        raise DefinitionError(key, label, f"give 1 to {MAX_LABEL} characters, no space around them")
    if has_hidden_characters(label):
        raise DefinitionError(key, label, "control characters are not allowed")
    if not unicodedata.is_normalized("NFC", label):
        raise DefinitionError(key, label, "write it in Unicode normal form C")
