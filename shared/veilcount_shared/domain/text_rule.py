"""The rule of texts: labels, open strings and texts for people, alike in every language.

It names Unicode properties only, never what one language takes for white space or for printable: a
string that two clients normalize in two ways is two strings.
"""

from __future__ import annotations

import re
import unicodedata
from typing import cast

MAX_LABEL = 200

#: the 25 code points of the Unicode property White_Space; by default `str.strip` takes others too
WHITE_SPACE = (
    "\t\n\x0b\x0c\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009"
    "\u200a\u2028\u2029\u202f\u205f\u3000"
)
#: controls, surrogates, private use, separators of lines and paragraphs
_REFUSED = frozenset({"Cc", "Cs", "Co", "Zl", "Zp"})
#: what a joiner stands behind and before in an emoji. An unassigned character counts as an emoji:
#: a later version of Unicode may have made it one
_JOINED, _JOINABLE = frozenset({"So", "Sk", "Cn"}), frozenset({"So", "Sm", "Cn"})
_JOINER, _EMOJI_STYLE = "\u200d", "\ufe0f"
#: the flag of a region: a black flag, the region in tag characters, the tag that ends it
_REGION_FLAG = re.compile("\U0001f3f4[\U000e0020-\U000e007e]+\U000e007f")


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


def normalization_advice(text: str) -> str:
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
