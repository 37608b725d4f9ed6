"""Client and Person: the whole public API.

`record` takes microseconds, never blocks and never raises into the app: whatever goes wrong is
logged once, counted, and told by `explain`. Values never appear in any of the three.
"""

from __future__ import annotations

import logging
import math
import os
import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from types import TracebackType
from typing import Literal, Self

from veilcount_shared import Collection, RandomSource, SystemRandomSource, load_collections
from veilcount_shared.collection import Model
from veilcount_shared.errors import UnknownSegment, VeilcountError

from .clock import BoundedClock, Clock, SystemClock
from .consent import ConsentDecisions
from .delivery.transport import HttpTransport, Transport
from .delivery.uploader import Uploader
from .delivery.worker import Worker
from .diagnostics.explain import Explanation, explain
from .errors import NotUsable, UnknownCollection
from .recording import budget_reservation
from .recording.budget_reservation import Reservation
from .recording.receipt import Receipt, ReportExample, example, receipt
from .recording.recorder import RecordCall, Recorder
from .settings import Settings, read_settings
from .state import State, StateError
from .state.factory import open_state
from .state.key_derivation import key_of
from .state.location import place_of
from .state.losses import Loss, LossCounter
from .transport_security import in_clear

log = logging.getLogger("veilcount")

SELF = ""  # the one person of a client without persons
RETRY_OPEN = 30.0  # seconds after which a state that was out of reach is looked for again


