"""The sizes of the tree against their limits: `./dev sizes`; exit code 1 if one is exceeded."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from .import_graph import ROOT, read
from .picture import draw

LIMITS = Path(__file__).parent / "limits.toml"


@dataclass(frozen=True, slots=True)
class Size:
    """One size, the limit that a test holds it to, and what it is to become."""

    name: str
    value: int
    limit: int
    target: int

    @property
    def is_exceeded(self) -> bool:
        return self.value > self.limit

    def __str__(self) -> str:
        mark = "  over the limit" if self.is_exceeded else ""
        return f"{self.name:20} {self.value:>7,} {self.limit:>7,} {self.target:>7,}{mark}"


def sizes() -> list[Size]:
    """Measure the tree."""
    limits = tomllib.loads(LIMITS.read_text(encoding="utf-8"))
    return [Size(name, value, **limits[name]) for name, value in _measure()]


def _measure() -> Iterator[tuple[str, int]]:
    yield "product", lines(modules("shared", "client", "aggregator"))
    yield "bench and loadtests", lines(modules("bench", "loadtests"))
    yield "tests", lines(modules("tests"))
    yield "helpers of tests", lines(p for p in modules("tests") if not p.match("test_*.py"))
    levels = read().levels
    yield "folders", len(levels)
    yield "levels", max(levels.values())


def modules(*folders: str) -> Iterator[Path]:
    """Yield the Python files below some folders of the repository."""
    return (path for folder in folders for path in (ROOT / folder).rglob("*.py"))


def lines(paths: Iterable[Path]) -> int:
    """Count the lines of some files."""
    return sum(path.read_bytes().count(b"\n") for path in paths)


def main() -> int:
    """Print each size, its limit and its target; draw the import graph if `--draw` asks for it."""
    if "--draw" in sys.argv[1:]:
        draw()
    print(f"{'':20} {'today':>7} {'limit':>7} {'target':>7}")
    print(*(table := sizes()), sep="\n")
    return int(any(size.is_exceeded for size in table))


if __name__ == "__main__":
    sys.exit(main())
