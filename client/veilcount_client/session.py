"""The session behind a Client and its Persons: every call of theirs, for one person's id.

Whatever goes wrong is logged once, counted, and returned by `explain`; only `strict` raises. Values
appear in none of the three.
"""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Mapping
from fractions import Fraction
from typing import Literal

from veilcount_shared import Collection, RandomSource, SystemRandomSource, load_collections
from veilcount_shared.errors import UnknownSegment, VeilcountError

from .clock import BoundedClock, Clock, SystemClock
from .delivery.transport import Transport
from .delivery.worker import ClientWorker
from .diagnostics.explain import Explanation, explain
from .errors import NotUsable, UnknownCollection
from .recording.budget_reservation import Ceilings, Reservation, reserve
from .recording.receipt import Receipt, receipt
from .recording.recorder import RecordCall
from .runtime import ProblemLog, Runtime, RuntimeFactory, log
from .settings import ClientSettings, read_settings
from .state import StateError
from .state.factory import open_state, state_location
from .state.key_derivation import person_key
from .state.losses import Loss, LossCounter

SELF = ""  # the one person of a client without persons
RETRY_OPEN = 30.0  # seconds between two attempts to open a state that could not be reached

Definitions = str | os.PathLike[str] | Mapping[str, Collection]


class Session:
    """Records, consents and explains for any person of a client."""

    def __init__(
        self,
        *,
        collections: Definitions | None,
        transport: Transport | None,
        clock: Clock | None,
        randomness: RandomSource | None,
        threaded: bool,
        strict: bool | None,
        **options: str | Fraction | float | None,
    ) -> None:
        """Load the definitions and open the state; `options` are the other settings."""
        self.collections: Mapping[str, Collection] = {}
        self.reservation = Reservation({}, {}, Ceilings(0, 0))
        self.settings = ClientSettings(strict=bool(strict))
        self.is_closed = False
        self._clock = BoundedClock(clock or SystemClock())
        self._threaded = threaded
        self._problems = ProblemLog()
        self._own_consent: bool | None = None  # of SELF: read with every record
        self._unstored = LossCounter()
        self._runtime: Runtime | None = None
        self._retry_at = math.inf
        try:
            definitions = None if isinstance(collections, Mapping) else collections
            self.settings = read_settings(
                collections=None if definitions is None else os.fspath(definitions),
                strict=strict,
                **options,
            )
            self._factory = RuntimeFactory(
                self.settings,
                self._clock,
                randomness or SystemRandomSource(),
                transport,
                threaded,
                self._problems,
            )
            self.collections = self._load(collections)
            self._open()
        except Exception as error:
            self._fail(error)
            if self.settings.strict:
                raise

    @property
    def worker(self) -> ClientWorker | None:
        """The worker, once the state is open."""
        return None if self._runtime is None else self._runtime.worker

    # -- one person ----------------------------------------------------------------------------

    def record(self, person: str, name: str, value: object, segments: dict[str, object]) -> None:
        """Queue a value; count it as lost where it cannot be recorded."""
        runtime = self._runtime
        collection = None if runtime is None else runtime.accepted.get(str(name))
        if runtime is None or collection is None or self.is_closed:
            self._refuse(str(name))
            return
        worker = runtime.worker
        try:
            if person == SELF and self._own_consent is not True:
                worker.recorder.losses.add(Loss.NO_CONSENT, name)
                return
            cell = collection.segment(**segments) if segments or collection.segments else 0
            if not worker.put(RecordCall(person, collection, value, cell, self._clock.now())):
                worker.recorder.losses.add(Loss.QUEUE_FULL, name)
        except Exception as error:
            is_segment = isinstance(error, UnknownSegment)
            if is_segment:
                worker.recorder.losses.add(Loss.SEGMENT, name)
            self._problems.add(f"record {name}", str(error) if is_segment else type(error).__name__)
            if self.settings.strict:
                raise

    def consented(self, person: str) -> bool | None:
        """Return True, False, or None: not decided yet, or the state cannot be reached."""
        if self._runtime is None:
            return None
        if person == SELF:
            return self._own_consent
        try:
            return self._runtime.consents.consented(self.key(person))
        except StateError as error:
            self._problems.add("state", str(error))
            return None

    def consent(self, person: str, *, granted: bool) -> None:
        """Store the person's decision."""
        if self._runtime is None:
            return
        try:
            self._runtime.consents.consent(self.key(person), granted=granted)
        except StateError as error:
            self._problems.add("state", str(error))
            if self.settings.strict:
                raise
            return
        if person == SELF:
            self._own_consent = granted

    def unasked(self, person: str) -> list[str]:
        """Return the collections that the person's consent does not cover."""
        return [] if self._runtime is None else self._runtime.consents.unasked(self.key(person))

    def forget(self, person: str) -> None:
        """Wipe what the state has of a person, but what was spent."""
        if self._runtime is None:
            return
        self._runtime.consents.forget(self.key(person))
        if person == SELF:
            self._own_consent = None

    def receipt(self, person: str) -> Receipt:
        """Return what a person's state says; NotUsable if there is no state."""
        if self._runtime is None:
            problems = "; ".join(self._problems.messages.values())
            raise NotUsable(problems or "the client is not usable")
        state = self._runtime.worker.state
        return receipt(state, self.key(person), self.collections, self.reservation)

    def explain(self, person: str, name: str) -> Explanation:
        """Return why nothing of a collection left."""
        return explain(
            name,
            settings=self.settings,
            collections=self.collections,
            reservation=self.reservation,
            logged=self._problems.messages,
            worker=self.worker,
            key=None if self._runtime is None else self.key(person),
            now=self._clock.now(),
            unstored=self._unstored,
        )

    def key(self, person: str) -> bytes:
        """Return the key of a person in the state, which must be open."""
        assert self._runtime is not None, "callers look first"  # noqa: S101
        return person_key(self._runtime.worker.state.root, person)

    # -- all persons ---------------------------------------------------------------------------

    def flush(self, timeout: float, until: Literal["delivered", "stored"]) -> bool:
        """Store what was recorded and, until delivered, send it; return whether all of it was."""
        worker = self.worker
        if worker is None or not worker.store():
            return False
        return until == "stored" or worker.deliver(timeout)

    def close(self, timeout: float) -> None:
        """Store everything and stop."""
        if self._runtime is None or self.is_closed:
            return
        self.is_closed = True
        self._runtime.worker.finish()
        self._runtime.worker.close(timeout)

    # -- opening -------------------------------------------------------------------------------

    def _load(self, definitions: Definitions | None) -> Mapping[str, Collection]:
        if isinstance(definitions, Mapping):
            return dict(definitions)
        if self.settings.collections is None:
            raise NotUsable("no definitions: pass collections= or set VEILCOUNT_COLLECTIONS")
        return load_collections(self.settings.collections)

    def _open(self) -> None:
        settings, collections = self.settings, self.collections
        if settings.disabled:
            log.info("veilcount records nothing: %s is set", settings.disabled)
            return
        if not collections:
            raise NotUsable("the definitions are empty: add a table for each question")
        self._factory.check_address()
        state = open_state(state_location(settings, next(iter(collections.values())).app))
        self.reservation = reserve(
            state, collections.values(), settings.ceiling, settings.daily_ceiling
        )
        runtime = self._factory.build(state, collections, self.reservation)
        self._own_consent = runtime.consents.resume(person_key(state.root, SELF))
        self._runtime = runtime  # last: from here on it is usable

    def _open_again(self) -> None:
        """Try in a thread to open a state that could not be reached, every RETRY_OPEN at most."""
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
            self._problems.clear("open")

    # -- faults --------------------------------------------------------------------------------

    def _fail(self, error: Exception) -> None:
        """Keep why the client cannot record. Only a state is tried again."""
        known = isinstance(error, VeilcountError | StateError | ValueError)
        self._problems.add("open", str(error) if known else type(error).__name__)
        if isinstance(error, StateError):
            self._retry_at = time.monotonic() + RETRY_OPEN

    def _refuse(self, name: str) -> None:
        """Count a record of a collection that is not accepted, or that no state can take."""
        if self.settings.disabled or self.is_closed:
            return
        known = name in self.collections
        why = "see the log at the start" if known else f"the definitions have no [{name}]"
        if self._runtime is not None:
            loss = Loss.REFUSED if known else Loss.UNKNOWN
            self._runtime.worker.recorder.losses.add(loss, name)
        else:
            self._unstored.add(Loss.NO_STATE if known else Loss.UNKNOWN, name)
            self._open_again()
        self._problems.add(f"record {name}", why)
        if self.settings.strict:
            raise UnknownCollection(f"{name}: {why}")
