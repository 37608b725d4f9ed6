"""The witness: a second place, on another disk or host, that knows which crowds have begun.

A store that was restored from a backup would draw fresh covers for a crowd that had left: whoever
has both batches removes the covers of either. So the opening of a crowd is written here, and the
signed record of its batch before the first part leaves. A store that knows less is not started.
Both have an id, drawn at their first use together: the empty folder of a disk that is not mounted
is no witness, and a store that has one is not started without.
"""

from __future__ import annotations

import os
from pathlib import Path

from veilcount_shared.errors import WireError
from veilcount_shared.shuffling.batch_record import BatchRecord, BatchState
from veilcount_shared.shuffling.crowd import CROWD_BYTES

from .crowd_states import CrowdStates
from .disk import Disk
from .errors import ShufflerError
from .store_settings import StoreSettings

ID_FILE, ID_BYTES = "witness.id", 16


class Witness:
    """A folder with a file for each crowd: empty while it is open, then its signed record."""

    def __init__(self, folder: Path | None, disk: Disk, identity: bytes = b"") -> None:
        """Use a folder, which must be there; None: there is no witness.

        `identity` is what the store knows it by, if it knows one.
        """
        if folder is not None and not folder.is_dir():
            raise ShufflerError(f"--witness: {folder} is no folder: mount it, or make it once")
        if folder is None and identity:
            raise ShufflerError("--witness: this store has one, and is not started without it")
        self._folder = folder
        self._disk = disk
        self._identity = identity
        if identity:
            self._require()

    def identify(self, settings: StoreSettings) -> None:
        """Have store and witness know each other, from their first use together on."""
        if self._folder is None or self._identity:
            return
        self._disk.create(self._folder / ID_FILE, os.urandom(ID_BYTES))
        self._identity = (self._folder / ID_FILE).read_bytes()
        settings.set_witness_id(self._identity)

    def _require(self) -> None:
        """Refuse a folder that is not the store's witness, or is it no more."""
        if self._folder is None or not self._identity:
            return
        path = self._folder / ID_FILE
        if not path.is_file() or path.read_bytes() != self._identity:
            raise ShufflerError(
                f"--witness: {self._folder} is not the witness of this store: mount its disk"
            )

    def opened(self, crowd_id: bytes) -> None:
        """Know that a crowd is open, before its first report is acknowledged."""
        if self._folder is not None:
            self._require()
            self._disk.create(self._folder / crowd_id.hex(), b"")

    def left(self, record: BatchRecord) -> None:
        """Know what leaves, before its first part does."""
        if self._folder is not None:
            self._require()
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
    if row.outcome is BatchState.LOST:
        return False  # it was found before
    settled = (row.reports, row.covers, row.digest)
    return settled != (record.reports, record.covers, record.digest)
