"""Under which terms each part may be used, as its own metadata says."""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, metadata

from .lock import Pinned

#: words of licences under which a program of any licence may use a library
FREE = re.compile(
    r"\b(MIT|BSD|0BSD|Apache|ISC|PSF|Python Software Foundation|MPL|Mozilla|LGPL|Lesser|Zlib|"
    r"Unlicense|CC0|BlueOak)",
    re.IGNORECASE,
)
UNKNOWN = ""
_MOST = 80  # letters: more is a licence's text, and not its name
_OF = "License :: "


def licence(name: str) -> str:
    """Return a package's licence in a word; nothing if it is not installed or does not say."""
    try:
        message = metadata(name)
    except PackageNotFoundError:
        return UNKNOWN
    classified = [each for each in message.get_all("Classifier", []) if each.startswith(_OF)]
    named = [each.rpartition(" :: ")[2] for each in classified if not each.endswith("OSI Approved")]
    (text,) = message.get_all("License", [""])
    short = text if len(text) <= _MOST and "\n" not in text else ""
    (expression,) = message.get_all("License-Expression", [UNKNOWN])
    return expression or ", ".join(named) or short or _named_in(text)


def unfree(parts: Iterable[Pinned]) -> list[str]:
    """Return what is shipped along, is installed here, and is under other terms."""
    message = ((part, licence(part.name)) for part in parts if not part.developing)
    return [f"{part.name}: {terms}" for part, terms in message if terms and not FREE.search(terms)]


def unknown(parts: Iterable[Pinned]) -> list[str]:
    """Return what nothing is known of: not installed on this system, or without a word on it."""
    return [part.name for part in parts if not licence(part.name)]


def _named_in(text: str) -> str:
    found = FREE.search(text)
    return found[1] if found else UNKNOWN
