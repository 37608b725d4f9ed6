"""Read and write the files of vectors: JSON, a row a line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent


def read(name: str) -> Any:
    """Return the document of a file."""
    return json.loads((FOLDER / name).read_text(encoding="utf-8"))


def written(document: dict[str, Any]) -> str:
    """Return a document as its file has it: of each list a row a line."""
    keys = ",\n".join(f"{_line(key)}: {_rows(value)}" for key, value in document.items())
    return f"{{\n{keys}\n}}\n"


def require(wanted: Any, actual: Any, place: str) -> None:
    """Raise AssertionError where two JSON values differ, with the place of the first difference.

    A list may be an iterator of what is computed: nothing is, after the first difference.
    """
    if isinstance(wanted, list) and isinstance(actual, list | Iterator):
        for number, (one, two) in enumerate(zip_longest(wanted, actual, fillvalue=_NOTHING)):
            require(one, two, f"{place}[{number}]")
    elif isinstance(wanted, dict) and isinstance(actual, dict) and wanted.keys() == actual.keys():
        for key in sorted(wanted):
            require(wanted[key], actual[key], f"{place}.{key}")
    elif (type(wanted), wanted) != (type(actual), actual):
        raise AssertionError(f"{place}: {wanted!r:.300} is pinned, not {actual!r:.300}")


_NOTHING = object()


def _rows(value: Any) -> str:
    if not isinstance(value, list | Iterator):
        return _line(value)
    return "[\n" + ",\n".join(f" {_line(row)}" for row in value) + "\n]"


def _line(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
