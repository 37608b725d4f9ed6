"""Why nothing of a collection left this machine: every reason that holds now, the first first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from veilcount_shared import Collection, schedule
from veilcount_shared.collection import Presence
from veilcount_shared.periods import period_name

from ..clock import instant
from ..delivery.worker import ClientWorker
from ..recording.kept_values import KeptKind, KeptValue, Place, kept_values, unsent_values
from ..recording.known_definitions import period_label
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
    delivered_on: str = ""  # when one of the collection, of anyone, was last counted, or held

    def __str__(self) -> str:
        lines = list(self.reasons or ("all is well",))
        if self.route != "direct":
            lines.append(f"route: {self.route}")
        if self.delivered and self.delivered_on:
            lines.append(f"delivered: {self.delivered}, the collection's last {self.delivered_on}")
        lines += [f"{reason}: {count}" for reason, count in self.losses.items()]
        return "\n".join([f"{self.collection}:", *(f"  {line}" for line in lines)])


def explain(
    name: str,
    *,
    settings: ClientSettings,
    collections: Mapping[str, Collection],
    logged: Mapping[str, str],
    worker: ClientWorker | None,
    key: bytes | None,
    now: float,
    unstored: LossCounter,
) -> Explanation:
    """Return why nothing of a collection left."""
    causes: dict[str, str] = {}  # one reason each
    if problem := problems.kill_switch(settings):
        causes["kill switch"] = problem
    if collections and name not in collections:
        causes["definitions"] = f"no [{name}] in {', '.join(collections)}"
    causes |= logged
    stored: list[str] = []
    losses = problems.losses_of(unstored.counts(), {name})
    route = settings.route(collections[name]) if name in collections else "direct"
    delivered, delivered_on = 0, ""
    if worker is not None and key is not None and name in collections:
        collection = collections[name]
        try:
            stored += _stored_reasons(worker, key, collection, now)
            worker.recorder.write_losses()
            kept_under = {name, collection.fingerprint, ""}
            losses = problems.losses_of(worker.state.losses(), kept_under)
            losses[Loss.CRASHED] -= worker.recorder.count_unsent(name)  # on their way
            delivered = _statuses(worker, key, collection)[DELIVERED]
            reply = worker.uploader.replies_on(collection).last(collection.fingerprint)
            delivered_on = reply.delivered if reply else ""
        except StateError as error:
            causes["state"] = str(error)
    reasons = (*(f"{cause}: {problem}" for cause, problem in causes.items()), *stored)
    counts = {loss.value: count for loss, count in (+losses).items()}
    return Explanation(name, reasons, counts, delivered, route, delivered_on)


def _stored_reasons(
    worker: ClientWorker, key: bytes, collection: Collection, now: float
) -> Iterator[str]:
    """Yield the reasons that lie in the state of a person."""
    if collection.name in worker.uploader.collections:  # or it was refused at the start
        yield from _consent(worker, key, collection)
        if closed_series(worker.state, [collection.fingerprint]):  # what else holds changes little
            yield f"closed: {problems.CLOSED}"
            return
        yield from _answering(worker, key, collection, now)
    yield from _queued(worker, key, collection)
    yield from _waiting(worker, key, collection, now)


def _consent(worker: ClientWorker, key: bytes, collection: Collection) -> Iterator[str]:
    if problem := problems.consent(worker.state, worker.state.person(key), [collection]):
        yield f"consent: {problem}"


def _answering(
    worker: ClientWorker, key: bytes, collection: Collection, now: float
) -> Iterator[str]:
    """Yield why the person gives no answer now; in development only the dates can be the cause."""
    state, drawer = worker.state, worker.recorder.drawer
    if problem := problems.campaign(collection, now):
        yield f"clock: {problem}"
    elif drawer.uncapped:
        return
    elif problem := moved_state(state.moved, [collection], now):
        yield f"state: {problem}"
    elif problem := problems.period(state, state.person(key), collection, now):
        yield problem
    elif problem := problems.cap(
        state, state.person(key), collection, drawer.claims.get(collection.name), now
    ):
        yield f"cap: {problem}"


def _queued(worker: ClientWorker, key: bytes, collection: Collection) -> Iterator[str]:
    in_memory = len(list(unsent_values(worker.recorder, key, collection)))
    waiting = _statuses(worker, key, collection)[WAITING] + in_memory
    replies = worker.uploader.replies_on(collection)
    reply = replies.last(collection.fingerprint)
    if reply and reply.is_trouble:
        queue = f" ({waiting} waiting)" if waiting else ""
        party = "server" if replies is worker.uploader.replies else "shuffler"
        yield f"{party}, {reply.day}: {replies.describe_last(reply)}{queue}"
    elif waiting:
        is_drawn = collection.presence is Presence.HIDDEN or collection.batch is not None
        until = "their instants" if is_drawn else "their time"
        memory = f", {in_memory} of them in memory" if in_memory else ""
        yield f"on the way: {waiting} reports wait for {until}{memory}"


def _waiting(worker: ClientWorker, key: bytes, collection: Collection, now: float) -> Iterator[str]:
    """Describe each value that is kept until a later report."""
    current = schedule.period_at(collection, instant(now))
    current_label = "" if current is None else period_label(collection, current)
    for value in kept_values(worker.recorder, key, collection):
        is_current = value.when == current_label
        period = f"this {period_name(collection.unit)}" if is_current else value.when
        when = f"after {period}" if collection.batch else f"at an instant drawn for {period}"
        yield _describe(value, when)


def _describe(value: KeptValue, report: str) -> str:
    if value.kind is KeptKind.STATE:
        return f"the state is kept on this device; the next report is randomized {report}"
    if value.kind is KeptKind.VISIT:
        return "the last visit is kept on this device; the next period with a visit asks for it"
    end = ", or when this process ends" if value.place is Place.MEMORY else ""
    return f"1 value is waiting; it is reported {report}{end}"


def _statuses(worker: ClientWorker, key: bytes, collection: Collection) -> Counter[str]:
    """Return how many of a person's reports, which the state keeps, are at which point."""
    sent = worker.state.sent(key)
    return Counter(row.status for row in sent if row.report.fingerprint == collection.fingerprint)
