"""Files that locust's processes read and write: they share no memory with us.

Locust patches whatever waits, so nothing else of a run may be in its processes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from http import HTTPStatus
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from .load_profiles import Terms

FOLDER = "VEILCOUNT_LOAD"  # the variable that says where the files are
REPORTS_PATH = "/v1/reports"
HEADERS = {"Content-Type": "application/vnd.veilcount.batch"}
STARTED = "started"  # the file that says that the first generator has begun
STOP = "stop"  # the one that says that a run with a fault in it may end
#: statuses of a body that is no batch, whenever it is sent [shared README, the wire]
REFUSED = frozenset({400, 413, 415, 422})

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Assignment:
    """The bodies, which of them is sent when, and on what terms."""

    bodies: Sequence[bytes]
    order: Sequence[int]
    terms: Terms

    def save(self, folder: Path) -> None:
        """Save the assignment for locust's processes."""
        raw, ends = _joined(self.bodies)
        np.savez(
            folder / "assignment.npz", order=np.array(self.order, np.int64), raw=raw, ends=ends
        )
        (folder / "terms.json").write_text(json.dumps(asdict(self.terms)), encoding="utf-8")

    @classmethod
    def load(cls, folder: Path) -> Assignment:
        """Load the assignment from its files."""
        terms = Terms(**json.loads((folder / "terms.json").read_text(encoding="utf-8")))
        with np.load(folder / "assignment.npz") as kept:
            return cls(_parted(kept["raw"], kept["ends"]), kept["order"].tolist(), terms)


@dataclass(frozen=True, slots=True)
class RequestLog:
    """Every request in order: its body, reply (b"" if not by the protocol), duration and time."""

    bodies: Sequence[int]
    replies: Sequence[bytes]
    seconds: Sequence[float]
    lasted: float  # from the first send to the last reply
    cpu: float  # seconds that the generators' processes computed meanwhile
    statuses: Sequence[int] = ()  # of HTTP, 0 for none; left out: 200 wherever there is a reply
    at: Sequence[float] = ()  # when each was sent, by the machine's monotonic clock

    def __post_init__(self) -> None:
        """Derive statuses and times where they are absent."""
        if not self.statuses:
            guessed = [int(HTTPStatus.OK) if reply else 0 for reply in self.replies]
            object.__setattr__(self, "statuses", guessed)
        if not self.at:
            object.__setattr__(self, "at", [0.0] * len(self.bodies))

    @property
    def begun(self) -> float:
        """When the first was sent."""
        return min(self.at, default=0.0)

    @property
    def answered(self) -> list[bool]:
        """Which sends were answered, for good or for ill: the others are tried again."""
        pairs = zip(self.replies, self.statuses, strict=True)
        return [bool(reply) or status in REFUSED for reply, status in pairs]

    @property
    def answer_seconds(self) -> list[float]:
        """How long the sends took that were answered: the others fail fast, or time out."""
        return [
            took for took, answered in zip(self.seconds, self.answered, strict=True) if answered
        ]

    def save(self, folder: Path, generator: int = 0) -> None:
        """Save the log for the run."""
        raw, ends = _joined(self.replies)
        np.savez(
            folder / f"request_log-{generator}.npz",
            bodies=np.array(self.bodies, np.int64),
            seconds=np.array(self.seconds, np.float64),
            statuses=np.array(self.statuses, np.int64),
            at=np.array(self.at, np.float64),
            process=np.array([self.lasted, self.cpu]),
            raw=raw,
            ends=ends,
        )

    @classmethod
    def load(cls, folder: Path) -> RequestLog:
        """Merge the logs of all generators."""
        return _merged(_read(file) for file in sorted(folder.glob("request_log-*.npz")))


def _read(file: Path) -> RequestLog:
    with np.load(file) as kept:
        lasted, cpu = kept["process"].tolist()
        replies = _parted(kept["raw"], kept["ends"])
        bodies, seconds = kept["bodies"].tolist(), kept["seconds"].tolist()
        statuses, at = kept["statuses"].tolist(), kept["at"].tolist()
        return RequestLog(bodies, replies, seconds, lasted, cpu, statuses, at)


def _merged(request_logs: Iterable[RequestLog]) -> RequestLog:
    each = list(request_logs)
    sends = [
        send
        for request_log in each
        for send in zip(
            request_log.at,
            request_log.bodies,
            request_log.replies,
            request_log.seconds,
            request_log.statuses,
            strict=True,
        )
    ]
    at, bodies, replies, seconds, statuses = (
        zip(*sorted(sends), strict=True) if sends else ((), (), (), (), ())
    )
    lasted = max((request_log.lasted for request_log in each), default=0.0)
    cpu = sum(request_log.cpu for request_log in each)
    return RequestLog(bodies, replies, seconds, lasted, cpu, statuses, at)


def _joined(parts: Sequence[bytes]) -> tuple[NDArray[np.uint8], Ints]:
    ends = np.cumsum([0, *map(len, parts)], dtype=np.int64)
    return np.frombuffer(b"".join(parts), np.uint8), ends


def _parted(raw: NDArray[np.uint8], ends: Ints) -> list[bytes]:
    whole = raw.tobytes()
    return [whole[begin:end] for begin, end in pairwise(ends.tolist())]
