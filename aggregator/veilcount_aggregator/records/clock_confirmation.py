"""An operator confirms the day by which epochs are dropped."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from ..store import Record, RecordStore
from ..store.records import update_records
from ..store.retention.retention_guard import ConfirmedDay
from .audit_log import audit_record


def confirm_day(store: RecordStore, now: datetime, actor: str) -> ConfirmedDay:
    """Record the day of an instant as confirmed by an operator."""
    confirmed_day = ConfirmedDay.at_instant(now)

    def decide() -> tuple[Sequence[Record], None]:
        return [
            confirmed_day.record(),
            audit_record(store, now, actor, "confirm clock", str(confirmed_day.day)),
        ], None

    update_records(store, decide)
    return confirmed_day
