"""Client and Person: the public API.

`record` takes microseconds, never blocks and never raises into the app: whatever goes wrong is
logged once, counted, and returned by `explain`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from fractions import Fraction
from types import TracebackType
from typing import Literal, Self

from veilcount_shared import Collection, RandomSource

from .clock import Clock
from .delivery.transport import Transport
from .diagnostics.explain import Explanation
from .errors import NotUsable
from .recording.budget_reservation import Reservation
from .recording.receipt import Receipt, ReportExample, example
from .session import SELF, Definitions, Session
from .settings import ClientSettings


class Respondent:
    """One person's records, consent and rights: what Client and Person have in common."""

    __slots__ = ("_person", "_session")

    def __init__(self, session: Session, person: str) -> None:
        """Act for a person; nothing is stored yet."""
        self._session, self._person = session, person

    def record(self, name: str, value: object, /, **segments: object) -> None:
        """Record a value of a collection: microseconds, never blocks, never raises."""
        self._session.record(self._person, name, value, segments)

    @property
    def consented(self) -> bool | None:
        """True, False, or None before the person has decided."""
        return self._session.consented(self._person)

    def consent(self, granted: bool) -> None:  # noqa: FBT001 - the one argument
        """Store the person's decision. False wipes what is still here and stops the sending."""
        self._session.consent(self._person, granted=granted)

    def unasked(self) -> list[str]:
        """Return the collections that the person's consent does not cover."""
        return self._session.unasked(self._person)

    def forget(self) -> None:
        """Wipe secret, answers and outbox; keep what was spent; have the rows closed in time."""
        self._session.forget(self._person)

    def receipt(self) -> Receipt:
        """Return what left this device and what it cost, for the person."""
        return self._session.receipt(self._person)

    def explain(self, name: str) -> Explanation:
        """Return why nothing of a collection left, or that all is well."""
        return self._session.explain(self._person, name)


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

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
