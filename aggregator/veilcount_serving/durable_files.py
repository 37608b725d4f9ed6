"""Files that last: which file stands under a name, and whether the disk has it."""

from __future__ import annotations

import os
from pathlib import Path

from veilcount_serving.posix import IS_POSIX, sync_file

FileIdentity = tuple[int, int]  # device, inode


def file_identity(file: Path | str | int) -> FileIdentity | None:
    """Return the identity of a file by its name or descriptor; None: there is none."""
    try:
        status = os.stat(file)  # noqa: PTH116 - for every commit, and it is cheaper
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino


def sync_path(path: Path) -> None:
    """Wait until a file, or a folder's list of names, is on the disk."""
    if not IS_POSIX and path.is_dir():
        return  # Windows opens no folder
    descriptor = os.open(path, os.O_RDONLY)
    try:
        sync_file(descriptor)
    finally:
        os.close(descriptor)
