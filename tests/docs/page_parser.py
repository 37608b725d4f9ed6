"""A page: its code blocks and its hidden directives, in order.

A directive is a comment that readers do not see. Two belong to the block after them:

    <!-- not run: why -->       the block is not run, for a reason that the source of the page shows
    <!-- file: site.toml -->    the block is a file, and is written to where the page's commands run

and others happen where they stand:

    <!-- now: 2027-03-15 -->                         the day of all clocks from here on
    <!-- population: theme 10000 light=2 dark=7 -->  so many people have answered a collection
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

ROOT = Path(__file__).parents[2]

_DIRECTIVE = re.compile(r"<!-- (not run|file|now|population): (.+) -->")
_FENCE = re.compile(r"(?P<indent> *)```(?P<language>\w*)")
_CODE = re.compile(r" *(\$|>>>|veilcount|\./dev|pip|python|curl|from|import|export) \S")


@dataclass(frozen=True, slots=True)
class Block:
    """The text between two fences, and the number of its first line."""

    language: str
    text: str
    line: int
    file: str = ""
    unrun: str = ""


@dataclass(frozen=True, slots=True)
class Directive:
    """A hidden instruction between two blocks."""

    word: str
    text: str
    line: int


Step = Block | Directive


class Unreadable(ValueError):
    """The page holds something that cannot be run here."""


def pages() -> list[Path]:
    """Return every page for people: the first one, those of `docs`, and those of the packages."""
    return [ROOT / "README.md", *sorted(ROOT.glob("[!.]*/*.md"))]


def title(page: Path) -> str:
    return str(page.relative_to(ROOT))


def steps(text: str) -> list[Step]:
    return list(_joined(_pieces(text.splitlines())))


def _joined(pieces: Iterator[Step]) -> Iterator[Step]:
    """Yield the pieces, with the directives of a block in the block."""
    options: dict[str, str] = {}
    for piece in pieces:
        if isinstance(piece, Block):
            yield replace(piece, file=options.pop("file", ""), unrun=options.pop("not run", ""))
        elif piece.word in {"file", "not run"}:
            options[piece.word] = piece.text
        else:
            yield piece
    if options:
        raise Unreadable(f"no block comes after {options}")


def _pieces(lines: list[str]) -> Iterator[Step]:
    number = 0
    while number < len(lines):
        line = lines[number]
        number += 1
        if fence := _FENCE.fullmatch(line):
            end = _end(lines, number, fence["indent"])
            inside = [line.removeprefix(fence["indent"]) for line in lines[number:end]]
            yield Block(fence["language"], "\n".join(inside) + "\n", number + 1)
            number = end + 1
        elif line.lstrip().startswith("<!--"):
            yield _directive(line.strip(), number)
        elif line.startswith("    ") and _CODE.match(line):
            raise Unreadable(f"line {number}: code by indentation is not run: fence it")


def _end(lines: list[str], begin: int, indent: str) -> int:
    try:
        return lines.index(f"{indent}```", begin)
    except ValueError:
        raise Unreadable(f"line {begin}: a block without an end") from None


def _directive(line: str, number: int) -> Directive:
    found = _DIRECTIVE.fullmatch(line)
    if found is None:
        raise Unreadable(f"line {number}: {line}: an unknown directive")
    return Directive(found[1], found[2], number)
