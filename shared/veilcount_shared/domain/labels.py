"""Labels, and the rule of texts for them, open strings and texts for people, in every language.

The rule names Unicode properties only, never what one language takes for white space or printable.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from typing import cast

from ..errors import DefinitionError

MAX_VALUES = 1_000_000
MAX_LABEL = 200

#: the 25 code points of the Unicode property White_Space; by default `str.strip` takes others too
WHITE_SPACE = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(
    map(chr, range(0x2000, 0x200B))
)
#: controls, surrogates, private use, separators of lines and paragraphs
_REFUSED = frozenset({"Cc", "Cs", "Co", "Zl", "Zp"})
#: what a joiner of emoji stands behind and before; a later Unicode may assign emoji
_JOINED, _JOINABLE = frozenset({"So", "Sk", "Cn"}), frozenset({"So", "Sm", "Cn"})
_JOINER, _EMOJI_STYLE = "\u200d", "\ufe0f"
#: the flag of a region: a black flag, the region in tag characters, the tag that ends it
_REGION_FLAG = re.compile("\U0001f3f4[\U000e0020-\U000e007e]+\U000e007f")

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
        raise DefinitionError(key, label, _advice(label))


def normalized(value: object, longest: int = MAX_LABEL) -> str | None:
    """Return a string in normal form C without white space around it.

    None: no string, an empty one, a longer one, or one with a character that is not allowed.
    """
    if not issubclass(type(value), str):  # isinstance would run the value's own code
        return None
    text = str.strip(cast("str", value), WHITE_SPACE)
    plain = text.isascii() and text.isprintable()
    if not plain:
        text = unicodedata.normalize("NFC", text)
    fits = 0 < len(text) <= longest and (plain or _is_allowed(text))
    return text if fits else None


def is_normalized(text: str, longest: int = MAX_LABEL) -> bool:
    """Whether the rule leaves a text as it is, as it must be in a definition."""
    return normalized(text, longest) == text


def _advice(text: str) -> str:
    """Return the fix for a label that is not normalized."""
    if not 0 < len(text) <= MAX_LABEL or text != text.strip(WHITE_SPACE):
        return f"give 1 to {MAX_LABEL} characters, no space around them"
    if not unicodedata.is_normalized("NFC", text):
        return "write it in Unicode normal form C"
    return "control characters, format characters and private use are not allowed"


def _is_allowed(text: str) -> bool:
    """Whether all characters are visible; format characters occur within emoji only."""
    text = _REGION_FLAG.sub("\U0001f3f4.", text)  # the point: no joiner follows a flag of a region
    categories = list(map(unicodedata.category, text))
    return _REFUSED.isdisjoint(categories) and all(
        _joins_emoji(text, categories, place)
        for place, category in enumerate(categories)
        if category == "Cf"
    )


def _joins_emoji(text: str, categories: list[str], place: int) -> bool:
    """Whether a format character is the joiner of two emoji."""
    if text[place] != _JOINER or not 0 < place < len(text) - 1:
        return False
    before = categories[place - 1] in _JOINED or text[place - 1] == _EMOJI_STYLE
    return before and categories[place + 1] in _JOINABLE
