"""What locust's process is told and what it tells, each in one file: it shares no memory with us.

Locust patches whatever waits, so nothing else of a run may be in its process.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

FOLDER = "VEILCOUNT_LOAD"  # the variable that says where both files are
PLACE = "/v1/reports"
HEADERS = {"Content-Type": "application/vnd.veilcount.batch"}

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Errand:
    """The bodies, and which of them is sent when."""

    bodies: Sequence[bytes]
    order: Sequence[int]

    def save(self, folder: Path) -> None:
        """Leave it for locust's process."""
        raw, ends = _joined(self.bodies)
        np.savez(_errand(folder), order=np.array(self.order, np.int64), raw=raw, ends=ends)

    @classmethod
    def load(cls, folder: Path) -> Errand:
        """Take it up."""
        with np.load(_errand(folder)) as kept:
            return cls(_parted(kept["raw"], kept["ends"]), kept["order"].tolist())


@dataclass(frozen=True, slots=True)
class Diary:
    """Every send in turn: which body, what was replied (b"": nothing of use), how soon."""

    bodies: Sequence[int]
    replies: Sequence[bytes]
    seconds: Sequence[float]
    lasted: float  # from the first send to the last reply
    cpu: float  # seconds that the generator's process computed meanwhile

    @property
    def answered(self) -> list[float]:
        """How long the sends took that were answered: the others fail fast, or time out."""
        timed = zip(self.seconds, self.replies, strict=True)
        return [seconds for seconds, reply in timed if reply]

    def save(self, folder: Path) -> None:
        """Leave it for the run."""
        raw, ends = _joined(self.replies)
        np.savez(
            _diary(folder),
            bodies=np.array(self.bodies, np.int64),
            seconds=np.array(self.seconds, np.float64),
            process=np.array([self.lasted, self.cpu]),
            raw=raw,
            ends=ends,
        )

    @classmethod
    def load(cls, folder: Path) -> Diary:
        """Read it."""
        with np.load(_diary(folder)) as kept:
            lasted, cpu = kept["process"].tolist()
            replies = _parted(kept["raw"], kept["ends"])
            return cls(kept["bodies"].tolist(), replies, kept["seconds"].tolist(), lasted, cpu)


def _errand(folder: Path) -> Path:
    return folder / "errand.npz"


def _diary(folder: Path) -> Path:
    return folder / "diary.npz"


def _joined(parts: Sequence[bytes]) -> tuple[NDArray[np.uint8], Ints]:
    ends = np.cumsum([0, *map(len, parts)], dtype=np.int64)
    return np.frombuffer(b"".join(parts), np.uint8), ends


def _parted(raw: NDArray[np.uint8], ends: Ints) -> list[bytes]:
    whole = raw.tobytes()
    return [whole[begin:end] for begin, end in pairwise(ends.tolist())]
