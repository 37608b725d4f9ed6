"""A software bill of materials, as CycloneDX 1.6 has it, and the terms of each part.

The same lock gives the same bill.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, metadata, version
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from .lock import PROJECT, Pinned

SPECIFICATION = "1.6"
#: words of licences under which a program of any licence may use a library
FREE = re.compile(
    r"\b(MIT|BSD|0BSD|Apache|ISC|PSF|Python Software Foundation|MPL|Mozilla|LGPL|Lesser|Zlib|"
    r"Unlicense|CC0|BlueOak)",
    re.IGNORECASE,
)
UNKNOWN = ""
#: of releases that only other systems and Pythons install, as their own metadata on PyPI states it,
#: and of one whose metadata is silent, as its files state it; by release, so that a new one is read
#: again
ELSEWHERE = {
    "pkg:pypi/async-timeout@5.0.1": "Apache Software License",
    "pkg:pypi/axe-playwright-python@0.1.8": "MIT AND MPL-2.0",
    "pkg:pypi/colorama@0.4.6": "BSD License",
    "pkg:pypi/macholib@1.16.4": "MIT License",
    "pkg:pypi/pefile@2024.8.26": "MIT",
    "pkg:pypi/pywin32-ctypes@0.2.3": "BSD-3-Clause",
    "pkg:pypi/pywin32@312": "Python Software Foundation License",
    "pkg:pypi/tzdata@2026.6": "Apache-2.0",
}
_MOST = 80  # letters: more is a licence's text, and not its name
_OF = "License :: "


def bill(parts: Sequence[Pinned]) -> dict[str, Any]:
    """Return the bill of all parts, and who needs whom."""
    ours = {"type": "application", "bom-ref": PROJECT, "name": PROJECT, "version": version(PROJECT)}
    name = ";".join(part.purl for part in parts)
    return {
        "bomFormat": "CycloneDX",
        "specVersion": SPECIFICATION,
        "serialNumber": f"urn:uuid:{uuid5(NAMESPACE_URL, name)}",
        "version": 1,
        "metadata": {"component": ours},
        "components": [_component(part) for part in parts],
        "dependencies": _dependencies(parts),
    }


def _component(part: Pinned) -> dict[str, Any]:
    terms = licence(part)
    return {
        "type": "library",
        "bom-ref": part.purl,
        "name": part.name,
        "version": part.version,
        "purl": part.purl,
        "scope": "excluded" if part.developing else "required",
        # one for each file that may be installed: which one depends on the machine
        "hashes": [{"alg": "SHA-256", "content": each} for each in part.hashes],
    } | ({"licenses": [{"license": {"name": terms}}]} if terms else {})


def _dependencies(parts: Sequence[Pinned]) -> list[dict[str, Any]]:
    refs = {part.name: part.purl for part in parts} | {PROJECT: PROJECT}
    needs: dict[str, list[str]] = {ref: [] for ref in refs.values()}
    for part in parts:
        for by in part.because:
            needs[refs[by]].append(part.purl)
    return [{"ref": ref, "dependsOn": sorted(set(on))} for ref, on in needs.items()]


@cache
def licence(part: Pinned) -> str:
    """Return a package's licence in a word; nothing if neither it nor `ELSEWHERE` states one."""
    try:
        message = metadata(part.name)
    except PackageNotFoundError:
        return ELSEWHERE.get(part.purl, UNKNOWN)
    classified = [each for each in message.get_all("Classifier", []) if each.startswith(_OF)]
    named = [each.rpartition(" :: ")[2] for each in classified if not each.endswith("OSI Approved")]
    (text,) = message.get_all("License", [""])
    short = text if len(text) <= _MOST and "\n" not in text else ""
    (expression,) = message.get_all("License-Expression", [UNKNOWN])
    stated = expression or ", ".join(named) or short or _named_in(text)
    return stated or ELSEWHERE.get(part.purl, UNKNOWN)


def unfree(parts: Iterable[Pinned]) -> list[str]:
    """Return what is shipped along and is under other terms."""
    message = ((part, licence(part)) for part in parts if not part.developing)
    return [f"{part.name}: {terms}" for part, terms in message if terms and not FREE.search(terms)]


def unknown(parts: Iterable[Pinned]) -> list[str]:
    """Return the parts whose licence is neither in their metadata nor in `ELSEWHERE`."""
    return [part.name for part in parts if not licence(part)]


def _named_in(text: str) -> str:
    found = FREE.search(text)
    return found[1] if found else UNKNOWN
