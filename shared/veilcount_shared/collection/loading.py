"""Loading of definition files and the value lists they name; the only module with file access.

Those of a git revision are loaded by `definition_changes.against`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import partial
from itertools import islice
from pathlib import Path

from ..domain import MAX_VALUES
from ..errors import DefinitionError
from ..kinds import ReadValues
from .compiled import parse_compiled
from .definition import Collection
from .toml import parse_collections

NOT_UTF8 = "not UTF-8 text: save it as UTF-8"


def load_collections(path: str | os.PathLike[str]) -> dict[str, Collection]:
    """Return the collections of a file, TOML or compiled, by name, in file order."""
    file = Path(path)
    try:
        text = file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeError) as error:
        raise _unreadable("file", file.name, error) from error
    return parse_text(text, partial(read_values, file.parent), file.name)


def parse_text(text: str, read_list: ReadValues, file: str) -> dict[str, Collection]:
    """Return the collections of a text, TOML or compiled; `read_list` reads a `values_file`."""
    if text.lstrip().startswith("{"):
        return parse_compiled(text, file)
    return parse_collections(text, read_list, file)


def read_values(folder: Path, name: str) -> list[str]:
    """Read a `values_file`, relative to the definitions file: one value a line."""
    try:
        with (folder / name).open(encoding="utf-8-sig") as lines:
            return value_lines(lines)
    except (OSError, ValueError) as error:  # a name with a zero byte is no OSError
        raise _unreadable("values_file", name, error) from error


def value_lines(lines: Iterable[str]) -> list[str]:
    """Return the values of lines; one too many is enough for validation."""
    return [line.rstrip("\n") for line in islice(lines, MAX_VALUES + 1)]


def _unreadable(key: str, name: str, error: OSError | ValueError) -> DefinitionError:
    if isinstance(error, UnicodeError):
        return DefinitionError(key, name, NOT_UTF8)
    why = getattr(error, "strerror", error)
    return DefinitionError(key, name, f"cannot be read ({why}): check the path and its permissions")
