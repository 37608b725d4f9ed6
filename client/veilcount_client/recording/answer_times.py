"""When a person answers a collection: pure functions of the secret, the consent and the calendar.

Instants are drawn beforehand, on whole minutes; nothing recorded changes them. Everything counts
from the instant at which the consent first covered this very definition, not from the person's
first consent: who knows when a question was added must learn nothing of who sends what.
"""

from __future__ import annotations

import math
from datetime import timedelta
from functools import lru_cache

from veilcount_shared import Collection, schedule
from veilcount_shared.collection import Linkage, Presence
from veilcount_shared.shuffling import times

from ..clock import instant
from ..state import Coverage, PersonState

MINUTE = 60.0
TOKEN_WINDOW = 86_400.0  # seconds after consent in which tokens are requested, if the period lasts
CACHED = 1 << 16  # persons times questions: of a server that acts for many
LEAST_LEFT = 3600.0  # seconds of a period over which hidden instants of many questions spread
CLOCKLESS = (ValueError, OverflowError, OSError)  # what a broken clock's reading raises


# -- periods ---------------------------------------------------------------------------------------


def is_answering(person: PersonState, collection: Collection, period: int) -> bool:
    """Whether this person answers in this period: drawn for good, before any data exists."""
    is_open = period >= first_period(person, collection)
    return is_open and period in answering_periods(person, collection)


def answering_periods(person: PersonState, collection: Collection) -> frozenset[int]:
    """Return the periods that were drawn for a person; those before the first one are not answered.

    By the root that survives `forget`: who could draw again could answer both of a pair.
    """
    is_late = collection.linkage is Linkage.TOKEN  # drawn from the periods that are left
    first = _first_covered(person, collection) if is_late else 0
    return _draw_periods(person.root, collection, first)


@lru_cache(maxsize=CACHED)
def _draw_periods(root: bytes, collection: Collection, first: int) -> frozenset[int]:
    if not schedule.is_selected(root, collection):
        return frozenset()
    return schedule.draw_answering_periods(root, collection, first)


def first_period(person: PersonState, collection: Collection) -> int:
    """Return the first period that a person may answer, or the number of all if none is left.

    Of a period that began before a state was copied or restored nobody knows whether it was
    answered; a trend is paid for once, so nothing is left of it.
    """
    coverage = person.coverage.get(collection.fingerprint)
    barred = _begun(collection, person.barred)
    if coverage is None or (barred and collection.is_trend):
        return collection.periods
    resumed = _begun(collection, coverage.resumed)
    return min(max(_first_covered(person, collection), barred, resumed), collection.periods)


def _begun(collection: Collection, at: float) -> int:
    """Return how many periods had begun at an instant; none without one."""
    return period_number(collection, at) + 1 if at else 0


def _first_covered(person: PersonState, collection: Collection) -> int:
    """Return the period of the consent or the one after.

    Of tokens, which are fetched before; and of batches: who came to one late would be found by it.
    """
    coverage = person.coverage.get(collection.fingerprint)
    if coverage is None:
        return 0
    number = period_number(collection, coverage.since)
    is_late = collection.presence is Presence.HIDDEN and _left(collection, coverage) < LEAST_LEFT
    if collection.linkage is Linkage.TOKEN or collection.batch is not None or is_late:
        return min(number + 1, collection.periods)
    return max(number, 0)


def _left(collection: Collection, coverage: Coverage) -> float:
    """Return how many seconds were left of the period of the consent."""
    return _next_start(collection, coverage.since) - coverage.since


def period_number(collection: Collection, at: float) -> int:
    """Return the period of an instant; -1 before the campaign, the number of all after it."""
    period = period_of(collection, at)
    if period is not None:
        return period
    return collection.periods if at >= last_instant(collection) else -1


def period_of(collection: Collection, at: float) -> int | None:
    """Return the period of an instant; None outside the campaign and outside any calendar."""
    try:
        return schedule.period_at(collection, instant(at))
    except CLOCKLESS:
        return None


