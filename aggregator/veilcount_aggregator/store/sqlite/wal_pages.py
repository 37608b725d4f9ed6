"""What a write-ahead log holds, read without SQLite: only to tell whether it may be thrown away.

The format is [sqlite.org/fileformat2, section 4]: a header of 32 bytes, then frames of 24 bytes and
a page each; a frame counts if its salts are the header's, and a frame that ends a transaction comes
at or after it. Checksums are not computed: a torn last transaction counts as one, which errs on the
side of keeping the file.
"""

from __future__ import annotations

import struct
from pathlib import Path

HEADER = struct.Struct(">8I")
FRAME = struct.Struct(">6I")
MAGICS = {0x377F0682, 0x377F0683}


def has_unsaved_pages(log: Path, database: Path, public: Path) -> bool:
    """Whether a log has committed pages that its database lacks, and the public log too."""
    if _begins_alike(log, public):
        return False
    with log.open("rb") as logged, database.open("rb") as saved:
        size, pages = _committed_pages(logged.read())
        for number, page in pages.items():
            saved.seek((number - 1) * size)
            if saved.read(size) != page:
                return True
    return False


def _begins_alike(log: Path, public: Path) -> bool:
    """Whether the public log is a copy of this one that is at least as long."""
    if not public.exists() or public.stat().st_size < max(log.stat().st_size, HEADER.size):
        return False
    with log.open("rb") as first, public.open("rb") as second:
        return first.read(HEADER.size) == second.read(HEADER.size)


def _committed_pages(log: bytes) -> tuple[int, dict[int, bytes]]:
    """Return the page size, and the latest committed content of each page."""
    if len(log) < HEADER.size:
        return 0, {}
    magic, _, size, _, *salts = HEADER.unpack_from(log)
    if magic not in MAGICS:
        return 0, {}
    committed: dict[int, bytes] = {}
    open_pages: dict[int, bytes] = {}
    for at in range(HEADER.size, len(log) - size - FRAME.size + 1, size + FRAME.size):
        number, ends, *found = FRAME.unpack_from(log, at)
        if found[:2] != salts[:2]:
            break
        open_pages[number] = log[at + FRAME.size : at + FRAME.size + size]
        if ends:
            committed |= open_pages
            open_pages = {}
    return size, committed
