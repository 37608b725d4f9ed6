"""A definitions file, and the one line that is written into it: the digest of a key list."""

from __future__ import annotations

import os
import re
import tomllib
from functools import partial
from pathlib import Path
from typing import Any

from veilcount_serving.durable_files import sync_path
from veilcount_serving.posix import sync_file
from veilcount_shared import Collection, parse_collections
from veilcount_shared.collection import Linkage
from veilcount_shared.collection.loading import NOT_UTF8, read_values
from veilcount_shared.errors import DefinitionError

UNPINNED = "0" * 64  # the digest of no list: the file is parsed with it before there is one
_BOM = "\ufeff"


class DefinitionFile:
    """The text of a definitions file, and its collections that are reported with tokens."""

    def __init__(self, path: Path) -> None:
        self.path = path.resolve()  # a link stays one
        try:
            self.text = self.path.read_bytes().decode()
        except UnicodeDecodeError as error:
            raise DefinitionError("file", path.name, NOT_UTF8) from error
        unpinned = [name for name, table in self._tables().items() if _is_unpinned(table)]
        text = self.text
        for name in unpinned:
            text = _pinned(text, name, UNPINNED)
        parsed = self._parse(text)
        self.unpinned = [parsed[name] for name in unpinned]
        self.pinned = [
            collection
            for collection in parsed.values()
            if collection.linkage is Linkage.TOKEN and collection.name not in unpinned
        ]

    def pin(self, name: str, digest: str) -> None:
        """Write a collection's digest into the file, durably; it is whole at any time."""
        self.text = _pinned(self.text, name, digest)
        pending = self.path.with_name(f".{self.path.name}.pending")
        with pending.open("wb") as file:
            os.fchmod(file.fileno(), self.path.stat().st_mode & 0o777)
            file.write(self.text.encode())
            file.flush()
            sync_file(file.fileno())
        pending.replace(self.path)
        sync_path(self.path.parent)

    def _parse(self, text: str) -> dict[str, Collection]:
        read = partial(read_values, self.path.parent)
        return parse_collections(text.removeprefix(_BOM), read, self.path.name)

    def _tables(self) -> dict[str, Any]:
        try:
            return tomllib.loads(self.text.removeprefix(_BOM))
        except (ValueError, RecursionError):
            self._parse(self.text)  # names the key and the fix
            raise


def _is_unpinned(table: object) -> bool:
    return isinstance(table, dict) and table.get("linkage") == "token" and "tokens" not in table


def _pinned(text: str, name: str, digest: str) -> str:
    """Return a text with a table's `tokens`: below `linkage`, else below the table's header.

    A line that looks like one of these may be a part of a longer string, so what is written is
    read again: it must differ in that key alone.
    """
    lines = text.splitlines(keepends=True)
    expected = tomllib.loads(text.removeprefix(_BOM))
    expected[name]["tokens"] = digest
    header = re.compile(rf"\s*\[\s*[\"']?{re.escape(name)}[\"']?\s*\]")
    for pattern in (re.compile(r"\s*linkage\s*="), header):
        for at, line in enumerate(lines, 1):
            if pattern.match(line):
                changed = "".join([*lines[:at], _line(line, digest), *lines[at:]])
                if _loads(changed) == expected:
                    return changed
    fix = f'add this line to its table: tokens = "{digest}"'
    raise DefinitionError("tokens", None, fix, collection=name)


def _line(above: str, digest: str) -> str:
    ending = "\r\n" if above.endswith("\r\n") else "\n"
    indent = above[: len(above) - len(above.lstrip(" \t"))]
    start = "" if above.endswith("\n") else "\n"  # the last line of a file may lack its end
    return f'{start}{indent}tokens = "{digest}"{ending}'


def _loads(text: str) -> object:
    try:
        return tomllib.loads(text.removeprefix(_BOM))
    except ValueError:
        return None
