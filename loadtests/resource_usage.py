"""What the processes under load compute and hold, looked at while they live: some are killed."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
from tests.processes import cpu_seconds, resident_bytes

EVERY = 0.1  # seconds
SETTLED = 0.25  # the share of a run in which a server takes what it will always need


@dataclass(frozen=True, slots=True)
class Sample:
    """What was seen at an instant."""

    at: float
    held: int  # bytes


@dataclass(slots=True)
class Meter:
    """One group of processes, which may change."""

    pids: Callable[[], Iterable[int]]
    samples: list[Sample] = field(default_factory=list)
    _first: dict[int, float] = field(default_factory=dict)
    _last: dict[int, float] = field(default_factory=dict)

    def look(self) -> None:
        """Look once. Who is gone, or just being born, counts with what was seen before."""
        held = 0
        for pid in self.pids():
            if resident := resident_bytes(pid):
                self._last[pid] = cpu_seconds(pid)
                self._first.setdefault(pid, self._last[pid])
                held += resident
        if held:
            self.samples.append(Sample(time.perf_counter(), held))

    @property
    def computed(self) -> float:
        """The CPU seconds since each was first seen."""
        return sum(self._last.values()) - sum(self._first.values())

    @property
    def least(self) -> int:
        """The bytes held at first."""
        return self.samples[0].held if self.samples else 0

    @property
    def most(self) -> int:
        """The bytes held at worst."""
        return max((sight.held for sight in self.samples), default=0)

    @property
    def growth(self) -> float:
        """Bytes a second, by the straight line through what was seen once all was settled."""
        late = self._settled
        if len(late) < 2:
            return 0.0
        at = np.array([sight.at for sight in late])
        held = np.array([sight.held for sight in late], np.float64)
        return float(np.polyfit(at - at[0], held, 1)[0])

    @property
    def risen(self) -> float:
        """The bytes that this line rises."""
        late = self._settled
        return self.growth * (late[-1].at - late[0].at) if late else 0.0

    @property
    def _settled(self) -> list[Sample]:
        return self.samples[int(len(self.samples) * SETTLED) :]


@contextmanager
def watching(*meters: Meter) -> Iterator[None]:
    """Have them look for as long as this lasts."""
    over = threading.Event()

    def look() -> None:
        while not over.wait(EVERY):
            for meter in meters:
                meter.look()

    for meter in meters:
        meter.look()
    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        for meter in meters:
            meter.look()
