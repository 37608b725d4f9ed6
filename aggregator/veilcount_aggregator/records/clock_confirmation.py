"""An operator confirms the day by which epochs are dropped."""

from __future__ import annotations

from datetime import datetime

from ..store import RecordStore
from ..store.retention.retention_guard import ConfirmedDay
from .audit_log import record_act


def confirm_day(store: RecordStore, now: datetime, actor: str) -> ConfirmedDay:
    """Record the day of an instant as confirmed by an operator."""
    confirmed_day = ConfirmedDay.at_instant(now)
    target = str(confirmed_day.day)
    record_act(store, now, actor, "confirm clock", target, confirmed_day.record())
    return confirmed_day
