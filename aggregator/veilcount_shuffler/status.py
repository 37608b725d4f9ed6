"""What an operator sees of a shuffler's crowds: states and numbers of days, no numbers of people.

How many reports a crowd has is said once it was handed over: before, nobody is to know. That one is
full is said at once: its devices wait.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from veilcount_shared.shuffling.batch_record import BatchState

from .crowd_limit import free_places
from .crowd_states import CrowdRow, CrowdState, CrowdStates
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


FULL = "full"


def crowd_statuses(
    settings: StoreSettings, states: CrowdStates, now: datetime
) -> list[CrowdStatus]:
    """Return the crowds that have begun, or take reports now."""
    rows = {row.crowd_id: row for row in states.rows()}
    full = {crowd.crowd_id for crowd in full_crowds(settings, states)}
    return [
        _status(crowd, rows.get(crowd.crowd_id), is_full=crowd.crowd_id in full)
        for crowd in crowds_of(settings)
        if crowd.crowd_id in rows or crowd.opens <= now < crowd.closes
    ]


def full_crowds(settings: StoreSettings, states: CrowdStates) -> list[ServedCrowd]:
    """Return the open crowds that take no more, since a batch cannot have more."""
    rows = {row.crowd_id for row in states.rows() if row.state is CrowdState.OPEN}
    return [
        crowd
        for crowd in crowds_of(settings)
        if crowd.crowd_id in rows and _is_full(crowd, settings)
    ]


def _is_full(crowd: ServedCrowd, settings: StoreSettings) -> bool:
    with suppress(FileNotFoundError):  # it was handed over and erased meanwhile
        return not free_places(crowd, settings.crowds / crowd.crowd_id.hex())
    return False


def _status(crowd: ServedCrowd, row: CrowdRow | None, *, is_full: bool) -> CrowdStatus:
    state = "open" if row is None else row.state.name.lower()
    if is_full:
        state = FULL
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
