"""The folder of a crowd: its reports, its covers, its order and the secret that made the order.

All of it goes at once, the secret first: without it no order follows from the reports.
"""

from __future__ import annotations

import os
from contextlib import AbstractContextManager, suppress
from pathlib import Path

from .disk import Disk

SECRET, ORDER, LOCK = "secret", "order", "lock"
SECRET_BYTES = 32


class CrowdFolder:
    """What is on disk of one crowd besides its row."""

    def __init__(self, crowds: Path, crowd_id: bytes, disk: Disk) -> None:
        """Make nothing yet."""
        self.path = crowds / crowd_id.hex()
        self._disk = disk

    @property
    def order(self) -> Path:
        """The sealed reports of the batch in their order, covers among them."""
        return self.path / ORDER

    def make(self) -> None:
        """Make the folder with its secret, durably, unless they are there."""
        self._disk.make_folder(self.path)
        self._disk.create(self.path / SECRET, os.urandom(SECRET_BYTES))

    def secret(self) -> bytes:
        """Return the secret that finds doubles and makes the order."""
        return (self.path / SECRET).read_bytes()

    def lock(self, *, exclusive: bool) -> AbstractContextManager[None]:
        """Have the crowd's lock: who holds reports shares it, who seals has it alone."""
        if exclusive:  # else it is there, or the crowd was erased
            self._disk.make_folder(self.path)
        return self._disk.lock(self.path / LOCK, exclusive=exclusive)

    def erase(self) -> None:
        """Remove everything, durably; once more after a crash in between."""
        if not self.path.is_dir():
            return
        self._disk.unlink(self.path / SECRET)
        for file in sorted(self.path.iterdir()):
            self._disk.unlink(file)
        self._disk.step("remove folder")
        with suppress(FileNotFoundError):
            self.path.rmdir()
        self._disk.sync_folder(self.path.parent)
