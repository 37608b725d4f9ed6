"""A page, read: its code blocks and its hidden asides, in order.

An aside is a comment that readers do not see. Two belong to the block behind them:

    <!-- not run: why -->       the block is not run, for a reason that the source of the page shows
    <!-- file: site.toml -->    the block is a file, and is written to where the page's commands run

and others happen where they stand:

    <!-- now: 2027-03-15 -->                         the day of all clocks from here on
    <!-- crowd: theme 10000 light=2 dark=7 -->       so many people have answered a collection
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

ROOT = Path(__file__).parents[2]

_ASIDE = re.compile(r"<!-- (not run|file|now|crowd): (.+) -->")
_FENCE = re.compile(r"(?P<indent> *)```(?P<language>\w*)")
_CODE = re.compile(r" *(\$|>>>|veilcount|\./dev|pip|python|curl|from|import|export) \S")


@dataclass(frozen=True, slots=True)
class Block:
    """What stands between two fences, and the number of its first line."""

    language: str
    text: str
    line: int
    file: str = ""
    unrun: str = ""


@dataclass(frozen=True, slots=True)
class Aside:
    """What happens between two blocks, unseen."""

    word: str
    text: str
    line: int


Step = Block | Aside


class Unreadable(ValueError):
    """The page says something that its reader here does not know."""


def pages() -> list[Path]:
    """Return every page for people: the first one, those of `docs`, and those of the rooms."""
    return [ROOT / "README.md", *sorted(ROOT.glob("[!.]*/*.md"))]


def title(page: Path) -> str:
    """Return what a page is called here."""
    return str(page.relative_to(ROOT))


def steps(text: str) -> list[Step]:
    """Return the blocks of a page and its asides, in order."""
    return list(_joined(_pieces(text.splitlines())))


def _joined(pieces: Iterator[Step]) -> Iterator[Step]:
    """Yield the pieces; what belongs to a block is part of it."""
    said: dict[str, str] = {}
    for piece in pieces:
        if isinstance(piece, Block):
            yield replace(piece, file=said.pop("file", ""), unrun=said.pop("not run", ""))
        elif piece.word in {"file", "not run"}:
            said[piece.word] = piece.text
        else:
            yield piece
    if said:
        raise Unreadable(f"no block comes after {said}")


def _pieces(lines: list[str]) -> Iterator[Step]:
    """Yield what a line begins, to the line that ends it."""
    number = 0
    while number < len(lines):
        line = lines[number]
        number += 1
        if fence := _FENCE.fullmatch(line):
            end = _end(lines, number, fence["indent"])
            inside = [each.removeprefix(fence["indent"]) for each in lines[number:end]]
            yield Block(fence["language"], "\n".join(inside) + "\n", number + 1)
            number = end + 1
        elif line.lstrip().startswith("<!--"):
            yield _aside(line.strip(), number)
        elif line.startswith("    ") and _CODE.match(line):
            raise Unreadable(f"line {number}: code by indentation, which nobody runs: fence it")


def _end(lines: list[str], begin: int, indent: str) -> int:
    try:
        return lines.index(f"{indent}```", begin)
    except ValueError:
        raise Unreadable(f"line {begin}: a block without an end") from None


def _aside(line: str, number: int) -> Aside:
    said = _ASIDE.fullmatch(line)
    if said is None:
        raise Unreadable(f"line {number}: {line}: an aside that nobody knows")
    return Aside(said[1], said[2], number)
