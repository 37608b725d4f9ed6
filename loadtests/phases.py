"""A run by its phases: how many were at work, how fast they were answered, and where it gives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf

import numpy as np
from bench.table import Row, Table

from .ipc import RequestLog
from .load_profiles import Terms

PROMISED = 100.0  # milliseconds within which a knee's p99 must be, unless another p99 is promised


@dataclass(frozen=True, slots=True)
class PhaseResult:
    """One phase as it came to pass."""

    name: str
    devices: int
    seconds: float
    answered: Sequence[float]  # how long each took, in seconds
    unanswered: int

    @property
    def rate(self) -> float:
        """Answered requests a second."""
        return len(self.answered) / self.seconds

    def milliseconds(self, percent: float) -> float:
        """Return the time within which so many were answered."""
        return float(np.percentile(self.answered, percent)) * 1000 if self.answered else inf

    @property
    def row(self) -> Row:
        """The figures, by name."""
        return {
            "phase": self.name,
            "devices": self.devices,
            "requests/s": self.rate,
            "p50, ms": self.milliseconds(50),
            "p99, ms": self.milliseconds(99),
            "unanswered": self.unanswered,
        }


def phase_results(request_log: RequestLog, terms: Terms) -> list[PhaseResult]:
    """Return the phases of a run that were begun; a send belongs to that in which it began."""
    return list(_phase_results(request_log, terms))


def _phase_results(request_log: RequestLog, terms: Terms) -> Iterator[PhaseResult]:
    at = (np.array(request_log.at) - request_log.begun) / terms.seconds
    took, answered = np.array(request_log.seconds), np.array(request_log.answered, bool)
    over = request_log.lasted / terms.seconds
    opens = 0.0
    for phase in terms.course.phases:
        last = phase is terms.course.phases[-1]
        inside = (at >= opens) & ((at < phase.until) | last)
        seconds = (min(over, inf if last else phase.until) - opens) * terms.seconds
        if seconds <= 0:
            return
        yield PhaseResult(
            phase.name,
            terms.course.working(opens, terms.users),
            seconds,
            took[inside & answered].tolist(),
            int((inside & ~answered).sum()),
        )
        opens = phase.until


def knee(found: Sequence[PhaseResult], promised: float | None) -> str:
    """Return where more devices no longer bring more answers in time."""
    most = promised or PROMISED
    in_time = [each for each in found if each.milliseconds(99) <= most]
    if not in_time:
        return f"none: p99 is above {most:g} ms with {found[0].devices} devices already"
    best = max(in_time, key=lambda each: each.rate)
    text = f"{best.rate:,.0f} requests/s with {best.devices} devices, p99 within {most:g} ms"
    return text if best is not found[-1] else f"not reached: {text}"


def table(results: Sequence[PhaseResult]) -> Table:
    """Return the figures of all phases."""
    return Table("by phase", [result.row for result in results])
