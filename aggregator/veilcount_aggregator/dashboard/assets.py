"""Scripts and styles, each under an address that changes with its content: kept by browsers for
good. Nothing else is ever served from the disk."""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib.util import find_spec
from pathlib import Path

TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
PLOTLY = "plotly.min.js"
HERE = Path(__file__).parent / "static"
LEVEL = 6  # of gzip: once a process and asset
DIGITS = 16


@dataclass(frozen=True)
class Asset:
    """One file that pages use."""

    name: str
    body: bytes

    @property
    def type(self) -> str:
        """Its media type."""
        return TYPES[Path(self.name).suffix]

    @cached_property
    def digest(self) -> str:
        """The digest of its content, for its address."""
        return hashlib.sha256(self.body).hexdigest()[:DIGITS]

    @cached_property
    def zipped(self) -> bytes:
        """The body as gzip, the same bytes in every process."""
        return gzip.compress(self.body, LEVEL, mtime=0)


@lru_cache(maxsize=64)
def asset(name: str) -> Asset:
    """Return an asset by its name, or raise KeyError."""
    return Asset(name, _places()[name].read_bytes())


@lru_cache(maxsize=1)
def _places() -> dict[str, Path]:
    ours = {each.name: each for each in HERE.iterdir() if each.suffix in TYPES}
    return ours | {PLOTLY: _plotly()}


def _plotly() -> Path:
    """Return the drawing library's one file, as its wheel brings it."""
    found = find_spec("plotly")
    if found is None or not found.origin:
        raise KeyError(PLOTLY)
    return Path(found.origin).parent / "package_data" / PLOTLY
