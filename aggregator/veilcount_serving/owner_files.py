"""Files of secrets: owner-only from birth, whole or not there, never written over."""

from __future__ import annotations

import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path

from veilcount_serving.durable_files import sync_path
from veilcount_serving.errors import SettingsError
from veilcount_serving.posix import sync_file

OTHERS = stat.S_IRWXG | stat.S_IRWXO


def create_owner_only(path: Path, content: bytes) -> None:
    """Create a file durably; FileExistsError: there is one."""
    pending = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    descriptor = os.open(pending, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            sync_file(file.fileno())
        path.hardlink_to(pending)  # fails if it exists, which a rename does not
    finally:
        with suppress(FileNotFoundError):
            pending.unlink()
    sync_path(path.parent)


def read_owner_only(path: Path) -> bytes:
    """Return the content of a file; refuse one that others may read."""
    if path.stat().st_mode & OTHERS:
        raise SettingsError("key file", str(path), f"others may read it: chmod 600 {path}")
    return path.read_bytes()
