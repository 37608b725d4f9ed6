"""How full the disk may become: as much as is held must fit three times more, to be shuffled."""

from __future__ import annotations

import os
from pathlib import Path

LEAST_FREE = 64 << 20
COPIES = 3  # buckets, order, and what comes meanwhile


class DiskLimit:
    """Whether there is room for reports, as of the last measurement."""

    def __init__(self, crowds: Path) -> None:
        """Measure the disk of these crowds."""
        self._crowds = crowds
        self.has_space = False
        self.measure()

    def measure(self) -> None:
        """Compare what is free with what is held."""
        disk = os.statvfs(self._crowds)
        held = sum(file.stat().st_size for file in self._crowds.glob("*/held.*"))
        self.has_space = disk.f_bavail * disk.f_frsize >= LEAST_FREE + COPIES * held
