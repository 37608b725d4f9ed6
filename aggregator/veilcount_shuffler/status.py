"""What an operator sees of a shuffler's crowds: states and numbers of days, no numbers of people.

How many reports a crowd has is said once it was handed over: before, nobody is to know.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from veilcount_shared.shuffling.batch_record import BatchState

from .crowd_states import CrowdRow, CrowdStates
from .served_crowds import ServedCrowd, crowds_of
from .store_settings import StoreSettings


@dataclass(frozen=True, slots=True)
class CrowdStatus:
    """One crowd."""

    collection: str
    period: int
    state: str
    leaves: str  # the day
    reports: int | None
    days_waited: int


def crowd_statuses(
    settings: StoreSettings, states: CrowdStates, now: datetime
) -> list[CrowdStatus]:
    """Return the crowds that have begun, or take reports now."""
    rows = {row.crowd_id: row for row in states.rows()}
    return [
        _status(crowd, rows.get(crowd.crowd_id))
        for crowd in crowds_of(settings)
        if crowd.crowd_id in rows or crowd.opens <= now < crowd.closes
    ]


def _status(crowd: ServedCrowd, row: CrowdRow | None) -> CrowdStatus:
    state = "open" if row is None else row.state.name.lower()
    if row is not None and row.outcome is not None:
        state = row.outcome.name.lower().replace("_", " ")
    return CrowdStatus(
        crowd.collection.name,
        crowd.period,
        state,
        crowd.leaves.date().isoformat(),
        row.reports if row is not None and row.outcome is BatchState.HANDED_OVER else None,
        row.days_waited if row else 0,
    )
