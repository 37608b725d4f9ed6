"""Client and Person: the public API.

`record` takes microseconds, never blocks and never raises into the app: whatever goes wrong is
logged once, counted, and returned by `explain`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from fractions import Fraction
from typing import Literal, Self

from veilcount_shared import Collection, RandomSource
from veilcount_shared.errors import UnknownSegment

from .clock import Clock
from .delivery.issuer import Account, TokenIssuer
from .delivery.transport import Transport
from .diagnostics.explain import Explanation, explain
from .errors import NotUsable, UnknownValue
from .recording.budget_reservation import Reservation
from .recording.receipt import Receipt, ReportExample, example, receipt
from .recording.recorder import RecordCall
from .session import SELF, Definitions, Session
from .settings import ClientSettings
from .state import StateError
from .state.losses import Loss


class Respondent:
    """One person's records, consent and rights: what Client and Person have in common."""

    __slots__ = ("_person", "_session")

    def __init__(self, session: Session, person: str) -> None:
        """Act for a person; nothing is stored yet."""
        self._session, self._person = session, person

    def record(self, name: str, value: object, /, **segments: object) -> None:
        """Record a value of a collection: microseconds, never blocks, never raises."""
        session, name = self._session, str(name)
        consents = session.consents
        collection = None if consents is None else consents.accepted.get(name)
        if consents is None or collection is None or session.is_closed:
            session.refuse(name)
            return
        worker, losses = consents.worker, consents.worker.recorder.losses
        try:
            if session.looks_at_values:
                session.check_value(collection, value)
            if self._person == SELF and session.own_consent is not True:
                losses.add(Loss.NO_CONSENT, name)
                return
            cell = collection.segment(**segments) if segments or collection.segments else 0
            call = RecordCall(self._person, collection, value, cell, session.clock.now())
            if not worker.put(call):
                losses.add(Loss.QUEUE_FULL, name)
        except UnknownValue:  # of a strict client; no log line depends on a value
            raise
        except Exception as error:
            is_segment = isinstance(error, UnknownSegment)
            if is_segment:
                losses.add(Loss.SEGMENT, name)
            message = str(error) if is_segment else type(error).__name__
            session.problems.add(f"record {name}", message)
            if session.settings.strict:
                raise

    @property
    def consented(self) -> bool | None:
        """True, False, or None: not decided yet, or the state cannot be reached."""
        session = self._session
        if session.consents is None:
            return None
        if self._person == SELF:
            return session.own_consent
        try:
            return session.consents.consented(session.key(self._person))
        except StateError as error:
            session.problems.add("state", str(error))
            return None

    def consent(self, granted: bool) -> None:  # noqa: FBT001 - the one argument
        """Store the person's decision. False wipes what is still here and stops the sending."""
        session = self._session
        if session.consents is None:
            return
        try:
            session.consents.consent(session.key(self._person), granted=granted)
        except StateError as error:
            session.problems.add("state", str(error))
            if session.settings.strict:
                raise
            return
        if self._person == SELF:
            session.own_consent = granted

    def unasked(self) -> list[str]:
        """Return the collections that the person's consent does not cover."""
        session = self._session
        if session.consents is None:
            return []
        return session.consents.unasked(session.key(self._person))

    def forget(self) -> None:
        """Wipe secret, answers and outbox; keep what was spent; have the rows closed in time."""
        session = self._session
        if session.consents is None:
            return
        session.consents.forget(session.key(self._person))
        if self._person == SELF:
            session.own_consent = None

    def receipt(self) -> Receipt:
        """Return what left this device and what it cost, for the person.

        It never raises: a receipt that cannot be made is empty, and its `problem` says why.
        """
        session = self._session
        if session.consents is None:
            problems = [session.settings.disabled and f"{session.settings.disabled} is set"]
            problems += session.problems.messages.values()
            return Receipt.empty("; ".join(filter(None, problems)) or "the client is not usable")
        try:
            state, key = session.consents.worker.state, session.key(self._person)
            return receipt(state, key, session.collections, session.reservation, session.settings)
        except Exception as error:  # noqa: BLE001 - a page of the app shows it: whatever it is
            known = isinstance(error, StateError)
            return Receipt.empty(str(error) if known else type(error).__name__)

    def explain(self, name: str) -> Explanation:
        """Return why nothing of a collection left, or that all is well."""
        session = self._session
        return explain(
            name,
            settings=session.settings,
            collections=session.collections,
            reservation=session.reservation,
            logged=session.problems.of(name),
            worker=session.worker,
            key=None if session.consents is None else session.key(self._person),
            now=session.clock.now(),
            unstored=session.unstored,
        )


class Person(Respondent):
    """One of the many persons of a client, by an id that only the app knows."""

    __slots__ = ()


class Client(Respondent):
    """Records answers of one person, or of many (`persons=True`), and sends them randomized."""

    def __init__(
        self,
        url: str | None = None,
        *,
        collections: Definitions | None = None,
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
        relay: str | None = None,
        relay_keys: bytes | str | os.PathLike[str] | None = None,
        issuer: str | TokenIssuer | None = None,
        account: Account | None = None,
        transport: Transport | None = None,
        clock: Clock | None = None,
        randomness: RandomSource | None = None,
        threaded: bool = True,
    ) -> None:
        """Load the definitions and open the state. An argument left out comes from VEILCOUNT_*."""
        session = Session(
            url=url,
            collections=collections,
            state_dir=None if state_dir is None else os.fspath(state_dir),
            state=state,
            key=key,
            ceiling=ceiling,
            daily_ceiling=daily_ceiling,
            persons=persons,
            trust_curator=trust_curator,
            development=development,
            strict=strict,
            jitter=jitter,
            relay=relay,
            relay_keys=relay_keys,
            issuer=issuer,
            account=account,
            transport=transport,
            clock=clock,
            randomness=randomness,
            threaded=threaded,
        )
        super().__init__(session, SELF)

    @property
    def settings(self) -> ClientSettings:
        """The settings in use: arguments, else VEILCOUNT_* variables, else defaults."""
        return self._session.settings

    @property
    def collections(self) -> Mapping[str, Collection]:
        """The loaded definitions, by name."""
        return self._session.collections

    @property
    def reservation(self) -> Reservation:
        """Which collections fit under the ceilings, and which were refused."""
        return self._session.reservation

    def person(self, id: object, /) -> Person:  # noqa: A002 - the app's own word
        """Return one of the many persons that this client acts for; the id is never stored."""
        if not self.settings.persons:
            raise NotUsable("person() needs Client(persons=True)")
        return Person(self._session, f"id {id}")

    def example(self, name: str) -> ReportExample:
        """Return the format of a report and how it is drawn: of a fixed dummy, never a draw."""
        return example(self.collections[name])

    def flush(
        self, timeout: float = 10.0, until: Literal["delivered", "stored"] = "delivered"
    ) -> bool:
        """Store what was recorded and, by default, send it now; return whether all of it was.

        Hidden presence is not hurried: it leaves at its drawn instants only.
        """
        return self._session.flush(timeout, until)

    def close(self, timeout: float = 2.0) -> None:
        """Store everything and stop. What is stored leaves with the next start."""
        self._session.close(timeout)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
