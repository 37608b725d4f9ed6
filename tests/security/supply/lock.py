"""A lock file, read: which releases, by which hashes, because of whom."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

PROJECT = "veilcount"
SHA256 = re.compile(r"--hash=sha256:([0-9a-f]{64})")
_PINNED = re.compile(
    r"(?P<name>[a-z0-9][a-z0-9._-]*)==(?P<version>[^\s;]+)(?: ; (?P<marker>[^\\]+?))? ?\\?"
)
_VIA = re.compile(r"    #(?: via)?\s+(?!via$)(?P<name>\S+)(?: \((?P<source>[^)]+)\))?")


@dataclass(frozen=True, slots=True)
class Pinned:
    name: str
    version: str
    hashes: tuple[str, ...]
    because: tuple[str, ...]  # packages that need it; our own name: we do
    developing: bool  # only our developers need it

    @property
    def purl(self) -> str:
        """Its name for all the world."""
        return f"pkg:pypi/{self.name}@{self.version}"


def blocks(text: str) -> Iterator[list[str]]:
    """Yield the lines of each package; comments at the top are none."""
    block: list[str] = []
    for line in text.splitlines():
        if not line.startswith((" ", "#")) and block:
            yield block
            block = []
        if block or not line.startswith("#"):
            block.append(line)
    if block:
        yield block


def flaws(text: str) -> list[str]:
    """Return what is not pinned to one release and the SHA-256 of its files, or names a place."""
    found = [f"an address: {line.strip()}" for line in text.splitlines() if "://" in line]
    for block in blocks(text):
        hashes = [line for line in block if "--hash" in line]
        if not _PINNED.fullmatch(block[0]):
            found.append(f"no pinned release: {block[0]}")
        elif not hashes or not all(SHA256.search(line) for line in hashes):
            found.append(f"no SHA-256 of every file: {block[0]}")
    return found


def pinned(path: Path) -> list[Pinned]:
    read = [_read(block) for block in blocks(path.read_text(encoding="utf-8"))]
    shipped = _shipped(read)
    return [
        Pinned(name, version, hashes, tuple(name for name, _ in because), name not in shipped)
        for name, version, hashes, because in read
    ]


_Read = tuple[str, str, tuple[str, ...], tuple[tuple[str, str], ...]]


def _read(block: Sequence[str]) -> _Read:
    found = _PINNED.fullmatch(block[0])
    if found is None:
        raise ValueError(block[0])
    hashes = tuple(each for line in block for each in SHA256.findall(line))
    because = tuple(
        (via["name"], via["source"] or "") for line in block if (via := _VIA.fullmatch(line))
    )
    return found["name"], found["version"], hashes, because


def _shipped(read: Sequence[_Read]) -> set[str]:
    """Return what comes along with an installed veilcount, whatever its extras."""
    found: set[str] = set()
    while True:
        more = {
            name
            for name, _, _, because in read
            if any(by in found or (by == PROJECT and ":" not in source) for by, source in because)
        }
        if more <= found:
            return found
        found |= more
