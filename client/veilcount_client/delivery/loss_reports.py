"""Loss reports: coarse counts of what was lost in transport, one body a series, no pseudonym.

Each series has a time of its own, at least a day after its loss was seen: together, or with a
report, losses would show which pseudonyms are of the device that was offline.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from veilcount_shared import Collection
from veilcount_shared.collection import Presence
from veilcount_shared.report import Losses

from ..state import ClientState
from ..state.losses import TRANSPORT, Loss

HOUR, DAY = 3600.0, 86_400.0


@dataclass(frozen=True, slots=True)
class LossReport:
    """What one series lost since the last report, and the totals that it brings up to date."""

    losses: Losses
    totals: str


@dataclass
class LossReports:
    """Decides which losses are to be reported now, and keeps which were."""

    state: ClientState
    collections: Mapping[str, Collection]
    now: Callable[[], float]
    later: Callable[..., float]
    in_memory: Callable[[str], int]  # how many true values of a collection are on their way
    persons: bool
    _looked: float = -math.inf  # last scan
    _next: float = -math.inf  # next scan

    def next_due(self) -> float | None:
        """Return when the next report leaves, or when to look again whether there is any."""
        return self._next if math.isfinite(self._next) else None

    def due(self, lease: float, grace: float) -> list[LossReport]:
        """Return what is to be reported now; until the lease ends it is not returned again."""
        now = self.now()
        if self._looked <= now < self._next:
            return []
        self._looked, self._next = now, now + HOUR
        reports = []
        for report in self._unreported() if self.state.consenting() else ():
            due = self._time(report.losses.fingerprint, now, grace)
            if due <= now:
                reports.append(report)
                due = now + lease
                self._keep_time(report, due)
            self._next = min(self._next, due)
        return reports

    def finish(self, report: LossReport, *, sent: bool) -> None:
        """Keep that a report has arrived; or else when it is tried again."""
        if sent:
            self.state.keep(_reported(report.losses.fingerprint), report.totals)
        self._keep_time(report, 0.0 if sent else self.later(self.now(), HOUR))
        self._next = -math.inf

    def _time(self, series: str, now: float, grace: float) -> float:
        """Return when a series' losses leave: drawn when they are seen, and again when overdue."""
        due_at = float(self.state.note(_due(series)) or 0)
        if due_at and now - grace <= due_at <= now + 2 * DAY:
            return due_at
        due = self.later(now) if 0 < due_at < now else self.later(now + DAY, DAY)
        self.state.keep(_due(series), str(due))
        return due

    def _keep_time(self, report: LossReport, due: float) -> None:
        self.state.keep(_due(report.losses.fingerprint), str(due))

    def _unreported(self) -> Iterator[LossReport]:
        counts = self.state.losses()
        for collection in self.collections.values():
            series = collection.fingerprint
            totals = self._totals(collection, counts)
            reported = self.state.note(_reported(series)) or "0 0 0"
            new = [total - int(old) for total, old in zip(totals, reported.split(), strict=True)]
            if any(count > 0 for count in new):
                losses = Losses(series, *map(Losses.bucket, new))
                yield LossReport(losses, " ".join(map(str, totals)))

    def _totals(
        self, collection: Collection, counts: Mapping[tuple[Loss, str], int]
    ) -> tuple[int, int, int]:
        series = collection.fingerprint
        aged, evicted, corrupt = (counts.get((loss, series), 0) for loss in TRANSPORT)
        if collection.presence is Presence.HIDDEN:  # absences are not drawn to be lost
            aged = evicted = corrupt = 0
        crashed = counts.get((Loss.CRASHED, collection.name), 0) - self.in_memory(collection.name)
        if self.persons:  # others of its processes may have some on their way
            crashed = 0
        corrupt += counts.get((Loss.CORRUPT, ""), 0)
        return aged, evicted + max(crashed, 0), corrupt


def _reported(series: str) -> str:
    return f"losses reported {series}"


def _due(series: str) -> str:
    return f"losses due {series}"
