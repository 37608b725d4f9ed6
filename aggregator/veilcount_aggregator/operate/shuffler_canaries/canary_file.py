"""The file of a plan: the canaries that are to be sent, sealed, and what became of each so far.

Owner-only: whoever runs the shuffler must not know which reports are canaries. It holds no key.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Literal

import msgspec

from veilcount_serving.errors import SettingsError
from veilcount_serving.owner_files import create_owner_only, read_owner_only
from veilcount_shuffler.disk import Disk


class Canary(msgspec.Struct):
    """One canary."""

    number: int
    due: datetime
    envelope: str  # sealed once, in hexadecimal: the same bytes at every attempt
    held: datetime | None = None  # when the shuffler acknowledged it
    is_over: bool = False  # its time ended before that

    @property
    def is_pending(self) -> bool:
        """Whether it is still to be sent."""
        return self.held is None and not self.is_over


class CanaryBatch(msgspec.Struct):
    """The canaries of one batch."""

    period: int
    crowd_id: str
    ends: datetime  # the grace: nothing is sent after it
    canaries: list[Canary]


class CanaryFile(msgspec.Struct):
    """The canaries of a plan, by batch."""

    canary_file: Literal[1]
    collection: str
    fingerprint: str
    shuffler: str
    batches: list[CanaryBatch]

    @classmethod
    def load(cls, path: Path) -> CanaryFile:
        """Read a file, or refuse one that is none or that others may read."""
        try:
            return msgspec.json.decode(read_owner_only(path), type=cls)
        except msgspec.MsgspecError as error:
            fix = "give the file that `veilcount canary plan --out` wrote"
            raise SettingsError("canaries", str(path), fix) from error

    def create(self, path: Path) -> None:
        """Write a new file durably; one that exists is refused."""
        try:
            create_owner_only(path, msgspec.json.encode(self))
        except FileExistsError as error:
            raise SettingsError("--out", str(path), "the file exists: give a new name") from error

    def save(self, path: Path) -> None:
        """Write the file over what it was, durably."""
        Disk().replace(path, msgspec.json.encode(self))

    def pending(self) -> Iterator[tuple[CanaryBatch, Canary]]:
        """Yield the canaries that are still to be sent, with their batches."""
        for batch in self.batches:
            yield from ((batch, canary) for canary in batch.canaries if canary.is_pending)


def merge(files: Iterable[CanaryFile]) -> CanaryFile:
    """Return what became of a plan's canaries, of which several places sent a share each."""
    merged, *copies = files
    batches = {batch.crowd_id: batch for batch in merged.batches}
    for copy in copies:
        if [batch.crowd_id for batch in copy.batches] != list(batches):
            raise SettingsError("canaries", copy.collection, "give the files of one plan")
        for batch in copy.batches:
            for canary, sent in zip(batches[batch.crowd_id].canaries, batch.canaries, strict=True):
                canary.held = canary.held or sent.held
    return merged
