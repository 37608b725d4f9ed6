"""Checks that no other user can plant or change a state's files.

Whoever may write to the directory can put a link where a file is expected, and have this process
write over a file elsewhere; or replace the state by one of theirs. SQLite always follows links. So
the directory must be this user's, and writable by nobody else; then no link can come between a
check and a use. Where a system has no owners (Windows), nothing is checked.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from .interface import StateError

_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_COMPANIONS = ("-wal", "-shm", "-journal")
_FLAGS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)


def check_directory(directory: Path) -> None:
    """Raise StateError if others may write to a directory; a link is none, wherever it leads."""
    found = directory.lstat()
    if stat.S_ISLNK(found.st_mode):
        raise StateError(f"{directory} is a symbolic link: give the directory that it points to")
    _check_owner(directory, found)


def check_file(file: Path) -> None:
    """Raise StateError if a database, or a file that SQLite keeps with it, is not ours alone."""
    for each in (file, *(file.with_name(file.name + end) for end in _COMPANIONS)):
        try:
            found = each.lstat()
        except FileNotFoundError:
            continue
        if not stat.S_ISREG(found.st_mode):
            raise StateError(f"{each} is a symbolic link, or not a file: remove it")
        if found.st_nlink > 1:
            raise StateError(f"{each} is also known under another name: copy it, and remove it")
        _check_owner(each, found)


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
