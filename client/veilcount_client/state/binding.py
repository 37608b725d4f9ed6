"""Was this state copied from another machine, or rolled back? Detected where it can be.

Two marks stand beside each other: which machine and which file the state was made in, and how often
it was opened, kept both in the file and in a small one beside it. A copy has another machine or
another file number; a file put back from a backup was opened less often than its neighbour says.
What cannot be seen: a whole machine, or a whole directory with its file numbers, put back together.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

_MACHINE_IDS = (Path("/etc/machine-id"), Path("/var/lib/dbus/machine-id"))


def machine_of(file: Path) -> str:
    """Return what changes when the file is copied, as a digest."""
    status = file.stat()
    named = next((_read(path) for path in _MACHINE_IDS if path.is_file()), "")
    return hashlib.sha256(f"{named.strip()} {status.st_ino}".encode()).hexdigest()[:32]


def opened_beside(mark: Path) -> int:
    """Return how often the neighbour says the state was opened; 0 if it does not say."""
    text = _read(mark).strip()
    return int(text) if text.isascii() and text.isdigit() else 0


def note_beside(mark: Path, opened: int) -> None:
    """Tell the neighbour; losing this write loses only a detection."""
    mark.write_text(f"{opened}\n", encoding="ascii")


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""
