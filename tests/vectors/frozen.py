"""Hold the vectors of protocol 1: `python -m tests.vectors.frozen` wrote their digests, once.

Rows are added, to these files too; a row that was there stays as it was.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from .vector_files import FOLDER

DIGESTS = FOLDER / "frozen_1.txt"
LENGTH = 6  # hexadecimal digits of a row's digest: some 10,000 rows


def digests(text: str) -> list[str]:
    """Return the digests of a file's rows, in their order: with or without a comma behind."""
    rows = (row.strip().removesuffix(",") for row in text.splitlines())
    return [hashlib.sha256(row.encode()).hexdigest()[:LENGTH] for row in rows]


def changed_rows(frozen: list[str], text: str) -> int:
    """Return how many rows that were there are no longer."""
    return len(set(frozen) - set(digests(text)))


def frozen() -> dict[str, list[str]]:
    """Return the digests of each file's rows as they were when the protocol was frozen."""
    lines = (line.split() for line in DIGESTS.read_text(encoding="ascii").splitlines())
    return {name: rows for name, *rows in lines}


def vector_paths() -> list[Path]:
    """Return all files of vectors."""
    return sorted(path for path in FOLDER.rglob("*.json"))


if __name__ == "__main__":
    with DIGESTS.open("x", encoding="ascii") as file:
        for path in vector_paths():
            rows = digests(path.read_text(encoding="utf-8"))
            print(path.relative_to(FOLDER), *rows, file=file)
