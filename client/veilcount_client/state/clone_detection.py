"""Clone detection: notices a state that was copied to another machine, or rolled back.

A state knows the machine and the inode it was made in, and counts its own transactions. The count
is also kept in a small file next to it, the mark. A copy has another machine or another inode; a
file that was replaced by an older copy of itself counts less than its mark.

The mark is written after each commit and never synced, so a crash leaves it behind the state, never
ahead: at worst one restored copy goes unnoticed. What cannot be detected: a whole machine, or a
state restored together with its mark and its inode number.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

_MACHINE_IDS = (Path("/etc/machine-id"), Path("/var/lib/dbus/machine-id"))
# A mark that is a link or a pipe is not ours: neither followed nor waited for.
_FLAGS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
_BYTES = 64


def machine_digest(file: Path) -> str:
    """Return what changes when the file is copied, as a digest."""
    status = file.stat()
    named = next((_read(path) for path in _MACHINE_IDS if path.is_file()), "")
    return hashlib.sha256(f"{named.strip()} {status.st_ino}".encode()).hexdigest()[:32]


def mark_path(file: Path) -> Path:
    """Return where the mark of a state's file is."""
    return file.with_suffix(".mark")


def read_mark(mark: Path) -> int:
    """Return how many transactions the mark knows of; 0 if it does not say.

    It holds the number twice: one that is read while another process writes it differs from itself.
    """
    try:
        one, other = _content(mark).split()
    except (OSError, ValueError):
        return 0
    return int(one) if one == other and one.isdigit() else 0


def write_mark(mark: Path, transactions: int) -> None:
    """Write the number, in place and of one length: nobody reads a mark that is cut short."""
    line = b"%020d %020d\n" % (transactions, transactions)
    file = os.open(mark, os.O_WRONLY | os.O_CREAT | _FLAGS, 0o600)
    try:
        os.write(file, line)
    finally:
        os.close(file)


def _content(path: Path) -> bytes:
    file = os.open(path, os.O_RDONLY | _FLAGS)
    try:
        return os.read(file, _BYTES)
    finally:
        os.close(file)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""
