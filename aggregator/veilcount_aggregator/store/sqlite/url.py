"""The URL of a SQLite store."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from ...errors import SettingsError

FORM = "give sqlite:///relative.db or sqlite:////absolute.db"


@dataclass(frozen=True, slots=True)
class SqliteUrl:
    """An absolute path, and whether a commit waits until the disk has it."""

    path: Path
    durable: bool = True

    @classmethod
    def parse(cls, url: str) -> SqliteUrl:
        """Parse a URL."""
        parts = urlsplit(url)
        name = unquote(parts.path[1:])
        if parts.scheme != "sqlite" or parts.netloc or parts.fragment or not parts.path[:1] == "/":
            raise SettingsError("store", url, FORM)
        if not name or name.endswith("/") or ":memory:" in name or "\0" in name:
            raise SettingsError("store", url, f"{FORM}: a store is a file")
        if parts.query not in {"", "durability=relaxed"}:
            raise SettingsError("store", url, "the only parameter is durability=relaxed")
        return cls(Path(name).absolute(), durable=not parts.query)
