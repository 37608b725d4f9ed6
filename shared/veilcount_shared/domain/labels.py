"""Labels: the strings and integers that name listed values, as people and JSON can read them."""

from __future__ import annotations

from collections import Counter

from ..errors import DefinitionError
from .text_rule import is_normalized, normalization_advice

MAX_VALUES = 1_000_000

Label = str | int


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


def check_label(key: str, label: object) -> None:
    """Refuse a label that the rule of texts would change, and an integer that is too large."""
    if isinstance(label, int) and not isinstance(label, bool):
        if abs(label) >= 1 << 53:  # beyond it JSON readers in other languages round
            raise DefinitionError(key, label, "integers must lie within +/- 2^53")
        return
    if not isinstance(label, str):
        raise DefinitionError(key, label, "give a string or an integer")
    if not is_normalized(label):
        raise DefinitionError(key, label, normalization_advice(label))
