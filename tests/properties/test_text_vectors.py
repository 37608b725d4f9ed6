"""The rule of texts, by vectors for every language; a second implementation, and wrong ones."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import pytest

from veilcount_client.testing import SeededRandomSource
from veilcount_shared.domain import MAX_LABEL, OpenStrings, check_label, is_normalized, normalized
from veilcount_shared.domain.labels import WHITE_SPACE
from veilcount_shared.errors import DefinitionError

_FILE = Path(__file__).parents[1] / "vectors" / "text.json"
VECTORS: list[dict[str, Any]] = json.loads(_FILE.read_text(encoding="utf-8"))["vectors"]


def is_label(text: str) -> bool:
    """Whether a definition may list a text."""
    try:
        check_label("values", text)
    except DefinitionError:
        return False
    return True


def test_each_text_is_the_pinned_label_and_string() -> None:
    strings = {vector["about"]: normalized(vector["text"]) for vector in VECTORS}
    labels = {vector["about"]: is_label(vector["text"]) for vector in VECTORS}

    assert len(strings) == len(VECTORS)
    assert strings == {vector["about"]: vector["string"] for vector in VECTORS}
    assert labels == {vector["about"]: vector["label"] for vector in VECTORS}


def test_a_label_is_a_text_that_the_rule_leaves_as_it_is() -> None:
    for vector in VECTORS:
        assert vector["label"] == is_normalized(vector["text"])
        assert vector["label"] == (vector["text"] == vector["string"])


def test_the_vectors_have_every_category_and_every_white_space() -> None:
    categories = {unicodedata.category(letter) for vector in VECTORS for letter in vector["text"]}
    stripped = {vector["text"][0] for vector in VECTORS if vector["string"] == "walk"}

    assert {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs", "So", "Sk", "Sm", "Mn"} <= categories
    assert len(WHITE_SPACE) == 25
    assert set(WHITE_SPACE) <= stripped


def test_a_string_of_another_form_has_the_buckets_of_its_normal_form() -> None:
    domain = OpenStrings("acme")

    assert domain.buckets("caf\u00e9") == domain.input("\u2003cafe\u0301 ", SeededRandomSource(1))


# -- a second implementation, and wrong ones -------------------------------------------------------

EMOJI = (
    "\U0001f3f4[\U000e0020-\U000e007e]+\U000e007f"  # a flag of a region
    "|(?<=[{before}\ufe0f])\u200d(?=[{after}])"
)


Form = Literal["NFC", "NFD", "NFKC"]


@dataclass(frozen=True)
class Rule:
    """The rule with its choices as fields: one expression, over the categories of a text."""

    strip: Callable[[str], str] = lambda text: text.strip(WHITE_SPACE)
    form: Form | None = "NFC"
    cut: Callable[[str, str], str] = lambda pattern, text: re.sub(pattern, "", text)
    refused: frozenset[str] = frozenset({"Cc", "Cs", "Co", "Zl", "Zp", "Cf"})
    length: Callable[[str], int] = len

    def string(self, text: str) -> str | None:
        """Return the open string that a text is."""
        stripped = self.strip(unicodedata.normalize(self.form, text) if self.form else text)
        rest = self.cut(_emoji_pattern(stripped), stripped)
        allowed = self.refused.isdisjoint(map(unicodedata.category, rest))
        return stripped if allowed and 0 < self.length(stripped) <= MAX_LABEL else None

    def agrees(self, vector: dict[str, Any]) -> bool:
        """Whether a text is by this rule what a vector states."""
        string = self.string(vector["text"])
        return (string, string == vector["text"]) == (vector["string"], vector["label"])


def _emoji_pattern(text: str) -> str:
    """Return a pattern of what format characters of a text may stand in."""
    of = {letter: unicodedata.category(letter) for letter in text}
    before, after = (
        "".join(re.escape(letter) for letter in of if of[letter] in categories)
        for categories in (("So", "Sk", "Cn"), ("So", "Sm", "Cn"))
    )
    return EMOJI.format(before=before, after=after or "a^")


def utf16_units(text: str) -> int:
    """The length of a text in a language whose characters are of 16 bits."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


RIGHT = Rule()
WRONG = {
    "white space as str.strip takes it": replace(RIGHT, strip=str.strip),
    "white space as JavaScript takes it": replace(
        RIGHT, strip=lambda text: text.strip(WHITE_SPACE.replace("\x85", "") + "\ufeff")
    ),
    "spaces of ASCII only": replace(RIGHT, strip=lambda text: text.strip(" \t\n\r\f\v")),
    "no normal form": replace(RIGHT, form=None),
    "normal form D": replace(RIGHT, form="NFD"),
    "normal form KC": replace(RIGHT, form="NFKC"),
    "format characters allowed": replace(RIGHT, refused=RIGHT.refused - {"Cf"}),
    "no format character allowed": replace(RIGHT, cut=lambda _, text: text),
    "joiners allowed anywhere": replace(RIGHT, cut=lambda _, text: text.replace("\u200d", "")),
    "tags allowed anywhere": replace(
        RIGHT,
        cut=lambda pattern, text: re.sub(f"{pattern}|[\U000e0020-\U000e007f]", "", text),
    ),
    "private use allowed": replace(RIGHT, refused=RIGHT.refused - {"Co"}),
    "surrogates allowed": replace(RIGHT, refused=RIGHT.refused - {"Cs"}),
    "line separators allowed": replace(RIGHT, refused=RIGHT.refused - {"Zl"}),
    "unassigned characters refused": replace(RIGHT, refused=RIGHT.refused | {"Cn"}),
    "length in UTF-16": replace(RIGHT, length=utf16_units),
    "length in UTF-8": replace(
        RIGHT, length=lambda text: len(text.encode("utf-8", "surrogatepass"))
    ),
    "length in normal form D": replace(
        RIGHT, length=lambda text: len(unicodedata.normalize("NFD", text))
    ),
}


def test_a_second_implementation_of_the_rule_agrees() -> None:
    assert [vector["about"] for vector in VECTORS if not RIGHT.agrees(vector)] == []


@pytest.mark.parametrize("rule", WRONG.values(), ids=WRONG)
def test_a_wrong_rule_is_rejected_by_a_vector(rule: Rule) -> None:
    assert not all(map(rule.agrees, VECTORS))