def next_answer(person: PersonState, collection: Collection, now: float) -> int | None:
    """Return the next period after this instant's that a person answers; None: there is none."""
    following = period_number(collection, now) + 1
    drawn = answering_periods(person, collection)
    later = range(max(following, first_period(person, collection)), collection.periods)
    return next((period for period in later if period in drawn), None)


# -- instants --------------------------------------------------------------------------------------


def instants(person: PersonState, collection: Collection, period: int) -> tuple[float, ...]:
    """Return the instants of a period's answers, none before the consent.

    In the period of the consent they are spread over what was left of it: at the consent itself,
    the instants of all questions would fall together. What a batch holds is final at the end of
    its period.
    """
    if collection.batch is not None:
        return (schedule.period_end(collection, period).timestamp(),)
    coverage = person.coverage.get(collection.fingerprint)
    start = schedule.period_start(collection, period).timestamp()
    end = schedule.period_end(collection, period).timestamp()
    since = coverage.since if coverage and start < coverage.since < end else start
    return drawn_instants(person.secret, collection, period, since)


@lru_cache(maxsize=CACHED)
def drawn_instants(
    secret: bytes, collection: Collection, period: int, since: float
) -> tuple[float, ...]:
    """Return the drawn instants of a period's answers, ascending, on whole minutes."""
    start = schedule.period_start(collection, period).timestamp()
    end = schedule.period_end(collection, period).timestamp()
    drawn = (
        schedule.draw_instant(secret, collection, period, answer).timestamp() - start
        for answer in range(collection.per_day)
    )
    open_share = (end - since) / (end - start)
    spread = (since + offset * open_share for offset in drawn)
    return tuple(sorted(math.ceil(moment / MINUTE) * MINUTE for moment in spread))


def next_instant(person: PersonState, collection: Collection, now: float) -> float | None:
    """Return when a person who records nothing has next something to report, if ever."""
    current, following = period_number(collection, now), next_answer(person, collection, now)
    dues = [
        due
        for period in (current, following)
        if period is not None and is_answering(person, collection, period)
        for due in instants(person, collection, period)
    ]
    if collection.is_trend and current < collection.periods:  # a state may begin
        dues.append(_next_start(collection, now))
    return min((due for due in dues if due > now), default=None)


def tokens_requested_at(person: PersonState, collection: Collection) -> float:
    """Return when the tokens of a person are to be requested: drawn, whatever is recorded.

    Within a day of the consent, and within its period: tokens are good from the next one on.
    """
    coverage = person.coverage[collection.fingerprint]
    source = schedule.SecretRandomSource(person.root, "issue", collection.fingerprint)
    left = min(TOKEN_WINDOW, _left(collection, coverage))
    return coverage.since + source.below(max(1, int(left)))


def _next_start(collection: Collection, at: float) -> float:
    """Return when the period after that of an instant begins; of the last one, its end."""
    number = min(period_number(collection, at), collection.periods - 1)
    if number < 0:
        return schedule.period_start(collection, 0).timestamp()
    return schedule.period_end(collection, number).timestamp()


def last_instant(collection: Collection) -> float:
    """Return when the aggregator stops to expect answers of the last period."""
    return schedule.period_end(collection, collection.periods - 1).timestamp()


def full_minute(now: float) -> float:
    """Return the full minute that an instant lies in."""
    return now // MINUTE * MINUTE


def sent_to_shuffler_at(person: PersonState, collection: Collection, period: int) -> float:
    """Return when the sealed report of a period leaves: drawn, whatever is recorded."""
    return times.draw_sending_instant(person.root, collection, period).timestamp()


def expiry(collection: Collection, period: int) -> float:
    """Return when a period is accepted no more: by the aggregator, or by the shuffler."""
    if collection.batch is not None:
        return times.grace_end(collection, period).timestamp()
    return (schedule.period_end(collection, period) + timedelta(days=collection.late)).timestamp()
