"""The rule of texts: what its vectors have, and a second implementation."""

from __future__ import annotations

import re
import unicodedata
from typing import Any

from veilcount_client.testing import SeededRandomSource
from veilcount_shared.domain import MAX_LABEL, OpenStrings
from veilcount_shared.domain.labels import WHITE_SPACE

from ..vectors.vector_files import read

VECTORS: list[dict[str, Any]] = read("text.json")["vectors"]


def test_the_vectors_have_every_category_and_every_white_space() -> None:
    categories = {unicodedata.category(letter) for vector in VECTORS for letter in vector["text"]}
    stripped = {vector["text"][0] for vector in VECTORS if vector["string"] == "walk"}

    assert {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs", "So", "Sk", "Sm", "Mn"} <= categories
    assert len(WHITE_SPACE) == 25
    assert set(WHITE_SPACE) <= stripped


def test_a_string_of_another_form_has_the_buckets_of_its_normal_form() -> None:
    domain = OpenStrings("acme")

    assert domain.buckets("caf\u00e9") == domain.input("\u2003cafe\u0301 ", SeededRandomSource(1))


# -- a second implementation -----------------------------------------------------------------------

REFUSED = {"Cc", "Cs", "Co", "Zl", "Zp", "Cf"}
EMOJI = (
    "\U0001f3f4[\U000e0020-\U000e007e]+\U000e007f"  # a flag of a region
    "|(?<=[{before}\ufe0f])\u200d(?=[{after}])"
)


def string_of(text: str) -> str | None:
    """Return the open string that a text is, by one expression over the categories of a text."""
    stripped = unicodedata.normalize("NFC", text).strip(WHITE_SPACE)
    rest = re.sub(_emoji_pattern(stripped), "", stripped)
    allowed = REFUSED.isdisjoint(map(unicodedata.category, rest))
    return stripped if allowed and 0 < len(stripped) <= MAX_LABEL else None


def _emoji_pattern(text: str) -> str:
    """Return a pattern of what format characters of a text may stand in."""
    of = {letter: unicodedata.category(letter) for letter in text}
    before, after = (
        "".join(re.escape(letter) for letter in of if of[letter] in categories)
        for categories in (("So", "Sk", "Cn"), ("So", "Sm", "Cn"))
    )
    return EMOJI.format(before=before, after=after or "a^")


def test_a_second_implementation_of_the_rule_agrees() -> None:
    for vector in VECTORS:
        assert string_of(vector["text"]) == vector["string"], vector["about"]
        assert (vector["string"] == vector["text"]) == vector["label"]
