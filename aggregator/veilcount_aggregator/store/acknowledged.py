"""How far each shard had come when this host last acknowledged something: its highest height.

Each commit raises a number in its shard, the shard's *height*, in the same step. A host keeps the
highest one that it has acknowledged, in a file that all its processes share. A shard that comes
back with a lower one lacks acknowledged reports, whatever took them: a promotion, a file that was
cut, an older backup. Nothing is written to it then, until its data are back, or until an operator
accepts the loss (`veilcount store accept`).

**A height alone can be overtaken**: other hosts may raise a shard that went back beyond what this
one had acknowledged. So the server process that counts has a name, the *life* of the shard; where a
life ends, the shard keeps the height with which the next one began, for good. What was acknowledged
in a life is compared with that. A host compares before it first writes in a life, and each second.

The file is written after each acknowledged group, and synced once a second: a killed process loses
none of it, and a power cut at most the last second of what could be detected.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from veilcount_serving.durable_files import sync_path
from veilcount_serving.errors import system_reason
from veilcount_serving.posix import LOCK_EX, flock

from ..errors import StoreUnfit
from .health import Weakness

ENDING = "-height"
ENTRY_BYTES = 512  # one sector, which a disk writes whole
ENTRY_WORDS = 5
ENTRY_END = "."
NO_LIFE = "none"

UNKNOWN = -1  # of a life that the shard has never had

LACKS_COMMITS = "the store, or a part of it, lacks commits that were acknowledged"
FIX = (
    "Nothing is written to it: restore its data; or, only if the older data are wanted,"
    " `veilcount store accept`"
)


@dataclass(frozen=True, slots=True)
class AcknowledgedHeight:
    """The highest height of a shard that a host has acknowledged."""

    store: str  # its random id
    life: str
    height: int
    accepted: int = 0  # as of then; see `ShardHeight`


@dataclass(frozen=True, slots=True)
class ShardHeight:
    """The height of a shard, and that of each of its lives that ended."""

    store: str
    life: str
    height: int
    accepted: int = 0  # when an operator last accepted a loss, in microseconds; 0: never
    ended: Mapping[str, int] = field(default_factory=dict)

    def raising(self, last: AcknowledgedHeight | None) -> AcknowledgedHeight:
        """Return what a host keeps that had kept `last` and has found nothing lost."""
        same = last is not None and last.store == self.store
        if last and same and (self.accepted, self.height) <= (last.accepted, last.height):
            return last
        return AcknowledgedHeight(self.store, self.life, self.height, self.accepted)

    def loss(self, last: AcknowledgedHeight | None) -> str:
        """Return what it lacks of what a host acknowledged last; "" if nothing."""
        if last is None or self.accepted > last.accepted:
            return ""
        if self.accepted < last.accepted or self.store != last.store:
            return "it is another store than the one in which this host has acknowledged reports"
        height = self.height if self.life == last.life else self.ended.get(last.life, UNKNOWN)
        if height == UNKNOWN:
            return f"it is older than commit {last.height:,}, which this host has acknowledged"
        missing = last.height - height
        return (
            f"it lacks {missing:,} of {last.height:,} acknowledged commits" if missing > 0 else ""
        )


def weaknesses(losses: Sequence[str]) -> tuple[Weakness, ...]:
    """Return what is wrong with shards that lack commits, for the log and for operators."""
    return tuple(Weakness(LACKS_COMMITS, loss, FIX, passing=True) for loss in losses)


class AcknowledgedHeights:
    """The heights that one host has acknowledged, of each shard. For any thread of any process.

    The file is opened for each call, so that nothing of it crosses a fork.
    """

    def __init__(self, path: Path | None = None) -> None:
        """Keep them in a file; None: in memory, for as long as this process lives."""
        self._path = path
        self._lock = threading.Lock()
        self._in_memory: dict[int, AcknowledgedHeight] = {}
        self._unsynced = False

    def read(self, place: int) -> AcknowledgedHeight | None:
        """Return what was acknowledged last of the shard at a place; None: nothing."""
        if self._path is None:
            return self._in_memory.get(place)
        try:
            descriptor = os.open(self._path, os.O_RDONLY)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._unusable(error) from error
        try:
            return _decode(os.pread(descriptor, ENTRY_BYTES, place * ENTRY_BYTES))
        finally:
            os.close(descriptor)

    def keep(self, place: int, height: ShardHeight) -> None:
        """Keep a height of the shard at a place, unless a higher one is there."""
        if self._path is None:
            with self._lock:
                self._in_memory[place] = height.raising(self._in_memory.get(place))
            return
        with self._lock, self._opened() as descriptor:
            last = _decode(os.pread(descriptor, ENTRY_BYTES, place * ENTRY_BYTES))
            highest = height.raising(last)
            if highest != last:
                os.pwrite(descriptor, _encode(highest), place * ENTRY_BYTES)
                self._unsynced = True

    def sync(self) -> None:
        """Wait until the disk has what this process wrote; cheap if that is nothing."""
        if self._path is not None and self._unsynced:
            self._unsynced = False
            with suppress(FileNotFoundError):
                sync_path(self._path)

    @contextmanager
    def _opened(self) -> Iterator[int]:
        """Open the file, created if it is missing, under the lock of all processes."""
        assert self._path is not None  # noqa: S101 - its callers have checked
        try:
            try:
                descriptor = os.open(self._path, os.O_RDWR | os.O_NOFOLLOW)
            except FileNotFoundError:
                descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
                sync_path(self._path.parent)
            try:
                flock(descriptor, LOCK_EX)
                yield descriptor
            finally:
                os.close(descriptor)
        except OSError as error:
            raise self._unusable(error) from error

    def _unusable(self, error: OSError) -> StoreUnfit:
        why = f"the heights that this host acknowledges cannot be kept ({system_reason(error)})"
        return StoreUnfit(f"{self._path}: {why}: check its folder, its owner and its disk")


def _encode(height: AcknowledgedHeight) -> bytes:
    words = (height.store, height.life or NO_LIFE, height.height, height.accepted, ENTRY_END)
    return " ".join(map(str, words)).encode().ljust(ENTRY_BYTES - 1) + b"\n"


def _decode(entry: bytes) -> AcknowledgedHeight | None:
    """Parse an entry; None where there is none, or a power cut has left a torn one."""
    words = entry.decode("ascii", "replace").split()
    if len(words) != ENTRY_WORDS or words[-1] != ENTRY_END:
        return None
    store, life, height, accepted, _ = words
    return AcknowledgedHeight(store, life.replace(NO_LIFE, ""), int(height), int(accepted))
