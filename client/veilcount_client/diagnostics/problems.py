"""What keeps a device from reporting, each problem in one place: for `doctor` and for `explain`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import date

from veilcount_shared import Collection, periods, schedule
from veilcount_shared.budget_claims import Claim, micro
from veilcount_shared.epsilon import EPSILON_GRAIN
from veilcount_shared.periods import Unit

from ..clock import instant
from ..recording.answer_times import first_period, is_answering, next_answer
from ..recording.known_definitions import known_definitions, lineage_of, period_label
from ..settings import ClientSettings
from ..state import ClientState, Notes, PersonState
from ..state.losses import Loss

Collections = Mapping[str, Collection]  # by name


MONTHS = (  # whatever the app's locale
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
CLOSED = "the aggregator takes no more for this collection: leave it out of the app's next version"


def kill_switch(settings: ClientSettings) -> str | None:
    """Return the kill switch of the environment that is on."""
    return f"{settings.disabled} is set: unset it to record anything" if settings.disabled else None


def campaign(collection: Collection, now: float) -> str | None:
    """Return how the machine's clock lies outside the campaign."""
    today = instant(now).date()
    if today < collection.start:
        return f"it is {today}, the campaign starts {collection.start}: wait, or set the clock"
    if today >= collection.until:
        ended = f"it is {today}, the campaign ended {collection.until}"
        return f"{ended}: ship new dates, or set the clock"
    return None


def consent(notes: Notes, person: PersonState, collections: Iterable[Collection]) -> str | None:
    """Return why the person's consent does not cover these collections."""
    if person.consented is None:
        return "the person was not asked: if client.must_ask: client.consent(...)"
    if not person.consented:
        return "the person said no: nothing is recorded"
    definitions = known_definitions(notes)
    missing, declined = list[str](), list[str]()
    for collection in collections:
        if collection.fingerprint not in person.covered:
            is_declined = lineage_of(definitions, collection) in person.declined
            (declined if is_declined else missing).append(collection.name)
    if declined and not missing:
        return f"the person said no to {', '.join(declined)}: nothing is recorded of it"
    if missing:
        return f"does not cover {', '.join(missing)}: ask again where client.must_ask is true"
    return None


def period(
    state: ClientState, person: PersonState, collection: Collection, now: float
) -> str | None:
    """Return why the person gives no answer in the present period of a running campaign."""
    current = schedule.period_at(collection, instant(now))
    if current is None or collection.is_trend or collection.fingerprint not in person.covered:
        return None  # of a trend a state is kept whenever it changes
    if not schedule.is_selected(person.root, collection):
        return f"schedule: this person is not selected ({_drawn_otherwise(person, collection)})"
    last, answers = state.used(person.key, collection.fingerprint)
    if last > current:
        label, today = period_label(collection, last), instant(now).date()
        return f"clock: {label} was answered already, and it is {today}: was it set back?"
    if not is_answering(person, collection, current):
        return _not_now(person, collection, current, now)
    if last == current and answers >= collection.per_day:
        until, name = schedule.period_end(collection, current), periods.period_name(collection.unit)
        return f"frozen until {until.date()}: this {name} is answered"
    return None


def _drawn_otherwise(person: PersonState, collection: Collection) -> str:
    if collection.group is None:
        return "cohort or paired collection"
    drawn = schedule.draw_question(person.root, collection.group)
    return f"group {collection.group.name}: {drawn} was drawn"


def _not_now(person: PersonState, collection: Collection, current: int, now: float) -> str:
    """Return why a person does not answer in a period, and when they do next."""
    name = periods.period_name(collection.unit)
    why = f"drawn by chance, {collection.answering} of {collection.periods}"
    if current < first_period(person, collection):
        why = "it had begun when the person consented"
    period = next_answer(person, collection, now)
    following = "none is left" if period is None else f"next {_date_phrase(collection, period)}"
    return f"not this {name}: {why}; {following}"


def _date_phrase(collection: Collection, period: int) -> str:
    first = periods.first_day(collection.unit, collection.start, period)
    match collection.unit:
        case Unit.MONTH:
            return f"in {MONTHS[first.month - 1]} {first.year}"
        case Unit.WEEK:
            return f"in the week of {first}"
        case _:
            return f"on {first}"


def cap(
    state: ClientState, person: PersonState, collection: Collection, claim: Claim | None, now: float
) -> str | None:
    """Return why the ledger leaves nothing to spend in the present period."""
    current = schedule.period_at(collection, instant(now))
    spent = state.spent(person.key).get(claim.lineage) if claim else None
    if claim is None or spent is None or current is None:
        return None
    if collection.is_trend and state.used(person.key, collection.fingerprint)[0] >= 0:
        return None  # it was paid for with the first report
    cost = micro(collection.unit_epsilon)
    if spent.life + cost > claim.life:
        return "everything this collection may spend is spent"
    unit, start, until = collection.unit, collection.start, collection.until
    first, end = (day.toordinal() for day in periods.calendar_range(unit, start, until, current))
    if first < spent.end_day and (spent.first_day, spent.end_day) != (first, end):
        paid_until = date.fromordinal(spent.end_day)
        return f"until {paid_until} these days were paid for by an earlier form of the collection"
    if first < spent.end_day and spent.range_spent + cost > claim.day:
        share = f"{spent.range_spent / EPSILON_GRAIN:g} of {claim.day / EPSILON_GRAIN:g}"
        period_of_cap = f"this {periods.period_name(unit)} (before forget(), or by an earlier form)"
        return f"epsilon {share} is spent in {period_of_cap}: until {date.fromordinal(end)}"
    return None


def losses_of(counts: Mapping[tuple[Loss, str], int], names: Iterable[str]) -> Counter[Loss]:
    """Return the losses that are kept under any of these names."""
    chosen_names = set(names)
    lost: Counter[Loss] = Counter()
    for (reason, where), count in counts.items():
        if where in chosen_names:
            lost[reason] += count
    return lost
