"""Where a page points: files that must be there, and headings that must be in them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from .page_parser import ROOT

_LINK = re.compile(r"!?\[([^\]]*)\]\(([^)\s]+)\)")
_MODULE = re.compile(r"`([\w/]+\.py)`")
_FENCED = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^#+ +(.*?) *$", re.MULTILINE)
_NAMED = re.compile(r"`((?:tests|docs|bench|loadtests|deploy|client|shared|aggregator)/[^`\s]*)`")


def broken(page: Path, root: Path = ROOT) -> Iterator[str]:
    """Yield broken links, labels that name another module than their target, missing paths."""
    prose = _FENCED.sub("", page.read_text(encoding="utf-8"))
    for label, link in _LINK.findall(prose):
        if "://" not in link and not (_leads(page, link) and _is_named(label, link)):
            yield link
    for path in _NAMED.findall(prose):
        if not any(root.glob(path.rstrip("/"))):
            yield path


def _leads(page: Path, link: str) -> bool:
    path, _, anchor = link.partition("#")
    target = page.parent / path if path else page
    if not target.exists():
        return False
    return not anchor or anchor in anchors(target.read_text(encoding="utf-8"))


def _is_named(label: str, link: str) -> bool:
    """Return whether a label that is a module's name is its target's."""
    module = _MODULE.fullmatch(label)
    return not module or link.partition("#")[0].endswith(module[1])


def anchors(text: str) -> set[str]:
    """Return the anchors of a page's headings, as forges make them."""
    return {_anchor(heading) for heading in _HEADING.findall(_FENCED.sub("", text))}


def _anchor(heading: str) -> str:
    """Return a heading in small letters, without punctuation, with hyphens for spaces."""
    words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
    return re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
