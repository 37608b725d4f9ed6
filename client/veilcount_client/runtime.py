"""The parts of a client that records: built together once its state could be opened."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass

from veilcount_shared import Collection, RandomSource
from veilcount_shared.collection import Model

from .clock import Clock
from .consent import ConsentDecisions
from .delivery.transport import HttpTransport, Transport, in_clear
from .delivery.uploader import Uploader
from .delivery.worker import ClientWorker
from .errors import NotUsable
from .recording.answer_drawing import AnswerDrawer
from .recording.budget_reservation import Reservation
from .recording.recorder import Recorder
from .settings import ClientSettings
from .state import ClientState

log = logging.getLogger("veilcount")


class ProblemLog:
    """Logs the first problem of each kind as a warning, and remembers the latest message."""

    def __init__(self) -> None:
        """Start without problems."""
        self._messages: dict[str, str] = {}

    @property
    def messages(self) -> Mapping[str, str]:
        """The latest message of each kind."""
        return self._messages

    def add(self, kind: str, message: str) -> None:
        """Log a problem if it is the first of its kind. The message must hold no value."""
        if kind not in self._messages:
            log.warning("veilcount, %s: %s", kind, message)
        self._messages[kind] = message

    def clear(self, kind: str) -> None:
        """Forget a problem that is solved; if it comes back, it is logged again."""
        self._messages.pop(kind, None)


@dataclass(frozen=True, slots=True)
class Runtime:
    """What records, randomizes and sends, and for which collections."""

    worker: ClientWorker
    consents: ConsentDecisions
    accepted: Mapping[str, Collection]


@dataclass(frozen=True, slots=True)
class RuntimeFactory:
    """What an app chose for its client, from which a runtime is built."""

    settings: ClientSettings
    clock: Clock
    randomness: RandomSource
    transport: Transport | None
    threaded: bool
    problems: ProblemLog

    def check_address(self) -> None:
        """Raise NotUsable without an aggregator, or if the app's key would travel unencrypted."""
        if self.transport is not None:
            return
        if self.settings.url is None:
            raise NotUsable("no aggregator: pass url= or set VEILCOUNT_URL")
        problem = in_clear(self.settings.url, self.settings.key)
        if problem and self.settings.key:
            raise NotUsable(problem)
        if problem:
            self.problems.add("address", problem)

    def build(
        self, state: ClientState, collections: Mapping[str, Collection], reservation: Reservation
    ) -> Runtime:
        """Return a runtime for the collections that the reservation and the settings allow."""
        accepted = {
            name: each for name, each in collections.items() if self._is_accepted(each, reservation)
        }
        worker = self._worker(state, accepted, reservation)
        consents = ConsentDecisions(worker, accepted, self.clock.now)
        consents.load()
        return Runtime(worker, consents, accepted)

    def _is_accepted(self, collection: Collection, reservation: Reservation) -> bool:
        problem = reservation.refused.get(collection.name)
        if not problem and collection.model is Model.CENTRAL and not self.settings.trust_curator:
            problem = "true values need Client(trust_curator=True)"
        if problem:
            self.problems.add(f"load {collection.name}", problem)
        return not problem

    def _worker(
        self, state: ClientState, accepted: Mapping[str, Collection], reservation: Reservation
    ) -> ClientWorker:
        settings = self.settings
        transport = self.transport or HttpTransport(
            settings.url or "", settings.key, self.clock.now
        )
        drawer = AnswerDrawer(
            state,
            self.randomness,
            reservation.claims,
            0.0 if settings.development else settings.jitter,
            uncapped=settings.development,
        )
        recorder = Recorder(drawer)
        uploader = Uploader(
            state,
            recorder,
            transport,
            self.randomness,
            accepted,
            self.clock.now,
            persons=settings.persons,
            keyed=bool(settings.key),
            test=settings.development or self.randomness.predictable,
            log=log.info if settings.development else log.debug,
        )
        return ClientWorker(
            state, recorder, uploader, self.clock, self.problems.add, threaded=self.threaded
        )
