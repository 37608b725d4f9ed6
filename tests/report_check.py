"""The check of one report against its definition, as the protocol states it.

The aggregator checks columns of reports at once; here is what each report is by itself.
"""

from __future__ import annotations

from veilcount_shared import Collection
from veilcount_shared.collection import Linkage
from veilcount_shared.errors import ReportError
from veilcount_shared.report import Report
from veilcount_shared.verdict import Verdict


class WrongSeries(ReportError):
    """The fingerprint belongs to another series."""


class PeriodOutOfRange(ReportError):
    """The collection has no such period."""


class SegmentOutOfRange(ReportError):
    """The collection has no such segment."""


class SlotOutOfRange(ReportError):
    """The period has no such slot."""


def check_report(report: Report, collection: Collection) -> int:
    """Return the report's message; raise ReportError if the definition rejects it."""
    if report.fingerprint != collection.fingerprint:
        raise WrongSeries("fingerprint: belongs to another series")
    if report.period >= collection.periods:
        raise PeriodOutOfRange(f"period: give 0 to {collection.periods - 1}")
    if report.segment >= collection.cells:
        raise SegmentOutOfRange(f"segment: give 0 to {collection.cells - 1}")
    linked = collection.linkage is Linkage.COLLECTION
    first = report.period * collection.per_day if linked else 0
    last = first + (0 if collection.linkage is Linkage.NONE else collection.per_day - 1)
    if not first <= report.slot <= last:
        raise SlotOutOfRange(f"slot: give {first} to {last} in period {report.period}")
    return collection.unpack(report.message)


def verdict_from_error(error: ReportError) -> Verdict:
    """Return the verdict of a report that its definition rejects."""
    return Verdict.OVER_BUDGET if isinstance(error, SlotOutOfRange) else Verdict.MALFORMED
