"""The intake's groups: reports of many requests in one commit, and how large the groups were."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from veilcount_serving.group_commit import MAX_WAITING_BYTES, GroupCommit, Pending, settle
from veilcount_serving.loop_groups import LoopGroups

from ..errors import StoreUnavailable
from ..records.service_counters import ServiceCounters
from ..store import ServiceCounter
from .decode import RequestBody
from .pipeline import IntakeFailed, Outcome

SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
GROUP = "group"
_ZEROS = tuple(map(bytes, (1024, 256, 64)))


class IntakeRequest(NamedTuple):
    """A request that waits: its body, the id of its device key, and its network's class."""

    body: RequestBody
    key: str
    network: str
    pending: Pending[Outcome]

    @property
    def size(self) -> int:
        """How many bytes its body has."""
        return len(self.body.raw)

    @property
    def content(self) -> int:
        """How many bytes its body has without padding, which is at its end."""
        raw = self.body.raw
        end = len(raw)
        for zeros in _ZEROS:  # `rstrip` alone takes two microseconds for a kilobyte
            while raw.endswith(zeros, 0, end):
                end -= len(zeros)
        return len(raw[:end].rstrip(b"\0"))

    def settle(self, outcome: Outcome) -> None:
        """Deliver the outcome, unless nobody waits any more."""
        settle(self.pending, outcome)


Process = Callable[[Sequence[IntakeRequest]], Sequence[Outcome]]
Settled = Sequence[tuple[IntakeRequest, Outcome]]
Deliver = Callable[[Settled], object]


def settle_all(settled: Settled) -> None:
    """Deliver each outcome."""
    for request, outcome in settled:
        request.settle(outcome)


class GroupIntake(GroupCommit[IntakeRequest, Outcome]):
    """The requests that wait, and the thread that takes them."""

    def __init__(
        self,
        process: Process,
        service_counters: ServiceCounters,
        *,
        deliver: Deliver = settle_all,
        seconds: Callable[[], float] = time.monotonic,
        most_waiting: int = MAX_WAITING_BYTES,
    ) -> None:
        """Have `process` take each group; `deliver` brings the outcomes to where they belong."""
        super().__init__(process, IntakeFailed, deliver, seconds=seconds, most_waiting=most_waiting)
        self._service_counters = service_counters

    def stalled(self, why: str) -> StoreUnavailable:
        """Return the error of a store that hangs."""
        return StoreUnavailable(why)

    def counted(self, requests: int) -> None:
        """Count a group of this size."""
        self._service_counters.count(ServiceCounter(GROUP, "", -1, str(_size_class(requests))))


class LoopIntake(LoopGroups[IntakeRequest, Outcome], GroupIntake):
    """The requests that wait on the event loop of a worker."""


def _size_class(requests: int) -> int:
    return next((size for size in SIZES if requests <= size), SIZES[-1])
