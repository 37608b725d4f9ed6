"""Files that locust's processes read and write: they share no memory with us.

Locust patches whatever waits, so nothing else of a run may be in its processes.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any

from .load_profiles import Terms

FOLDER = "VEILCOUNT_LOAD"  # the variable that says where the files are
REPORTS_PATH = "/v1/reports"
HEADERS = {"Content-Type": "application/vnd.veilcount.batch"}
ASSIGNMENT, REQUEST_LOG = "assignment", "request-log-"  # names of what is saved
STARTED = "started"  # the file that says that the first generator has begun
STOP = "stop"  # the one that says that a run with a fault in it may end
#: statuses of a body that is no batch, whenever it is sent [shared README, the wire]
REFUSED = frozenset({400, 413, 415, 422})


@dataclass(frozen=True, slots=True)
class Assignment:
    """The bodies, which of them is sent when, and on what terms."""

    bodies: Sequence[bytes]
    order: Sequence[int]
    terms: Terms


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

    @classmethod
    def merged(cls, request_logs: Iterable[RequestLog]) -> RequestLog:
        """Merge the logs of all generators."""
        logs = list(request_logs)
        columns = [(log.at, log.bodies, log.replies, log.seconds, log.statuses) for log in logs]
        sends = sorted(send for log in columns for send in zip(*log, strict=True))
        at, bodies, replies, seconds, statuses = zip(*sends, strict=True) if sends else [()] * 5
        lasted = max((log.lasted for log in logs), default=0.0)
        return cls(bodies, replies, seconds, lasted, sum(log.cpu for log in logs), statuses, at)


def save(folder: Path, name: str, value: object) -> None:
    """Save a value for another process of the run."""
    (folder / f"{name}.pickle").write_bytes(pickle.dumps(value))


def load(folder: Path, name: str) -> Any:
    """Load the value that another process of the run saved."""
    return pickle.loads((folder / f"{name}.pickle").read_bytes())  # noqa: S301 - the run's own


def load_request_logs(folder: Path) -> RequestLog:
    """Load the log of each generator, and merge them."""
    names = sorted(file.stem for file in folder.glob(f"{REQUEST_LOG}*.pickle"))
    return RequestLog.merged(load(folder, name) for name in names)
