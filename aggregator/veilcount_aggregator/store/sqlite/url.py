"""The URL of a SQLite store."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import SplitResult, unquote, urlsplit

from ...errors import SettingsError

FORM = "give sqlite:///relative.db or sqlite:////absolute.db"


@dataclass(frozen=True, slots=True)
class SqliteUrl:
    """A file, and whether a commit waits until the disk has it."""

    path: Path
    durable: bool = True

    def __post_init__(self) -> None:
        """Make the path absolute."""
        object.__setattr__(self, "path", self.path.absolute())

    @classmethod
    def parse(cls, url: str) -> SqliteUrl:
        """Parse a URL."""
        parts = urlsplit(url)
        name = unquote(parts.path[1:])
        if parts.scheme != "sqlite" or parts.netloc or parts.fragment or not parts.path[:1] == "/":
            raise SettingsError("store", url, FORM)
        if not name or name.endswith("/") or ":memory:" in name or "\0" in name:
            raise SettingsError("store", url, f"{FORM}: a store is a file")
        return cls(Path(name), durable=_durable(url, parts))


def _durable(url: str, parts: SplitResult) -> bool:
    if parts.query not in {"", "durability=relaxed"}:
        raise SettingsError("store", url, "the only parameter is durability=relaxed")
    return not parts.query
