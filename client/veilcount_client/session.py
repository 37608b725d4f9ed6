"""The session behind a Client and its Persons: what they share, opened once and closed once.

Whatever goes wrong is logged once, counted, and returned by `explain`; only `strict` raises. Values
appear in none of the three.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Mapping
from typing import Literal

from veilcount_shared import Collection, SystemRandomSource, load_collections
from veilcount_shared.budget_claims import Ceilings
from veilcount_shared.collection import Linkage
from veilcount_shared.errors import UnknownSegment, VeilcountError

from .clock import BoundedClock, SystemClock
from .consent import ConsentDecisions, NoDecisions
from .delivery import aggregator_route
from .delivery.issuance import Issuance
from .delivery.issuer import HttpIssuer
from .delivery.shuffler_route import ShufflerRoute
from .delivery.transport import LeftToAnother, in_clear, malformed, without_password
from .delivery.uploader import Uploader
from .delivery.worker import ClientWorker
from .diagnostics.moved_state import moved_state
from .diagnostics.problems import campaign
from .errors import NotUsable, ProblemLog, UnknownCollection, UnknownValue, log, log_to_stderr
from .options import ClientOptions, Definitions
from .recording.answer_drawing import AnswerDrawer
from .recording.budget_reservation import Reservation, reserve
from .recording.person_id import SELF
from .recording.recorder import RecordCall, Recorder
from .recording.value_check import check_segments, near_miss, value_problem
from .settings import ClientSettings
from .state import ClientState, StateError
from .state.factory import open_state, state_location
from .state.losses import Loss, LossCounter
from .state.memory_outbox import MemoryOutbox, Outboxes

RETRY_OPEN = 30.0  # seconds between two attempts to open a state that could not be reached


class Session:
    """The definitions, the settings and, once the state could be opened, all that records."""

    def __init__(self, options: ClientOptions) -> None:
        """Load the definitions and open the state."""
        self._options = options
        self.collections: Mapping[str, Collection] = {}
        self.reservation = Reservation({}, {}, Ceilings(0, 0))
        self.settings = ClientSettings(strict=bool(options.strict))
        self.is_closed = False
        self.clock = BoundedClock(options.clock or SystemClock())
        self._randomness = options.randomness or SystemRandomSource()
        self.problems = ProblemLog()
        self.own_consent: bool | None = None  # of SELF: read with every record
        self.looks_at_values = False  # strict, or development: likewise
        self.unstored = LossCounter()
        self.worker: ClientWorker | None = None  # until the state is open
        self.consents = self.nobody = NoDecisions()
        self._retry_at = math.inf
        try:
            self.settings = options.read_settings()
            self.looks_at_values = self.settings.strict or self.settings.development
            if self.settings.development:
                log_to_stderr()
            self.collections = self._load(options.collections)
            self._open()
        except Exception as error:
            self._fail(error)
            if self.settings.strict:
                raise

    def record(self, person: str, name: str, value: object, segments: Mapping[str, object]) -> None:
        """Put a value into the worker's queue."""
        name = _text(name)
        collection, worker = self.consents.accepted.get(name), self.worker
        if collection is None or worker is None or self.is_closed:
            self.refuse(name)
            return
        losses = worker.recorder.losses
        try:
            if self.looks_at_values:
                self.check_value(collection, value, segments)
            if person == SELF and self.own_consent is False:
                losses.add(Loss.NO_CONSENT, name)
                self.warn_of_consent(collection, consented=False)
                return
            if isinstance(value, list | set | dict):  # the app may go on to change it
                value = value.copy()
            cell = collection.segment(**segments) if segments or collection.segments else 0
            if not worker.put(RecordCall(person, collection, value, cell, self.clock.now())):
                losses.add(Loss.QUEUE_FULL, name)
        except UnknownValue:  # of a strict client; no log line depends on a value
            raise
        except Exception as error:
            is_segment = isinstance(error, UnknownSegment)
            if is_segment:
                losses.add(Loss.SEGMENT, name)
            message = str(error) if is_segment else type(error).__name__
            self.problems.add(f"record {name}", message)
            if self.settings.strict:
                raise

    def flush(self, timeout: float, until: Literal["delivered", "stored"]) -> bool:
        """Store what was recorded and, until delivered, send it; return whether all of it was."""
        if self.worker is None:
            if why := self.problems.messages.get("open"):
                self.problems.warn_once("flush", f"nothing was recorded: {why}")
            return False
        if not self.worker.store():
            return False
        return until == "stored" or self.worker.deliver(timeout)

    def close(self, timeout: float) -> None:
        """Store everything and stop."""
        if self.worker is None or self.is_closed:
            return
        self.is_closed = True
        self.worker.finish()
        self.worker.close(timeout)

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
        self._check_address()
        place = state_location(settings, next(iter(collections.values())).app)
        state = open_state(place, self.clock.now)
        self.reservation = reserve(
            state, collections.values(), settings.ceiling, settings.daily_ceiling
        )
        route = self._shuffler_route()
        accepted = {
            name: collection
            for name, collection in collections.items()
            if self._is_accepted(collection, route)
        }
        if route.in_clear and any(collection.batch for collection in accepted.values()):
            self.problems.add("shuffler", route.in_clear)
        worker = self._worker(state, accepted, route)
        consents = ConsentDecisions(worker, accepted, collections, self.clock.now)
        consents.load()
        if problem := moved_state(state.moved, accepted.values(), self.clock.now()):
            log.warning("veilcount, state: %s", problem)  # at every start: each forgoes answers
        self.own_consent = consents.resume(consents.key(SELF))
        self.worker, self.consents = worker, consents  # last: from here on both are usable

    def _check_address(self) -> None:
        """Raise NotUsable without an address, or if the app's key would travel unencrypted."""
        if not isinstance(self._options.transport, LeftToAnother | None):
            return
        if self.settings.relay is not None:
            if problem := malformed(self.settings.relay, "relay"):
                raise NotUsable(problem)
            return
        if self.settings.url is None:
            if all(collection.batch for collection in self.collections.values()):
                return  # nothing goes to an aggregator from here
            raise NotUsable("no aggregator: pass url= or set VEILCOUNT_URL")
        if problem := malformed(self.settings.url):
            raise NotUsable(problem)
        problem = in_clear(self.settings.url, self.settings.key)
        if problem and self.settings.key:
            raise NotUsable(problem)
        if problem:
            self.problems.add("address", problem)

    def _is_accepted(self, collection: Collection, route: ShufflerRoute) -> bool:
        """Whether the reservation and the settings allow a collection."""
        problem = self.reservation.refused.get(collection.name)
        if not problem and collection.trust.reveals and not self.settings.trust_curator:
            problem = "true values need Client(trust_curator=True)"
        if not problem and collection.linkage is Linkage.TOKEN:
            problem = self._token_problem()
        if not problem and collection.batch is not None:
            problem = route.problem
        if problem:
            self.problems.add(f"load {collection.name}", problem)
        elif self.settings.development:
            self._warn_of_dates(collection, self.clock.now())
        return not problem

    @property
    def _key_file(self) -> bytes | None:
        """The content of the file of relay keys, which an app may pass in place of a path."""
        keys = self._options.relay_keys
        return keys if isinstance(keys, bytes) else None

    def _shuffler_route(self) -> ShufflerRoute:
        """Return the way of reports that have batches, usable or not."""
        shuffler = self._options.shuffler
        return ShufflerRoute(
            self.settings,
            self.is_test,
            None if isinstance(shuffler, str) else shuffler,
            self._key_file,
        )

    def _warn_of_end(self, end: str) -> None:
        fix = "ship a newer release with the app, or another address"
        self.problems.warn_once("aggregator", f"{self._host}: {end}: {fix}")

    @property
    def _host(self) -> str:
        """The aggregator, as the log calls it."""
        return without_password(self.settings.url or "the aggregator")

    def _token_problem(self) -> str:
        """Return why no tokens can be had."""
        if self.settings.development or self.settings.persons:
            return 'tokens are of one person and account: develop with linkage = "none"'
        if isinstance(self._options.issuer or self.settings.issuer, str | None):
            url = self.settings.issuer
            if url is None or self._options.account is None:
                return "tokens need Client(issuer=URL, account=TOKEN): it says whose they are"
            return malformed(url, "issuer") or in_clear(url, "account")
        return ""

    def _issuance(self, state: ClientState, accepted: Mapping[str, Collection]) -> Issuance | None:
        if not any(collection.linkage is Linkage.TOKEN for collection in accepted.values()):
            return None
        url, issuer = self.settings.issuer, self._options.issuer
        if url is not None and self._options.account is not None:
            issuer = HttpIssuer(url, self._options.account, self.clock.now)
        return Issuance(
            state,
            None if isinstance(issuer, str) else issuer,
            accepted,
            self._randomness,
            self.clock.now,
            self.problems.add,
        )

    def _worker(
        self, state: ClientState, accepted: Mapping[str, Collection], route: ShufflerRoute
    ) -> ClientWorker:
        settings = self.settings
        transport = self._options.transport or aggregator_route.connect(
            settings, self._key_file, self.clock.now, self._warn_of_end
        )
        claims, jitter = self.reservation.claims, 0.0 if settings.development else settings.jitter
        in_batches = {name: collection for name, collection in accepted.items() if collection.batch}
        losses = LossCounter()
        outboxes = Outboxes(state, MemoryOutbox(losses), jitter)
        drawer = AnswerDrawer(
            state,
            self._randomness,
            claims,
            jitter,
            losses,
            outboxes.memory,
            uncapped=settings.development,
            sealing=route.sealing(state, self.clock.now) if in_batches else None,
        )
        recorder = Recorder(drawer, self._warn_of_dates, self.warn_of_consent)
        uploader = Uploader(
            state,
            outboxes,
            recorder,
            transport,
            self._randomness,
            accepted,
            self.clock.now,
            persons=settings.persons,
            keyed=bool(settings.key),
            test=self.is_test,
            host=self._host,
            log=log.info if settings.development else log.debug,
            issuance=self._issuance(state, accepted),
            shuffler=route.open(state, in_batches, self._randomness, self.clock.now)
            if in_batches
            else None,
        )
        return ClientWorker(
            state,
            recorder,
            uploader,
            self.clock,
            self.problems.add,
            threaded=self._options.threaded,
        )

    def _open_again(self) -> None:
        """Try in a thread to open a state that could not be reached, every RETRY_OPEN at most."""
        now = time.monotonic()
        if now < self._retry_at or not self._options.threaded:
            return
        self._retry_at = math.inf
        threading.Thread(target=self._reopen, name="veilcount-open", daemon=True).start()

    def _reopen(self) -> None:
        try:
            self._open()
        except Exception as error:  # noqa: BLE001 - a thread of ours: kept for `explain`
            self._fail(error)
        else:
            self.problems.clear("open")

    # -- values and dates, for the developer ---------------------------------------------------

    @property
    def is_test(self) -> bool:
        """Whether what is recorded is a developer's own, and no person's."""
        return self.settings.development or self._randomness.predictable

    def check_value(
        self, collection: Collection, value: object, segments: Mapping[str, object]
    ) -> None:
        """Warn once of a value that the definition does not have; strict raises UnknownValue.

        UnknownSegment is raised in any case: `record` counts it.
        """
        problem = value_problem(collection, value, closest=self.is_test)
        if problem and self.settings.strict:
            raise UnknownValue(f"{collection.name}: {problem}")
        kind = f"value {collection.name}"
        if problem is None and self.settings.development and kind not in self.problems.messages:
            problem = near_miss(collection, value)
        if problem:
            self.problems.add(kind, problem)
        check_segments(collection, segments)

    def warn_of_consent(self, collection: Collection, consented: bool | None) -> None:  # noqa: FBT001
        """Log once for each collection that records are dropped for want of a consent.

        A developer is warned of each. In production a warning is for what came after the consent,
        and is lost without a word of the app; that somebody has not decided yet is no mistake.
        """
        why, level = {
            None: ("the person has not decided", logging.INFO),
            True: ("it was added or changed after the consent", logging.WARNING),
            False: ("the person said no", logging.DEBUG),
        }[consented]
        fix = 'if client.must_ask: client.consent(ask(client.unasked()), only="new")'
        self.problems.warn_once(
            f"consent {collection.name}",
            f"what is recorded is dropped: {why}: {fix}",
            logging.WARNING if self.settings.development else level,
        )

    def _warn_of_dates(self, collection: Collection, at: float) -> None:
        if problem := campaign(collection, at):
            self.problems.warn_once(f"campaign {collection.name}", problem)

    # -- faults --------------------------------------------------------------------------------

    def _fail(self, error: Exception) -> None:
        """Keep why the client cannot record. Only a state is tried again."""
        is_own_error = isinstance(error, VeilcountError | StateError | ValueError)
        self.problems.add("open", str(error) if is_own_error else type(error).__name__)
        if isinstance(error, StateError):
            self._retry_at = time.monotonic() + RETRY_OPEN

    def refuse(self, name: str) -> None:
        """Count a record of a collection that is not accepted, or that no state can take."""
        if self.settings.disabled or self.is_closed:
            return
        is_loaded = name in self.collections
        why = "see the log at the start" if is_loaded else f"the definitions have no [{name}]"
        if self.worker is not None:
            loss = Loss.REFUSED if is_loaded else Loss.UNKNOWN
            self.worker.recorder.losses.add(loss, name)
        else:
            self.unstored.add(Loss.NO_STATE if is_loaded else Loss.UNKNOWN, name)
            self._open_again()
        self.problems.warn_once(f"record {name}", why)
        if self.settings.strict:
            raise UnknownCollection(f"{name}: {why}")


def _text(name: object) -> str:
    """Return a name as text, whatever the app gave for one."""
    try:
        return str(name)
    except Exception:  # noqa: BLE001 - its own code may raise anything: it is unknown
        return type(name).__name__
