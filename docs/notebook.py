"""`./dev notebook`: each page of cells (`docs/*.py` with `# %%`) as a notebook in `build`.

The cells in a plain file are the source: they are linted, compared in reviews and run by the tests.
A notebook has no output and no ids of its own, so the same cells give the same bytes.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent
PAGES = ("analysing.py", "regression.py")
BUILD = DOCS.parent / "build"
_CELL = re.compile(r"^# %%( \[markdown\])?\n", re.MULTILINE)
_KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}


def cells(text: str) -> Iterator[tuple[str, str]]:
    """Yield the kind and the text of each cell: `markdown` or `code`."""
    _, *pieces = _CELL.split(text)
    for marker, piece in zip(pieces[::2], pieces[1::2], strict=True):
        source = piece.strip("\n")
        yield ("markdown", _uncommented(source)) if marker else ("code", source)


def _uncommented(source: str) -> str:
    return "\n".join(line.removeprefix("#").removeprefix(" ") for line in source.splitlines())


def notebook(text: str) -> dict[str, Any]:
    """Return a page of cells as a notebook, format 4.5."""
    rows = [_cell(number, *cell) for number, cell in enumerate(cells(text))]
    metadata = {"kernelspec": _KERNEL, "language_info": {"name": "python"}}
    return {"cells": rows, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def _cell(number: int, kind: str, source: str) -> dict[str, Any]:
    outputs: dict[str, Any] = {"execution_count": None, "outputs": []} if kind == "code" else {}
    lines = source.splitlines(keepends=True)
    return {"cell_type": kind, "id": f"cell-{number}", "metadata": {}, "source": lines, **outputs}


def write(folder: Path) -> list[Path]:
    """Write all notebooks into a folder; return where they are."""
    folder.mkdir(parents=True, exist_ok=True)
    return [_write(folder / name, DOCS / name) for name in PAGES]


def _write(target: Path, page: Path) -> Path:
    document = notebook(page.read_text(encoding="utf-8"))
    path = target.with_suffix(".ipynb")
    path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return path


if __name__ == "__main__":
    for notebook_path in write(Path(sys.argv[1]) if sys.argv[1:] else BUILD):
        sys.stdout.write(f"{notebook_path}\n")
