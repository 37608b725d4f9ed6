"""A batch and an instant to verdicts. No web in here.

A bad report in a good batch gets its verdict and the rest count; a slot that is spent already is
looked up before the report's age is judged, so that a late retry is told it had succeeded.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from veilcount_shared import Collection
from veilcount_shared.collection import Linkage
from veilcount_shared.errors import ReportError
from veilcount_shared.report import Batch, Report, check
from veilcount_shared.schedule import closes, opens
from veilcount_shared.verdict import Verdict, refusal

from .store import Spend, Store


def ingest(
    batch: Batch, series: Mapping[str, Collection], store: Store, now: datetime
) -> list[Verdict]:
    """Return one verdict a report, in the batch's order; what is counted is committed."""
    judged = [_judge(report, series, store, now) for report in batch.reports]
    counted = iter(store.commit([spend for spend in judged if isinstance(spend, Spend)]))
    return [
        spend
        if isinstance(spend, Verdict)
        else (Verdict.COUNTED if next(counted) else Verdict.DUPLICATE)
        for spend in judged
    ]


def _judge(
    report: Report, series: Mapping[str, Collection], store: Store, now: datetime
) -> Spend | Verdict:
    collection = series.get(report.fingerprint)
    if collection is None:
        return Verdict.UNKNOWN_COLLECTION
    try:
        message = check(report, collection)
    except ReportError as error:
        return refusal(error)
    spend = Spend(
        collection,
        report.period,
        report.segment,
        0 if collection.linkage is Linkage.COLLECTION else report.period,
        report.pseudonym,
        report.slot,
        message,
    )
    if store.spent(spend):
        return Verdict.DUPLICATE
    return _age(collection, report.period, now) or spend


def _age(collection: Collection, period: int, now: datetime) -> Verdict | None:
    if now < opens(collection, period):
        return Verdict.EARLY
    if now >= closes(collection, period) + timedelta(days=collection.late):
        return Verdict.STALE
    return None
