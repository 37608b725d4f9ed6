"""When a person answers a collection: pure functions of the secret and the calendar.

Instants are drawn beforehand, on whole minutes; nothing recorded changes them.
"""

from __future__ import annotations

import math
from datetime import timedelta
from functools import lru_cache

from veilcount_shared import Collection, schedule
from veilcount_shared.collection import Linkage

from ..clock import instant
from ..state import PersonState

MINUTE = 60.0
TOKEN_WINDOW = 86_400.0  # seconds after consent in which tokens are issued, at a drawn instant
CLOCKLESS = (ValueError, OverflowError, OSError)  # what a broken clock's reading raises


@lru_cache(maxsize=4096)
def is_answering(root: bytes, collection: Collection, period: int) -> bool:
    """Whether this person answers in this period: drawn for good, before any data exists.

    By the root that survives `forget`: who could draw again could answer both of a pair.
    """
    if not schedule.is_selected(root, collection):
        return False
    if collection.answering == collection.periods:
        return True
    return period in schedule.draw_answering_periods(root, collection)


def instants(person: PersonState, collection: Collection, period: int) -> tuple[float, ...]:
    """Return the instants of a period's answers, none before the person consented."""
    since = math.ceil(person.since / MINUTE) * MINUTE
    drawn = drawn_instants(person.secret, collection, period)
    return tuple(max(each, since) for each in drawn)


@lru_cache(maxsize=4096)
def drawn_instants(secret: bytes, collection: Collection, period: int) -> tuple[float, ...]:
    """Return the drawn instants of a period's answers, ascending, on whole minutes."""
    drawn = (
        schedule.draw_instant(secret, collection, period, answer).timestamp()
        for answer in range(collection.per_period)
    )
    return tuple(sorted(math.ceil(each / MINUTE) * MINUTE for each in drawn))


def tokens_requested_at(person: PersonState, collection: Collection) -> float:
    """Return when the tokens of a person are to be requested: drawn, whatever is recorded."""
    source = schedule.SecretRandomSource(person.root, "issue", collection.fingerprint)
    return person.since + source.below(int(TOKEN_WINDOW))


def tokens_ready(person: PersonState, collection: Collection) -> float:
    """Return before when no report with a token leaves; 0 where there are none."""
    return person.since + TOKEN_WINDOW if collection.linkage is Linkage.TOKEN else 0.0


def first_period(person: PersonState, collection: Collection) -> int:
    """Return the period in which a person consented; 0 if that was before the campaign."""
    return period_of(collection, person.since) or 0


def last_instant(collection: Collection) -> float:
    """Return when the aggregator stops to expect answers of the last period."""
    return schedule.period_end(collection, collection.periods - 1).timestamp()


def full_minute(now: float) -> float:
    """Return the full minute that an instant lies in."""
    return now // MINUTE * MINUTE


def period_of(collection: Collection, at: float) -> int | None:
    """Return the period of an instant; None outside the campaign and outside any calendar."""
    try:
        return schedule.period_at(collection, instant(at))
    except CLOCKLESS:
        return None


def expiry(collection: Collection, period: int) -> float:
    """Return when the aggregator stops to accept a period."""
    return (schedule.period_end(collection, period) + timedelta(days=collection.late)).timestamp()
