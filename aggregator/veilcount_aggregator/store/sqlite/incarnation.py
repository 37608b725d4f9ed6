"""The incarnation of a SQLite store: a new name whenever the file may be an older one.

A file number is not enough: the next file often gets the number of one that was removed, and one
that is written over keeps it. So a small file next to the store keeps the highest generation that
was seen, and a random name that is drawn anew as soon as the store's generation is below it.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable
from fcntl import LOCK_EX, flock
from pathlib import Path
from typing import Any

ENDING = "-incarnation"
NAME_BYTES = 16


def incarnation(store: Path, generation: Callable[[], int]) -> str:
    """Return the name; `generation` reads the store's, which is never below one seen before."""
    place = store.with_name(store.name + ENDING)
    descriptor = os.open(place, os.O_RDWR | os.O_CREAT, 0o600)
    with os.fdopen(descriptor, "rb+") as file:
        flock(file, LOCK_EX)
        kept = _read(file.read())
        found, present = store.stat(), generation()  # after what was kept: it has not gone back
        went_back = kept is None or present < kept["generation"]
        name = secrets.token_hex(NAME_BYTES) if kept is None or went_back else kept["name"]
        now = {"generation": present, "name": name}
        if now != kept:
            file.seek(0)
            file.truncate()
            file.write(json.dumps(now).encode())
            file.flush()
            os.fsync(file.fileno())
    return f"{found.st_dev:x}-{found.st_ino:x}-{name}"


def _read(text: bytes) -> dict[str, Any] | None:
    """Return what was kept; None where that is nothing, or was torn by a crash."""
    try:
        kept = json.loads(text)
        return {"generation": int(kept["generation"]), "name": str(kept["name"])}
    except (ValueError, LookupError, TypeError):
        return None
