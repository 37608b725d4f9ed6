"""Why nothing of a collection left this machine: every reason that holds now, the first first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date

from veilcount_shared import Collection, periods, schedule
from veilcount_shared.collection import Presence

from ..clock import instant
from ..delivery.worker import Worker
from ..recording.budget_reservation import Reservation
from ..settings import Settings
from ..state import PersonState, StateError
from ..state.closed_series import closed
from ..state.losses import Loss, LossCounter

CLOSED = "closed: the aggregator takes no more for this collection"


@dataclass(frozen=True, slots=True)
class Explanation:
    """Reasons, in the order in which they would have to be mended; none if all is well."""

    collection: str
    reasons: tuple[str, ...]
    losses: Mapping[str, int]

    def __str__(self) -> str:
        told = self.reasons or ("all is well",)
        lost = [f"{reason}: {count}" for reason, count in self.losses.items()]
        return "\n".join([f"{self.collection}:", *(f"  {each}" for each in (*told, *lost))])


def explain(
    name: str,
    *,
    settings: Settings,
    collections: Mapping[str, Collection],
    reservation: Reservation,
    problems: Mapping[str, str],
    worker: Worker | None,
    key: bytes | None,
    now: float,
    unstored: LossCounter,
) -> Explanation:
    """Return why nothing of a collection left."""
    reasons = []
    if settings.disabled:
        reasons.append(f"kill switch: {settings.disabled} is set")
    if collections and name not in collections:
        reasons.append(f"definitions: no [{name}] in {', '.join(collections)}")
    if name in reservation.refused:
        reasons.append(f"ceiling: {reservation.refused[name]}")
    reasons += [f"{about}: {why}" for about, why in problems.items()]
    losses = _named(unstored.counts(), {name})
    if worker is not None and key is not None and name in collections:
        try:
            reasons += _of_the_state(worker, key, collections[name], now)
            losses = _losses(worker, collections[name])
        except StateError as error:
            reasons.append(f"state: {error}")
    return Explanation(name, tuple(reasons), losses)


def _of_the_state(worker: Worker, key: bytes, collection: Collection, now: float) -> list[str]:
    person = worker.state.person(key)
    if closed(worker.state, [collection.fingerprint]):  # what else holds changes little any more
        return [*_consent(person, collection), CLOSED]
    return [
        *_consent(person, collection),
        *_calendar(worker, person, collection, now),
        *_on_the_way(worker, key, collection),
    ]


def _consent(person: PersonState, collection: Collection) -> list[str]:
    if person.consented is None:
        return ["consent: the person was not asked: consent(True) or consent(False)"]
    if not person.consented:
        return ["consent: the person said no"]
    if collection.fingerprint not in person.covered:
        return ["consent: given before this collection (or this form of it) existed: ask again"]
    return []


def _calendar(worker: Worker, person: PersonState, collection: Collection, now: float) -> list[str]:
    today = instant(now)
    period = schedule.period_of(collection, today)
    if period is None:
        return [
            f"clock: it is {today.date()}, the campaign is {collection.start} to {collection.until}"
        ]
    if not schedule.asked(person.root, collection):
        return ["schedule: this person is not among those asked (cohort or twin)"]
    if period not in schedule.answering_periods(person.root, collection):
        return [f"schedule: this person does not answer in period {period}"]
    last, answers = worker.state.used(person.key, collection.fingerprint)
    if last > period:
        return [f"clock: period {last} was answered already, and it is {period}: was it set back?"]
    if last == period and answers >= collection.per_period:
        return [f"frozen until {schedule.closes(collection, period)}: this period is answered"]
    return _cap(worker, person, collection, period)


def _cap(worker: Worker, person: PersonState, collection: Collection, period: int) -> list[str]:
    claim = worker.recorder.claims.get(collection.name)
    spent = worker.state.spent(person.key).get(claim.lineage) if claim else None
    if claim is None or spent is None:
        return []
    if spent.life >= claim.life:
        return ["cap: everything this collection may spend is spent"]
    first, end = periods.calendar_range(collection.unit, collection.start, collection.until, period)
    paid = spent.first_day, spent.end_day
    if first.toordinal() < spent.end_day and paid != (first.toordinal(), end.toordinal()):
        until = date.fromordinal(spent.end_day)
        return [f"cap: until {until} these days were paid for by an earlier form of the collection"]
    return []


def _on_the_way(worker: Worker, key: bytes, collection: Collection) -> list[str]:
    waiting = sum(
        each.status == "waiting" and each.report.fingerprint == collection.fingerprint
        for each in worker.state.sent(key)
    )
    if not waiting:
        return []
    why = worker.uploader.last_failures.get(collection.fingerprint)
    if why:
        return [f"server: {waiting} reports wait to be tried again, each at its time, since {why}"]
    hidden = collection.presence is Presence.HIDDEN
    return [
        f"on the way: {waiting} reports wait for {'their instants' if hidden else 'their time'}"
    ]


def _losses(worker: Worker, collection: Collection) -> dict[str, int]:
    """Return what was lost of a collection: kept by its name, on the way by its series."""
    worker.recorder.write_losses()
    lost = Counter(_named(worker.state.losses(), {collection.name, collection.fingerprint, ""}))
    lost[Loss.CRASHED.value] -= worker.recorder.outbox.count(collection.name)  # on their way
    return dict(+lost)


def _named(counts: Mapping[tuple[Loss, str], int], names: set[str]) -> dict[str, int]:
    lost: Counter[str] = Counter()
    for (reason, where), count in counts.items():
        if where in names:
            lost[reason.value] += count
    return lost
