"""Plans of canaries: reports of the operator's own, by which the conduct of a shuffler is tested.

A canary has a mark in place of a report's last zeros: a MAC of its crowd and number, under the key
of its plan. The key stays in this store, where batches are opened; a mark that is not of a plan is
`unreadable`. Whoever has the key can make marks, for as many reports as the plan has numbers: these
are left out of the counts, and nobody's report is read otherwise.
"""

from __future__ import annotations

import hmac
import json
import secrets
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime

from veilcount_analysis.series.series import Series
from veilcount_serving.errors import SettingsError
from veilcount_shared.shuffling.plain_report import MARK_BYTES
from veilcount_shared.shuffling.times import batch_rules

from ..store import Record, RecordStore
from ..store.records import update_records
from .audit_log import audit_record

KIND = "canary-plan"
KEY_BYTES = 32
MOST_PERCENT = 3  # of `least`


@dataclass(frozen=True, slots=True, repr=False)
class CanaryPlan:
    """So many canaries in each of some periods of a series."""

    fingerprint: str
    first: int
    last: int
    canaries: int  # of a batch
    key: str  # in hexadecimal

    @classmethod
    def draw(cls, series: Series, periods: range, canaries: int) -> CanaryPlan:
        """Return a plan with a fresh key."""
        key = secrets.token_hex(KEY_BYTES)
        return cls(series.fingerprint, periods[0], periods[-1], canaries, key)

    @property
    def periods(self) -> range:
        """The periods that have canaries."""
        return range(self.first, self.last + 1)

    def marks(self, crowd_id: bytes) -> list[bytes]:
        """Return the marks of a crowd's canaries, by their numbers."""
        key = bytes.fromhex(self.key)
        return [
            hmac.digest(key, crowd_id + number.to_bytes(4, "big"), "sha256")[:MARK_BYTES]
            for number in range(self.canaries)
        ]

    def record(self) -> Record:
        """Return its record."""
        return Record(KIND, f"{self.fingerprint}/{self.first}", json.dumps(asdict(self)).encode())


def most_canaries(series: Series) -> int:
    """Return how many canaries a batch of a series may have."""
    return batch_rules(series.collection).least * MOST_PERCENT // 100


def canary_marks(store: RecordStore, series: Series, period: int, crowd_id: bytes) -> list[bytes]:
    """Return the marks of a crowd's canaries, by their numbers; none without a plan."""
    plans = (plan for plan in _load(store, series) if period in plan.periods)
    return [mark for plan in plans for mark in plan.marks(crowd_id)]


def add_canary_plan(store: RecordStore, series: Series, plan: CanaryPlan, now: datetime) -> None:
    """Add a plan; refuse one that would give a period more canaries than it may have."""
    most = most_canaries(series)
    if not 1 <= plan.canaries <= most:
        fix = f"give 1 to {most}, {MOST_PERCENT} % of `least`"
        raise SettingsError("canaries", str(plan.canaries), fix)

    def decide() -> tuple[Sequence[Record], None]:
        for other in _load(store, series):
            if other.first <= plan.last and plan.first <= other.last:
                periods = f"{plan.first} to {plan.last}"
                fix = f"a plan has canaries in {other.first} to {other.last}: send those"
                raise SettingsError("periods", periods, fix)
        what = f"{series.collection.name} {plan.first}-{plan.last} {plan.canaries}"
        return [plan.record(), audit_record(store, now, "cli", "canary plan", what)], None

    update_records(store, decide)


def _load(store: RecordStore, series: Series) -> list[CanaryPlan]:
    plans = (CanaryPlan(**json.loads(value)) for value in store.records(KIND).values())
    return [plan for plan in plans if plan.fingerprint == series.fingerprint]
