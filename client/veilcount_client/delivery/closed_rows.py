"""The rows that the aggregator has closed.

Of a closed row nothing is sent any more, and no other is hurt: a server that closes one pseudonym
would know the person's others by their silence.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from veilcount_shared import Collection
from veilcount_shared.collection import Linkage
from veilcount_shared.report import Report
from veilcount_shared.schedule import UNLINKED, derive_linked_pseudonym

from ..state import ROW_CLOSED, ClientState, QueuedReport, add_closed_series, closed_series
from .padded_bodies import row_of


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
            row_of(queued_report): queued_report for queued_report in queued_reports
        }.items():
            if series not in self._closed:
                add_closed_series(self.state, series)
                self._closed.add(series)
            through = self._last_period(queued_report.report)
            if through is not None and self._is_current(queued_report):
                self.state.close_row(person, series, through)

    def holds(self, queued_report: QueuedReport) -> bool:
        """Return whether a report's row was closed."""
        series = queued_report.report.fingerprint
        if series not in self._closed:
            return False
        used = self.state.used(queued_report.person, series)
        return used == (self._last_period(queued_report.report), ROW_CLOSED)

    def _is_current(self, queued_report: QueuedReport) -> bool:
        """Whether a row is still the person's: one that was forgotten must not close the next."""
        report = queued_report.report
        collection = self.series[report.fingerprint]
        epoch = report.period if collection.linkage is Linkage.PERIOD else 0
        secret = self.state.person(queued_report.person).secret
        names = derive_linked_pseudonym(secret, report.fingerprint, epoch), report.pseudonym
        return names[0] == names[1]

    def _last_period(self, report: Report) -> int | None:
        """Return the last period of a report's row; None if it is a row of its own."""
        collection = self.series.get(report.fingerprint)
        if self.uncapped or collection is None or collection.linkage in UNLINKED:
            return None
        is_one_row = collection.linkage is Linkage.COLLECTION
        return collection.periods - 1 if is_one_row else report.period