class Client:
    """Records answers of one person, or of many (`persons=True`), and sends them randomized."""

    def __init__(
        self,
        url: str | None = None,
        *,
        collections: str | os.PathLike[str] | Mapping[str, Collection] | None = None,
        state_dir: str | os.PathLike[str] | None = None,
        state: str | None = None,
        key: str | None = None,
        ceiling: int | str | Fraction | None = None,
        daily_ceiling: int | str | Fraction | None = None,
        persons: bool | None = None,
        trust_curator: bool | None = None,
        development: bool | None = None,
        strict: bool | None = None,
        jitter: float | None = None,
        transport: Transport | None = None,
        clock: Clock | None = None,
        randomness: RandomSource | None = None,
        threaded: bool = True,
    ) -> None:
        """Load the definitions and open the state. Whatever is not given comes from VEILCOUNT_*."""
        self._clock = BoundedClock(clock or SystemClock())
        self._now = self._clock.now
        self._coins = randomness or SystemRandomSource()
        self._transport = transport
        self._threaded = threaded
        self._complained: dict[str, str] = {}
        self._consents: dict[str, bool | None] = {}
        self._closed = False
        self._unstored = LossCounter()
        self._worker: Worker | None = None
        self._decisions: ConsentDecisions | None = None
        self.collections: Mapping[str, Collection] = {}
        self.reservation = Reservation({}, {}, budget_reservation.Ceilings(0, 0))
        self.settings = Settings(strict=bool(strict))
        self._retry_at = math.inf
        try:
            self.settings = read_settings(
                url=url,
                collections=None if isinstance(collections, Mapping) else _text(collections),
                state_dir=_text(state_dir),
                state=state,
                key=key,
                ceiling=ceiling,
                daily_ceiling=daily_ceiling,
                persons=persons,
                trust_curator=trust_curator,
                development=development,
                strict=strict,
                jitter=jitter,
            )
            self.collections = self._load(collections)
            self._open()
        except Exception as error:
            self._fail(error)
            if self.settings.strict:
                raise

    # -- recording -----------------------------------------------------------------------------

    def record(self, name: str, value: object, /, **segments: object) -> None:
        """Record a value of a collection: microseconds, never blocks, never raises."""
        self._record(SELF, name, value, segments)

    def person(self, id: object, /) -> Person:  # noqa: A002 - what the app calls it
        """Return one of the many persons that this client acts for; the id is never stored."""
        if not self.settings.persons:
            raise NotUsable("person() needs Client(persons=True)")
        return Person(self, str(id))

    # -- consent -------------------------------------------------------------------------------

    @property
    def consented(self) -> bool | None:
        """True, False, or None where the person was not asked yet."""
        return self._consented(SELF)

    def consent(self, given: bool) -> None:  # noqa: FBT001 - the one thing it is about
        """Keep the person's answer. False wipes what is still here and stops the sending."""
        self._consent(SELF, given=given)

    def unasked(self) -> list[str]:
        """Return the collections that the person's consent does not cover."""
        return self._unasked(SELF)

    def forget(self) -> None:
        """Wipe secret, answers and outbox; keep what was spent; have the rows closed in time."""
        self._forget(SELF)

    # -- delivery ------------------------------------------------------------------------------

    def flush(
        self, timeout: float = 10.0, until: Literal["delivered", "stored"] = "delivered"
    ) -> bool:
        """Store what was recorded and, unless told otherwise, send it now; whether all of it was.

        Hidden presence is not hurried: it leaves at its drawn instants only.
        """
        if self._worker is None or not self._worker.store():
            return False
        return until == "stored" or self._worker.deliver(timeout)

    def close(self, timeout: float = 2.0) -> None:
        """Store everything and stop. What is stored leaves with the next start."""
        if self._worker is None or self._closed:
            return
        self._closed = True
        self._worker.finish()
        self._worker.close(timeout)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # -- what is told --------------------------------------------------------------------------

    def receipt(self) -> Receipt:
        """Return what left this device and what it cost, for the person."""
        return self._receipt(SELF)

    def example(self, name: str) -> ReportExample:
        """Return the format and the law of a report: of a fixed dummy, never a draw."""
        return example(self.collections[name])

    def explain(self, name: str) -> Explanation:
        """Return why nothing of a collection left, or that all is well."""
        return self._explain(SELF, name)

    # -- for one person or many ----------------------------------------------------------------

    def _record(self, person: str, name: str, value: object, segments: dict[str, object]) -> None:
        worker, collection = self._worker, self._accepted.get(str(name))
        if worker is None or collection is None or self._closed:
            self._refuse(str(name))
            return
        try:
            if person == SELF and self._consents.get(SELF) is not True:
                worker.answers.losses.add(Loss.NO_CONSENT, name)
                return
            cell = collection.segment(**segments) if segments or collection.segments else 0
            if not worker.put(RecordCall(person, collection, value, cell, self._now())):
                worker.answers.losses.add(Loss.CROWDED, name)
        except UnknownSegment as error:
            worker.answers.losses.add(Loss.SEGMENT, name)
            self._complain(f"record {name}", str(error))
            if self.settings.strict:
                raise
        except Exception as error:
            self._complain(f"record {name}", type(error).__name__)
            if self.settings.strict:
                raise

    def _consented(self, person: str) -> bool | None:
        if person == SELF and SELF in self._consents:
            return self._consents[SELF]
        if self._decisions is None:
            return None
        try:
            return self._decisions.consented(self._key(person))
        except StateError as error:
            self._complain("state", str(error))
            return None

    def _consent(self, person: str, *, given: bool) -> None:
        if self._decisions is None:
            return
        try:
            self._decisions.consent(self._key(person), given=given)
        except StateError as error:
            self._complain("state", str(error))
            if self.settings.strict:
                raise
            return
        if person == SELF:
            self._consents[SELF] = given

    def _unasked(self, person: str) -> list[str]:
        return [] if self._decisions is None else self._decisions.unasked(self._key(person))

    def _forget(self, person: str) -> None:
        if self._decisions is None:
            return
        self._decisions.forget(self._key(person))
        if person == SELF:
            self._consents[SELF] = None

    def _receipt(self, person: str) -> Receipt:
        if self._worker is None:
            raise NotUsable("; ".join(self._complained.values()) or "the client is not usable")
        return receipt(self._worker.state, self._key(person), self.collections, self.reservation)

    def _explain(self, person: str, name: str) -> Explanation:
        told = explain(
            name,
            settings=self.settings,
            collections=self.collections,
            reservation=self.reservation,
            complaints=self._complained,
            worker=self._worker,
            key=None if self._worker is None else self._key(person),
            now=self._now(),
        )
        return told if self._worker is not None else replace(told, losses=self._nowhere(name))

    def _nowhere(self, name: str) -> dict[str, int]:
        """Return what was recorded while there was no state to count it in."""
        counts = self._unstored.take()
        for (loss, about), count in counts.items():
            self._unstored.add(loss, about, count)
        return {loss.value: count for (loss, about), count in counts.items() if about == name}

    def _key(self, person: str) -> bytes:
        assert self._worker is not None, "callers look first"  # noqa: S101
        return key_of(self._worker.state.root, person)

    # -- opening -------------------------------------------------------------------------------

    _accepted: Mapping[str, Collection] = {}

    def _load(
        self, given: str | os.PathLike[str] | Mapping[str, Collection] | None
    ) -> Mapping[str, Collection]:
        if isinstance(given, Mapping):
            return dict(given)
        if self.settings.collections is None:
            raise NotUsable("no definitions: give collections= or VEILCOUNT_COLLECTIONS")
        return load_collections(self.settings.collections)

    def _open(self) -> None:
        settings, collections = self.settings, self.collections
        if settings.disabled:
            log.info("veilcount records nothing: %s is set", settings.disabled)
            return
        if not collections or (settings.url is None and self._transport is None):
            raise NotUsable("no aggregator: give url= or VEILCOUNT_URL, and a file of collections")
        if self._transport is None:
            self._look_at_the_address()
        app = next(iter(collections.values())).app
        state = open_state(place_of(settings, app))
        self.reservation = budget_reservation.reserve(
            state, collections.values(), settings.ceiling, settings.daily_ceiling
        )
        self._accepted = self._accept(collections)
        transport = self._transport or HttpTransport(settings.url or "", settings.key, self._now)
        worker = self._employ(state, transport)
        self._decisions = ConsentDecisions(worker, self._accepted, self._now)
        self._decisions.load()
        self._consents[SELF] = self._decisions.resume(key_of(state.root, SELF))
        self._worker = worker  # last: from here on it is usable

    def _look_at_the_address(self) -> None:
        """Refuse one on the way to which the app's key is read; complain where pseudonyms are."""
        why = in_clear(self.settings.url or "", self.settings.key)
        if why and self.settings.key:
            raise NotUsable(why)
        if why:
            self._complain("address", why)

    def _accept(self, collections: Mapping[str, Collection]) -> Mapping[str, Collection]:
        accepted = {}
        for name, collection in collections.items():
            if name in self.reservation.refused:
                self._complain(f"load {name}", self.reservation.refused[name])
            elif collection.model is Model.CENTRAL and not self.settings.trust_curator:
                self._complain(f"load {name}", "true values need Client(trust_curator=True)")
            else:
                accepted[name] = collection
        return accepted

    def _employ(self, state: State, transport: Transport) -> Worker:
        settings = self.settings
        answers = Recorder(
            state,
            self._coins,
            self.reservation.claims,
            0.0 if settings.development else settings.jitter,
            uncapped=settings.development,
        )
        uploader = Uploader(
            state,
            answers,
            transport,
            self._coins,
            self._accepted,
            self._now,
            persons=settings.persons,
            keyed=bool(settings.key),
            test=settings.development or self._coins.predictable,
            log=log.info if settings.development else log.debug,
        )
        return Worker(
            state, answers, uploader, self._clock, self._complain, threaded=self._threaded
        )

    def _open_again(self) -> None:
        """Try to open a state that was out of reach: beside the app, at most so often."""
        now = time.monotonic()
        if now < self._retry_at or not self._threaded:
            return
        self._retry_at = math.inf
        threading.Thread(target=self._reopen, name="veilcount-open", daemon=True).start()

    def _reopen(self) -> None:
        try:
            self._open()
        except Exception as error:  # noqa: BLE001 - a thread of ours: kept for `explain`
            self._fail(error)
        else:
            self._complained.pop("open", None)

    # -- faults --------------------------------------------------------------------------------

    def _fail(self, error: Exception) -> None:
        """Say why the client cannot record. A state may come back; nothing else does."""
        known = isinstance(error, VeilcountError | StateError | ValueError)
        self._complain("open", str(error) if known else type(error).__name__)
        if isinstance(error, StateError):
            self._retry_at = time.monotonic() + RETRY_OPEN

    def _refuse(self, name: str) -> None:
        """Count a record that has nowhere to go, and say why once."""
        if self.settings.disabled or self._closed:
            return
        known = name in self.collections
        why = "see the log at the start" if known else f"the definitions have no [{name}]"
        if self._worker is not None:
            self._worker.answers.losses.add(Loss.REFUSED if known else Loss.UNKNOWN, name)
        else:
            self._unstored.add(Loss.NO_STATE if known else Loss.UNKNOWN, name)
            self._open_again()
        self._complain(f"record {name}", why)
        if self.settings.strict:
            raise UnknownCollection(f"{name}: {why}")

    def _complain(self, about: str, why: str) -> None:
        """Log once for each thing that goes wrong; keep the last word for `explain`."""
        if about not in self._complained:
            log.warning("veilcount, %s: %s", about, why)
        self._complained[about] = why


