"""Client and Person: the public API.

`record` takes microseconds, never blocks and never raises into the app: whatever goes wrong is
logged once, counted, and returned by `explain`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Self, TypeVar

from .awaiting import awaited, in_thread
from .clock import instant
from .errors import NotAnAnswer, NotAPerson, NotUsable, StateError
from .recording.person_id import SELF, person_name

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping
    from datetime import datetime
    from fractions import Fraction

    from veilcount_shared import Collection, RandomSource

    from .clock import Clock
    from .consent import NoDecisions, Only
    from .delivery.issuer import Account, TokenIssuer
    from .delivery.shuffler import EnvelopeTransport
    from .delivery.transport import Transport
    from .diagnostics.explain import Explanation
    from .options import Definitions
    from .recording.budget_reservation import Reservation
    from .recording.known_definitions import RowName
    from .recording.receipt import Receipt, ReportExample
    from .session import Session
    from .settings import ClientSettings

Answer = TypeVar("Answer")


class Respondent:
    """One person's records, consent and rights: what Client and Person have in common."""

    __slots__ = ("_person", "_session")

    def __init__(self, session: Session, person: str | None) -> None:
        """Act for a person, or for nobody; nothing is stored yet."""
        self._session, self._person = session, person

    def record(self, name: str, value: object, /, **segments: object) -> None:
        """Record a value of a collection: microseconds, never blocks, never raises."""
        if self._person is None:
            self._refuse("record")
        else:
            self._session.record(self._person, name, value, segments)

    # -- consent -------------------------------------------------------------------------------

    @property
    def must_ask(self) -> bool:
        """Whether the app has to ask the person now; `unasked` names what about.

        False under a kill switch or without a state, and after a no, whatever is added later.
        """
        return bool(self._read("must_ask", lambda consents, key: consents.unasked(key)))

    @property
    def consented(self) -> bool | None:
        """True, False, or None: not decided yet, or the state cannot be reached."""
        consented = self._read("consented", lambda consents, key: consents.consented(key))
        if self._person == SELF:  # another process of the app may have asked
            self._session.own_consent = consented
        return consented

    def unasked(self) -> list[str]:
        """Return the collections that the person has neither agreed to nor declined."""
        return self._read("unasked", lambda consents, key: consents.unasked(key))

    def consent(self, granted: bool, *, only: Only = None) -> None:  # noqa: FBT001 - the decision
        """Store the person's decision, `True` or `False`, on everything that is loaded.

        `only="new"`: on what was not decided yet, and all else stays as it is; while nothing is
        decided, on everything. `only=[names]`: on these questions. A no wipes what is still here
        and stops the sending; by name it is kept for later forms of the question too, and lifted
        by a yes to its name alone.
        """
        from .consent import check_answer  # noqa: PLC0415 - likewise: see Client.__init__

        session, consents = self._session, self._decisions("consent")
        try:
            check_answer(granted)
            key = consents.key(self._person)
            if self._person == SELF and granted is False and only is None:
                session.own_consent = False  # whether or not it can be stored now
            consents.consent(key, granted=granted, only=only)
            if self._person == SELF:
                session.own_consent = consents.consented(key)
        except (NotAnAnswer, StateError) as error:
            is_state = isinstance(error, StateError)
            session.problems.add("state" if is_state else "consent", str(error))
            if session.settings.strict or (session.is_test and not is_state):
                raise

    def rows(self) -> list[RowName]:
        """Return the names of the rows that an operator can close at the aggregator.

        Save them before `forget`: afterwards nobody can find the rows. With `linkage` none or
        token no row takes another report, and there is nothing to close.
        """
        return self._read("rows", lambda consents, key: consents.rows(key))

    def forget(self) -> None:
        """Wipe secret, answers, outbox and decisions; keep what was spent. Nothing is sent.

        Save `rows()` first if you want them closed at the aggregator.
        """
        consents = self._decisions("forget")
        consents.forget(consents.key(self._person))
        if self._person == SELF:
            self._session.own_consent = None

    def objecting(self) -> Respondent:
        """Return who a request is of that objects for the person: `Sec-GPC: 1` or `DNT: 1`.

        The first such request is a no, to everything; what the person decides afterwards counts,
        whatever their browser goes on to send. Nobody, while that cannot be stored.
        """
        consents = self._decisions("objecting")
        key = consents.key(self._person)
        try:
            consents.object_once(key)
        except StateError as error:
            self._session.problems.add("state", str(error))
            return Respondent(self._session, None)
        if self._person == SELF:
            self._session.own_consent = consents.consented(key)
        return self

    def _decisions(self, call: str) -> NoDecisions:
        """Return where the person's decisions are kept."""
        if self._person is None:
            self._refuse(call)
            return self._session.nobody
        return self._session.consents

    def _refuse(self, call: str) -> None:
        """Do nothing: this is nobody, which was logged when it was made."""

    def _read(self, call: str, read: Callable[[NoDecisions, bytes], Answer]) -> Answer:
        """Return what the state says of the person, or what holds without one or the other."""
        consents = self._decisions(call)
        try:
            return read(consents, consents.key(self._person))
        except StateError as error:
            self._session.problems.add("state", str(error))
            return read(self._session.nobody, b"")

    # -- what is shown -------------------------------------------------------------------------

    def receipt(self, language: str = "") -> Receipt:
        """Return what left this device and what it cost, for the person.

        `language` chooses among the texts of the definitions.
        It never raises: a receipt that cannot be made is empty, and its `problem` says why.
        """
        from .recording.receipt import Receipt, receipt  # noqa: PLC0415 - few apps show one

        session, consents = self._session, self._decisions("receipt")
        if session.worker is None or self._person is None:
            problems = [session.settings.disabled and f"{session.settings.disabled} is set"]
            problems += session.problems.messages.values()
            return Receipt.empty("; ".join(filter(None, problems)) or "the client is not usable")
        try:
            recorder, key = session.worker.recorder, consents.key(self._person)
            return receipt(
                recorder, key, session.collections, session.reservation, session.settings, language
            )
        except Exception as error:  # noqa: BLE001 - a page of the app shows it: whatever it is
            is_own_error = isinstance(error, StateError)
            return Receipt.empty(str(error) if is_own_error else type(error).__name__)

    def explain(self, name: str) -> Explanation:
        """Return why nothing of a collection left, or that all is well."""
        from .diagnostics.explain import explain  # noqa: PLC0415 - of a developer at work

        session, consents = self._session, self._decisions("explain")
        return explain(
            name,
            settings=session.settings,
            collections=session.collections,
            logged=session.problems.of(name),
            worker=session.worker,
            key=None if self._person is None else consents.key(self._person),
            now=session.clock.now(),
            unstored=session.unstored,
        )

    # -- for an event loop ---------------------------------------------------------------------

    async def aconsented(self) -> bool | None:
        """Return `consented`."""
        return await in_thread(lambda: self.consented)

    aunasked = awaited(unasked)
    aconsent = awaited(consent, decides=True)
    aobjecting = awaited(objecting, decides=True)
    arows = awaited(rows)
    aforget = awaited(forget, decides=True)
    areceipt = awaited(receipt)
    aexplain = awaited(explain)


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
        shuffler: str | EnvelopeTransport | None = None,
        issuer: str | TokenIssuer | None = None,
        account: Account | None = None,
        transport: Transport | None = None,
        clock: Clock | None = None,
        randomness: RandomSource | None = None,
        threaded: bool = True,
    ) -> None:
        """Load the definitions and open the state. An argument left out comes from VEILCOUNT_*."""
        # Not with the module, which an app imports whether or not it makes a client: this is most
        # of what the library consists of.
        from .options import ClientOptions  # noqa: PLC0415
        from .session import Session  # noqa: PLC0415

        session = Session(ClientOptions.from_arguments(locals()))
        super().__init__(session, None if session.settings.persons else SELF)

    def _refuse(self, call: str) -> None:
        """Name the mistake: the client itself is no person where it acts for many."""
        if self.settings.disabled:
            return
        problem = (
            f"{call} on the client itself would take all users for one person: use"
            f" client.person(id).{call}"
        )
        self._session.problems.add(f"client.{call}", problem)
        if self._session.settings.strict:
            raise NotUsable(problem)

    @property
    def settings(self) -> ClientSettings:
        """The settings in use: arguments, else VEILCOUNT_* variables, else defaults."""
        return self._session.settings

    @property
    def state_moved(self) -> datetime | None:
        """When the state was last found to be a copy, restored, or new in place of a damaged one.

        Periods that began before are not answered. None: it never was, or there is no state.
        """
        worker = self._session.worker
        moved = worker.state.moved if worker else ()
        return instant(max(moved)) if moved else None

    @property
    def collections(self) -> Mapping[str, Collection]:
        """The loaded definitions, by name."""
        return self._session.collections

    @property
    def reservation(self) -> Reservation:
        """Which collections fit under the ceilings, and which were refused."""
        return self._session.reservation

    def person(self, id: object, /) -> Person:  # noqa: A002 - the app's own word
        """Return one of the many persons that this client acts for; the id is never stored.

        A non-empty `str`, an `int`, `bytes` or a `UUID`, in any spelling of one id. Anything else
        is nobody: a person that records nothing and need not be asked.
        """
        if not self.settings.persons:
            raise NotUsable("person() needs Client(persons=True)")
        try:
            return Person(self._session, f"id {person_name(id)}")
        except NotAPerson as error:
            self._session.problems.add("person", str(error))
            if self.settings.strict:
                raise
            return Person(self._session, None)

    def example(self, name: str) -> ReportExample:
        """Return the format of a report and how it is drawn: of a fixed dummy, never a draw."""
        from .recording.receipt import example  # noqa: PLC0415 - likewise

        return example(self.collections[name])

    def flush(
        self, timeout: float = 10.0, until: Literal["delivered", "stored"] = "delivered"
    ) -> bool:
        """Store what was recorded and, by default, send it now; return whether all of it was.

        Hidden presence is not hurried: it leaves at its drawn instants only. Neither is what
        travels by shuffler, and its reports are not waited for.
        """
        return self._session.flush(timeout, until)

    def close(self, timeout: float = 2.0) -> None:
        """Store everything and stop. What is stored leaves with the next start."""
        self._session.close(timeout)

    aflush = awaited(flush)
    aclose = awaited(close, decides=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()
