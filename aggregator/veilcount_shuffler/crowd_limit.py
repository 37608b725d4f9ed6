"""How full the disk may become, and how many reports a crowd may have.

As much as is held must fit on the disk three times more, to be shuffled.

A batch has 65,535 parts at most, covers among them.

A crowd that holds as many takes no more: its devices keep their reports, as by a full disk. Workers
count the records of all files, doubles included, and each by itself, with a reserve for what the
others append meanwhile.
"""

from __future__ import annotations

import os
from pathlib import Path

from veilcount_shared.shuffling.part import MAX_PARTS, PART_REPORTS

from .errors import ShufflerError
from .held_file import CHECK_BYTES, held_files
from .served_crowds import ServedCrowd

LEAST_FREE = 64 << 20
COPIES = 3  # buckets, order, and what comes meanwhile
#: how many reports a worker appends before it looks at the files again
MEASURED_AFTER = PART_REPORTS
MOST_WRITERS = 256  # workers are 64 at most, and each is replaced by one at a time
RESERVE = MOST_WRITERS * MEASURED_AFTER
MOST_SEALED = MAX_PARTS * PART_REPORTS
WHY = "a crowd is full: its further envelopes are answered 503"


class CrowdFull(ShufflerError):
    """A crowd has as many reports as a batch can have."""

    def __init__(self) -> None:
        super().__init__(WHY)


class CrowdLimit:
    """What one worker may append to a crowd before it looks at its files again."""

    def __init__(self, crowd: ServedCrowd, folder: Path) -> None:
        """Look at nothing yet."""
        self._crowd = crowd
        self._folder = folder
        self._left = 0

    def takes(self, number: int) -> bool:
        """Count reports that are to be appended; False: there is no place for them."""
        if number > self._left:
            free = free_places(self._crowd, self._folder)
            self._left = min(free, max(number, MEASURED_AFTER))
        if number > self._left:
            return False
        self._left -= number
        return True


def free_places(crowd: ServedCrowd, folder: Path) -> int:
    """Return how many reports a crowd takes as of now; 0: it is full."""
    width = CHECK_BYTES + crowd.size
    held = sum(file.stat().st_size // width for file in held_files(folder))
    return max(0, MOST_SEALED - RESERVE - crowd.covers - held)


class DiskLimit:
    """Whether there is room for reports, as of the last measurement."""

    def __init__(self, crowds: Path) -> None:
        """Measure the disk of these crowds."""
        self._crowds = crowds
        self.has_space = False
        self.measure()

    def measure(self) -> None:
        """Compare what is free with the reports of all crowds."""
        disk = os.statvfs(self._crowds)
        stored = sum(file.stat().st_size for file in self._crowds.glob("*/held.*"))
        self.has_space = disk.f_bavail * disk.f_frsize >= LEAST_FREE + COPIES * stored
