"""Files of sealed reports: fixed records, appended by one worker.

    4 CRC-32 | sealed report

A record that is torn, or that a power cut left as zeros, was never acknowledged: it is skipped.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from veilcount_serving.posix import LOCK_EX, LOCK_NB, flock

from .disk import Disk

HELD, COVERS = "held", "covers"
CHECK_BYTES = 4
_READ_RECORDS = 4096


def encode_record(sealed: bytes) -> bytes:
    """Return a record."""
    return zlib.crc32(sealed).to_bytes(CHECK_BYTES, "big") + sealed


def read_records(path: Path, size: int) -> Iterator[bytes]:
    """Yield the sealed reports of a file."""
    width = CHECK_BYTES + size
    with path.open("rb") as file:
        while block := file.read(width * _READ_RECORDS):
            for start in range(0, len(block) - width + 1, width):
                sealed = block[start + CHECK_BYTES : start + width]
                if block[start : start + CHECK_BYTES] == zlib.crc32(sealed).to_bytes(4, "big"):
                    yield sealed


def held_files(folder: Path) -> list[Path]:
    """Return the files of a crowd's reports."""
    return sorted(folder.glob(f"{HELD}.*"))


class HeldFile:
    """One file of a crowd, of which this process is the only writer."""

    def __init__(self, folder: Path, size: int, disk: Disk) -> None:
        """Take the first file that no other process writes, its torn end cut off."""
        self._disk = disk
        self._width = CHECK_BYTES + size
        self._descriptor = _own_file(folder)
        self._end = os.fstat(self._descriptor).st_size // self._width * self._width
        os.ftruncate(self._descriptor, self._end)
        try:
            disk.sync_folder(folder)
        except BaseException:
            self.close()
            raise

    def append(self, reports: Sequence[bytes]) -> None:
        """Append sealed reports durably; OSError: none of them counts, and the file is closed."""
        content = b"".join(map(encode_record, reports))
        try:
            self._disk.append(self._descriptor, content)
            self._disk.sync(self._descriptor)
        except OSError:
            with suppress(OSError):
                os.ftruncate(self._descriptor, self._end)
            self.close()
            raise
        self._end += len(content)

    def close(self) -> None:
        """Let another process have it; once more is no harm."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def _own_file(folder: Path) -> int:
    """Return the descriptor of the first file whose lock is free."""
    number = 0
    while True:
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        descriptor = os.open(folder / f"{HELD}.{number}", flags, 0o600)
        try:
            flock(descriptor, LOCK_EX | LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            number += 1
        else:
            return descriptor
