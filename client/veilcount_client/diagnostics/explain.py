"""Why nothing of a collection left this machine: every reason that holds now, the first first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from veilcount_shared import Collection
from veilcount_shared.collection import Presence

from ..delivery.worker import ClientWorker
from ..recording.budget_reservation import Reservation
from ..recording.receipt import DELIVERED, WAITING
from ..settings import ClientSettings
from ..state import StateError, closed_series
from ..state.losses import Loss, LossCounter
from . import problems
from .moved_state import moved_state


@dataclass(frozen=True, slots=True)
class Explanation:
    """Reasons, in the order in which they would have to be mended; none if all is well."""

    collection: str
    reasons: tuple[str, ...]
    losses: Mapping[str, int]
    delivered: int = 0  # of the person's last reports
    route: str = "direct"
    delivered_on: str = ""  # when the aggregator last counted a report of the collection, of anyone

    def __str__(self) -> str:
        lines = list(self.reasons or ("all is well",))
        if self.route != "direct":
            lines.append(f"route: {self.route}")
        if self.delivered and self.delivered_on:
            lines.append(f"delivered: {self.delivered}, the collection's last {self.delivered_on}")
        lines += [f"{reason}: {count}" for reason, count in self.losses.items()]
        return "\n".join([f"{self.collection}:", *(f"  {each}" for each in lines)])


def explain(
    name: str,
    *,
    settings: ClientSettings,
    collections: Mapping[str, Collection],
    reservation: Reservation,
    logged: Mapping[str, str],
    worker: ClientWorker | None,
    key: bytes | None,
    now: float,
    unstored: LossCounter,
) -> Explanation:
    """Return why nothing of a collection left."""
    reasons = []
    if problem := problems.kill_switch(settings):
        reasons.append(f"kill switch: {problem}")
    if collections and name not in collections:
        reasons.append(f"definitions: no [{name}] in {', '.join(collections)}")
    if name in reservation.refused:
        reasons.append(f"ceiling: {reservation.refused[name]}")
    reasons += [f"{kind}: {message}" for kind, message in logged.items()]
    losses = problems.losses_of(unstored.counts(), {name})
    delivered, delivered_on = 0, ""
    if worker is not None and key is not None and name in collections:
        collection = collections[name]
        try:
            reasons += _stored_reasons(worker, key, collection, now)
            worker.recorder.write_losses()
            kept_under = {name, collection.fingerprint, ""}
            losses = problems.losses_of(worker.state.losses(), kept_under)
            losses[Loss.CRASHED] -= worker.recorder.outbox.count(name)  # on their way
            delivered = _statuses(worker, key, collection)[DELIVERED]
            reply = worker.uploader.replies.last(collection.fingerprint)
            delivered_on = reply.delivered if reply else ""
        except StateError as error:
            reasons.append(f"state: {error}")
    counts = {loss.value: count for loss, count in (+losses).items()}
    return Explanation(name, tuple(reasons), counts, delivered, settings.route, delivered_on)


def _stored_reasons(
    worker: ClientWorker, key: bytes, collection: Collection, now: float
) -> Iterator[str]:
    """Yield what the state knows of a person and a collection."""
    state = worker.state
    person = state.person(key)
    if problem := problems.consent(person, [collection]):
        yield f"consent: {problem}"
    if problem := moved_state(state.moved, [collection], now):
        yield f"state: {problem}"
    if closed_series(state, [collection.fingerprint]):  # what else holds changes little any more
        yield f"closed: {problems.CLOSED}"
        return
    if problem := problems.campaign(collection, now):
        yield f"clock: {problem}"
    elif problem := problems.period(state, person, collection, now):
        yield problem
    else:
        claim = worker.recorder.drawer.claims.get(collection.name)
        if problem := problems.cap(state, person, collection, claim, now):
            yield f"cap: {problem}"
    yield from _queued(worker, key, collection)


def _queued(worker: ClientWorker, key: bytes, collection: Collection) -> Iterator[str]:
    waiting, replies = _statuses(worker, key, collection)[WAITING], worker.uploader.replies
    reply = replies.last(collection.fingerprint)
    if reply and reply.is_trouble:
        queue = f" ({waiting} waiting)" if waiting else ""
        yield f"server, {reply.day}: {replies.describe_last(reply)}{queue}"
    elif waiting:
        until = "their instants" if collection.presence is Presence.HIDDEN else "their time"
        yield f"on the way: {waiting} reports wait for {until}"


def _statuses(worker: ClientWorker, key: bytes, collection: Collection) -> Counter[str]:
    """Return how many of a person's reports, which the state keeps, are at which point."""
    sent = worker.state.sent(key)
    return Counter(
        each.status for each in sent if each.report.fingerprint == collection.fingerprint
    )
