"""Sizes in bytes as operators write and read them: 256MB, 2GB, with 1 MB = 1,048,576 bytes.

Units are powers of 1,024, as in redis.conf: `maxmemory 2gb` and `--max-store-memory 2GB` are equal.
"""

from __future__ import annotations

import re

UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
FORM = "give bytes, or a number with a unit, like 256MB or 2GB"

_SIZE = re.compile(r"(\d+)\s*([kmgt]?)(?:i?b)?", re.IGNORECASE)


def parse_bytes(text: str) -> int:
    """Return a size in bytes, or raise ValueError."""
    found = _SIZE.fullmatch(text.strip())
    if not found or not int(found[1]):
        raise ValueError(FORM)
    return int(found[1]) * UNITS[found[2].lower()]


def format_bytes(size: int) -> str:
    """Return a size in the largest unit of which there is one, with three digits."""
    for unit, bytes_each in reversed(UNITS.items()):
        if size >= bytes_each > 1:
            return (
                f"{size / bytes_each:.3g} {unit.upper()}B"
                if size < 1000 * bytes_each
                else (f"{size / bytes_each:,.0f} {unit.upper()}B")
            )
    return f"{size:,} bytes"
