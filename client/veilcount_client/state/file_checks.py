"""Checks of a state's files: that nobody else can plant or change them, and that none is a copy.

Whoever may write to the directory can put a link where a file is expected, and have this process
write over a file elsewhere; or replace the state by one of theirs. SQLite always follows links. So
the directory must be this user's, and writable by nobody else; then no link can come between a
check and a use. Where a system has no owners (Windows), nothing is checked.

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
import stat
from pathlib import Path

from ..errors import StateError
from .machine import machine_id

# What is a link or a pipe is not ours: neither followed nor waited for.
_FLAGS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
_BYTES = 64
_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_COMPANIONS = ("-wal", "-shm", "-journal")


def machine_digest(file: Path) -> str:
    """Return what changes when the file is copied, as a digest."""
    status = file.stat()
    return hashlib.sha256(f"{machine_id()} {status.st_ino}".encode()).hexdigest()[:32]


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


def check_directory(directory: Path) -> None:
    """Raise StateError if others may write to a directory; a link is none, wherever it leads."""
    status = directory.lstat()
    if stat.S_ISLNK(status.st_mode):
        raise StateError(f"{directory} is a symbolic link: give the directory that it points to")
    _check_owner(directory, status)


def check_file(file: Path) -> None:
    """Raise StateError if a database, or a file that SQLite keeps with it, is not ours alone."""
    for companion in (file, *(file.with_name(file.name + end) for end in _COMPANIONS)):
        try:
            status = companion.lstat()
        except FileNotFoundError:
            continue
        if not stat.S_ISREG(status.st_mode):
            raise StateError(f"{companion} is a symbolic link, or not a file: remove it")
        if status.st_nlink > 1:
            raise StateError(
                f"{companion} is also known under another name: copy it, and remove it"
            )
        _check_owner(companion, status)


def create_file(file: Path) -> None:
    """Make an empty file that only its owner may read, where there is none; follow no link."""
    os.close(os.open(file, os.O_WRONLY | os.O_CREAT | _FLAGS, 0o600))


def _check_owner(path: Path, found: os.stat_result) -> None:
    if not hasattr(os, "geteuid"):
        return
    if found.st_uid != os.geteuid():
        raise StateError(
            f"{path} belongs to another user: run as that user, or `chown -R {os.geteuid()} {path}`"
        )
    if found.st_mode & _OTHERS:
        raise StateError(
            f"{path} may be written to by other users: `chmod go-w {path}`, or give a directory"
            " below one that others share"
        )
