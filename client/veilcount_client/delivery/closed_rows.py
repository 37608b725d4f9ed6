"""The rows that the aggregator has closed, and the requests to close those of forgotten persons.

Of a closed row nothing is sent any more, and no other is hurt: a server that closes one pseudonym
would know the person's others by their silence.

Each request leaves at its own time. Together they would reveal, in the last moment, which
pseudonyms were one person's. Few people forget at once, so an hour would not hide one among others:
a row is closed after a day of running on the average. The time has no memory (it is exponential),
so that a process which ends in between, and draws again, changes nothing about it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from veilcount_shared import Collection, RandomSource
from veilcount_shared.collection import Linkage
from veilcount_shared.report import Report
from veilcount_shared.schedule import UNLINKED

from ..state import (
    ROW_CLOSED,
    ClientState,
    QueuedReport,
    RowClose,
    add_closed_series,
    closed_series,
)
from .body_packing import row_of


@dataclass
class ClosedRows:
    """Stores and recognizes closed rows. In development (`uncapped`) each report is a row."""

    state: ClientState
    series: Mapping[str, Collection]  # by fingerprint
    uncapped: bool
    _closed: set[str] = field(init=False)  # series that some row was closed of

    def __post_init__(self) -> None:
        """Read which series have closed rows."""
        self._closed = closed_series(self.state, self.series)

    def add(self, queued_reports: Iterable[QueuedReport]) -> None:
        """Store the rows of these reports as closed: before the reports are off the outbox.

        Cut in between, the closing is kept and the report is dropped by the next process; the other
        way round the next process would draw again.
        """
        for (person, series, _), queued_report in {
            row_of(each): each for each in queued_reports
        }.items():
            if series not in self._closed:
                add_closed_series(self.state, series)
                self._closed.add(series)
            through = self._last_period(queued_report.report)
            if through is not None:
                self.state.close_row(person, series, through)

    def holds(self, queued_report: QueuedReport) -> bool:
        """Return whether a report's row was closed."""
        series = queued_report.report.fingerprint
        if series not in self._closed:
            return False
        used = self.state.used(queued_report.person, series)
        return used == (self._last_period(queued_report.report), ROW_CLOSED)

    def _last_period(self, report: Report) -> int | None:
        """Return the last period of a report's row; None if it is a row of its own."""
        collection = self.series.get(report.fingerprint)
        if self.uncapped or collection is None or collection.linkage in UNLINKED:
            return None
        whole = collection.linkage is Linkage.COLLECTION
        return collection.periods - 1 if whole else report.period


MEAN_CLOSE = 86_400.0  # seconds that the process runs, on the average, until a row is closed
MOST_LEASED = 2000
GRAIN = 1_000_000


@dataclass(frozen=True)
class RowCloses:
    """Decides which rows are to be closed now, and keeps which were."""

    state: ClientState
    randomness: RandomSource
    now: Callable[[], float]
    hurried: bool  # in development: close each at once

    def due(self, lease: float, grace: float) -> list[RowClose]:
        """Return the rows to be closed now; until the lease ends they are not returned again.

        What was due while nothing could leave, or has no time yet, gets a new one.
        """
        now = self.now()
        due = self.state.row_closes(now, MOST_LEASED)
        late = [each for each in due if each.due < now - grace and not self.hurried]
        ready = [each for each in due if each not in late]
        times = {(each.series, each.pseudonym): self._later(now) for each in late}
        times |= {(each.series, each.pseudonym): now + lease for each in ready}
        if times:
            self.state.schedule_row_closes(times)
        return self.randomness.shuffled(ready)

    def finish(self, row: RowClose, *, done: bool) -> None:
        """Keep that a row was closed; or else when it is tried again."""
        if done:
            self.state.finish_row_close(row.series, row.pseudonym)
        else:
            times = {(row.series, row.pseudonym): self._later(self.now())}
            self.state.schedule_row_closes(times)

    def _later(self, start: float) -> float:
        return start - MEAN_CLOSE * math.log((1 + self.randomness.below(GRAIN)) / GRAIN)
