"""The audit log: an append-only list of what operators did. It holds nothing of devices."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from datetime import datetime

from ..store import Record, RecordStore
from ..store.records import update_records

KIND = "audit"


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One act of an operator or analyst."""

    at: str  # to the second, UTC: an operator's act, not a device's
    actor: str  # the key's id, or "cli"
    action: str
    target: str

    def record(self, place: int) -> Record:
        """Return the record of the entry."""
        return Record(KIND, f"{place:08}", json.dumps(asdict(self)).encode())


def audit_record(store: RecordStore, now: datetime, actor: str, action: str, target: str) -> Record:
    """Return the record of one act, for the change that does it."""
    at = now.strftime("%Y-%m-%dT%H:%M:%SZ")
    return AuditEntry(at, actor, action, target).record(store.record_count(KIND))


def record_act(
    store: RecordStore, now: datetime, actor: str, action: str, target: str, *others: Record
) -> None:
    """Write the record of an act, and others with it."""
    update_records(
        store, lambda: ([audit_record(store, now, actor, action, target), *others], None)
    )


def load_audit_log(store: RecordStore) -> list[AuditEntry]:
    """Return all acts, the oldest first."""
    return [AuditEntry(**json.loads(value)) for _, value in sorted(store.records(KIND).items())]
