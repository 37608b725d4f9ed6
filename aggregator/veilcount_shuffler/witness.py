"""The witness: a second place, on another disk or host, that knows which crowds have begun.

A store that was restored from a backup would draw fresh covers for a crowd that had left: whoever
has both batches removes the covers of either. So the opening of a crowd is written here, and the
signed record of its batch before the first part leaves. A store that knows less is not started.
"""

from __future__ import annotations

from pathlib import Path

from veilcount_shared.errors import WireError
from veilcount_shared.shuffling.batch_record import BatchRecord
from veilcount_shared.shuffling.crowd import CROWD_BYTES

from .crowd_states import CrowdState, CrowdStates
from .disk import Disk
from .errors import ShufflerError


class Witness:
    """A folder with a file for each crowd: empty while it is open, then its signed record."""

    def __init__(self, folder: Path | None, disk: Disk) -> None:
        """Write to a folder, which must be there; None: there is no witness."""
        if folder is not None and not folder.is_dir():
            raise ShufflerError(f"--witness: {folder} is no folder: mount it, or make it once")
        self._folder = folder
        self._disk = disk

    def opened(self, crowd_id: bytes) -> None:
        """Know that a crowd is open, before its first report is acknowledged."""
        if self._folder is not None:
            self._disk.create(self._folder / crowd_id.hex(), b"")

    def left(self, record: BatchRecord) -> None:
        """Know what leaves, before its first part does."""
        if self._folder is not None:
            path = self._folder / record.crowd_id.hex()
            if not path.exists() or path.read_bytes() != record.encode():
                self._disk.replace(path, record.encode())

    def unknown_to(self, states: CrowdStates) -> list[bytes]:
        """Return the crowds of which a store knows less than is written here."""
        if self._folder is None:
            return []
        files = sorted(path for path in self._folder.iterdir() if _is_crowd(path.name))
        return [bytes.fromhex(path.name) for path in files if _knows_more(path, states)]


def _is_crowd(name: str) -> bool:
    digits = set("0123456789abcdef")
    return len(name) == 2 * CROWD_BYTES and digits.issuperset(name)


def _knows_more(path: Path, states: CrowdStates) -> bool:
    row, raw = states.row(bytes.fromhex(path.name)), path.read_bytes()
    if row is None:
        return True
    if not raw:
        return False
    try:
        record = BatchRecord.decode(raw)
    except WireError:
        raise ShufflerError(f"{path}: it is no record of a batch") from None
    settled = (row.reports, row.covers, row.digest)
    if row.state >= CrowdState.ENDED and not any(settled[:2]):
        return False  # recorded as lost before
    return settled != (record.reports, record.covers, record.digest)