class Person:
    """One of the many persons of a client, by an id that only the app knows."""

    __slots__ = ("_client", "_id")

    def __init__(self, client: Client, id: str) -> None:  # noqa: A002 - what the app calls it
        """Name a person; nothing is stored yet."""
        self._client = client
        self._id = f"id {id}"

    def record(self, name: str, value: object, /, **segments: object) -> None:
        """Record a value of a collection: microseconds, never blocks, never raises."""
        self._client._record(self._id, name, value, segments)  # noqa: SLF001 - the same room

    @property
    def consented(self) -> bool | None:
        """True, False, or None where the person was not asked yet."""
        return self._client._consented(self._id)  # noqa: SLF001 - the same room

    def consent(self, given: bool) -> None:  # noqa: FBT001 - the one thing it is about
        """Keep the person's answer. False wipes what is still here and stops the sending."""
        self._client._consent(self._id, given=given)  # noqa: SLF001 - the same room

    def unasked(self) -> list[str]:
        """Return the collections that the person's consent does not cover."""
        return self._client._unasked(self._id)  # noqa: SLF001 - the same room

    def forget(self) -> None:
        """Wipe secret, answers and outbox; keep what was spent; ask for the rows to be closed."""
        self._client._forget(self._id)  # noqa: SLF001 - the same room

    def receipt(self) -> Receipt:
        """Return what left and what it cost, for the person."""
        return self._client._receipt(self._id)  # noqa: SLF001 - the same room

    def explain(self, name: str) -> Explanation:
        """Return why nothing of a collection left, or that all is well."""
        return self._client._explain(self._id, name)  # noqa: SLF001 - the same room


def _text(path: str | os.PathLike[str] | None) -> str | None:
    return None if path is None else os.fspath(path)
