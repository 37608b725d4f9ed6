"""The interface of a state, which SQLite and Redis implement. The same tests run on both.

The promise that everything rests on: `commit` charges the ledger, freezes the answer and stores the
randomized report in one durable step, or does none of it. A report that is not in the outbox cannot
leave, and one that is there is never drawn again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple, Protocol

from veilcount_shared.report import Report

from .losses import Loss

KEY_BYTES = 16
KEPT = 64  # finished reports of one person that stay for the receipt
PUT_OFF = 2 * 3600.0  # seconds after its earliest instant from which a report's time was put off
ROW_CLOSED = 0xFFFF  # in place of a number of answers: the aggregator has closed the row


@dataclass(frozen=True, slots=True)
class Coverage:
    """Since when a person's consent covers a definition: kept for good, like the person's root.

    Periods, tokens and absences count from here, whatever is withdrawn or forgotten meanwhile.
    """

    since: float  # when it was first covered
    resumed: float = 0.0  # periods that began before this instant are not answered any more
    is_current: bool = True  # whether it is covered now
    round: int = 0  # how often it was withdrawn: what was recorded in an earlier one is dropped


@dataclass(frozen=True, slots=True)
class PersonState:
    """Who a ledger belongs to: a key made from the id, which itself is never stored."""

    key: bytes
    secret: bytes  # of answers, pseudonyms and slots: another one after `forget`
    root: bytes = b""  # seeds cohort, pairing and periods; never rotated
    consented: bool | None = None
    coverage: Mapping[str, Coverage] = field(default_factory=dict)  # by fingerprint
    declined: frozenset[str] = frozenset()  # lineages that the person said no to by name
    salt: bytes = b""  # what the secret is made from
    barred: float = 0.0  # when the state was last copied, restored or damaged

    @property
    def covered(self) -> frozenset[str]:
        """The fingerprints that the consent covers."""
        return frozenset(name for name, covered in self.coverage.items() if covered.is_current)


class Resumption(NamedTuple):
    """The instant that a definition's coverage is resumed at; 0: earlier periods count as well."""

    if_new: float = 0.0  # the definition was never covered
    if_returning: float = 0.0  # it was, and then was not


@dataclass(frozen=True, slots=True)
class ConsentDecision:
    """What a person's decision changes: on everything, or on some collections.

    It says what changes, not what is to be: of two processes that decide at once, neither undoes
    what the other has stored.
    """

    at: float
    consented: bool | None = None  # from now on, False wipes all that waits; None: as it is
    covered: Mapping[str, Resumption] = field(default_factory=dict)  # what is to be covered
    withdrawn: frozenset[str] = frozenset()  # fingerprints, of which what waits is wiped
    declined: frozenset[str] = frozenset()  # lineages that are declined by name from now on
    lifted: frozenset[str] = frozenset()  # and those that are not any more


class DrawOutcome(StrEnum):
    """What became of a draw."""

    STORED = "stored"
    FROZEN = "frozen"
    OVER_CAP = "over_cap"
    NO_CONSENT = "no_consent"  # withdrawn or forgotten between the record and the commit


@dataclass(frozen=True, slots=True)
class ReportDraw:
    """A randomized answer to be stored, with what it costs and where it counts.

    Costs are in millionths of an epsilon. `report` is None for a true value that stays in memory,
    of which only the slot is charged, and for a forgone answer, which costs nothing either. The
    range of days is the unit's whole calendar day, week or month, which no other unit of the
    lineage may have paid for, not even in part.
    """

    person: bytes
    lineage: str  # the name its spend accrues under, through redefinitions and renamings
    series: str
    period: int
    answer: int  # which of the period's answers
    cost: int = 0
    first_day: int = 0  # of the range that is paid for, as an ordinal
    end_day: int = 0  # the first day after it
    day_cap: int = 0
    life_cap: int = 0
    report: Report | None = None
    earliest: float = 0.0  # it never leaves before
    send_at: float = 0.0  # it leaves then, unless hurried
    expires: float = 0.0
    free: bool = False  # in development: nothing is frozen and nothing adds up
    is_true: bool = False  # a true value: its message is wiped when it leaves the outbox
    held: HeldChange | None = None
    round: int = 0  # of the coverage that it was recorded under
    sealed: bytes = b""  # what leaves in place of the report, if it travels by shuffler


@dataclass(frozen=True, slots=True)
class HeldChange:
    """What a draw makes of the held value that it was made from, in the same step.

    The draw is frozen out if that value is another one meanwhile; else `new` is in its place.
    """

    old: HeldValue | None
    new: HeldValue | None


@dataclass(frozen=True, slots=True)
class QueuedReport:
    """A stored report on its way."""

    number: int
    person: bytes
    report: Report
    send_at: float
    tries: int  # how often it was leased to be sent, this time included
    sealed: bytes = b""  # what leaves in its place, byte for byte the same each time


class OverdueReport(NamedTuple):
    """A report that was due while nothing could leave."""

    number: int
    expires: float
    is_sealed: bool


@dataclass(frozen=True, slots=True)
class HeldValue:
    """The running value of a period (`held = "device"`), until it is frozen at its instant.

    Of a trend it is the state, which a draw changes and keeps.
    """

    person: bytes
    series: str
    period: int
    segment: int
    value: str  # encoded
    at: float  # when the latest record was
    due: float  # when it is frozen


@dataclass(frozen=True, slots=True)
class SpentBudget:
    """What one person has revealed under one name, in millionths of an epsilon."""

    life: int
    first_day: int  # of the range that was paid for last
    end_day: int
    range_spent: int


@dataclass(frozen=True, slots=True)
class SentReport:
    """A report in the person's receipt."""

    report: Report
    status: str


@dataclass(frozen=True, slots=True)
class OutboxLimits:
    """How much an outbox may hold."""

    reports: int = 100_000
    message_bytes: int = 32 << 20  # sealed ones too


class Outbox(Protocol):
    """What keeps reports until they are delivered: the state, or memory."""

    def lease(
        self, now: float, until: float, most: int, *, hurry: bool = False
    ) -> list[QueuedReport]:
        """Take reports that are due (hurry: that may leave), for oneself until the lease ends.

        The longest due come first. A lease ends by the `now` of whoever asks. Each is about to be
        sent: from now on its row counts as one that the aggregator may have.
        """

    def overdue(self, before: float, after: float, most: int) -> list[OverdueReport]:
        """Return reports that were due before, and that nobody has leased since.

        And those that were put off until after an instant that none is put off to: by a clock that
        was ahead.
        """

    def next_due(self) -> float | None:
        """Return when the next report is due."""

    def waiting(self, now: float) -> int:
        """Return how many stored reports may leave now."""

    def reschedule(self, numbers: Mapping[int, float], *, unsent: bool = False) -> None:
        """Put reports back, each due at its time. Unsent: the lease was no attempt after all."""

    def settle(self, delivered: Iterable[int], dropped: Mapping[int, Loss]) -> None:
        """Take reports off the outbox: delivered ones stay in the receipt, dropped ones count."""


class Notes(Protocol):
    """Small things that are kept under a name."""

    def note(self, name: str) -> str | None:
        """Return a small thing that was kept under a name."""

    def keep(self, name: str, value: str) -> None:
        """Keep a small thing under a name."""


class ClientState(Outbox, Notes, Protocol):
    """What the client needs of a state. Every method is atomic and durable when it returns."""

    root: bytes  # the secret that keys and persons' secrets are made from

    @property
    def moved(self) -> tuple[float, ...]:
        """When it was found to be copied, restored or damaged, by any process; the last few."""

    def person(self, key: bytes) -> PersonState:
        """Return a person, made with a fresh secret if new."""

    def consenting(self) -> list[bytes]:
        """Return the keys of all persons who have consented."""

    def consent(self, key: bytes, decision: ConsentDecision) -> None:
        """Store a person's decision; what is withdrawn is wiped, and the ledger is kept."""

    def forget(self, key: bytes) -> None:
        """Wipe secret, answers, outbox and decisions; keep what was spent, and since when."""

    def used(self, key: bytes, series: str) -> tuple[int, int]:
        """Return the last answered period of a series, -1 for none, and its number of answers.

        The number is ROW_CLOSED where the aggregator closed the row through that period.
        """

    def close_row(self, key: bytes, series: str, through: int) -> None:
        """Keep that the aggregator closed a person's row, through its epoch's last period."""

    def spent(self, key: bytes) -> Mapping[str, SpentBudget]:
        """Return what a person has revealed, by lineage."""

    def commit(self, draws: Sequence[ReportDraw]) -> list[DrawOutcome]:
        """Charge, freeze and store each draw whose slot is free and whose cost fits; in order."""

    def hold(self, old: HeldValue | None, new: HeldValue, round: int = 0) -> bool:  # noqa: A002 - of coverage
        """Replace a held value; False if another process has done so since `old` was read.

        Or if the consent to its series was withdrawn, or all was forgotten, since it was recorded.
        """

    def agrees(self, key: bytes, series: str, round: int) -> bool:  # noqa: A002 - of coverage
        """Whether a person's consent covers a series, and was not withdrawn since this round."""

    def held(self, key: bytes, series: str) -> HeldValue | None:
        """Return the value that is held of a series."""

    def held_due(self, now: float, most: int) -> list[HeldValue]:
        """Return held values whose instant has come."""

    def next_held(self) -> float | None:
        """Return when the next held value is due."""

    def drop_held(self, value: HeldValue) -> None:
        """Wipe a held value, unless it was replaced. Committing its period wipes it too."""

    def attempts(self) -> int:
        """Return how often the waiting report with the most attempts was leased."""

    def retire(self, series: str, resumed: float = 0.0) -> None:
        """Wipe what is held of a series that is no longer collected. It is no loss.

        Where presence is hidden, what waits is wiped too, and from this instant on only periods
        that begin later are answered: another process, of a newer version, may still collect it,
        and would draw absences for those alone of whom no report was wiped.
        """

    def expire(self, now: float, limits: OutboxLimits) -> None:
        """Drop what is too old, then over the limits what is due first; count both.

        By when it is due: a report that was recorded is stored before an absence, and due as it.
        Of a sealed report that was tried without an answer nobody knows whether it arrived.
        """

    def sent(self, key: bytes) -> list[SentReport]:
        """Return a person's reports: on their way, delivered or dropped."""

    def lose(self, losses: Mapping[tuple[Loss, str], int]) -> None:
        """Add to the count of losses, by reason and collection."""

    def losses(self) -> Mapping[tuple[Loss, str], int]:
        """Return the counts of losses."""

    def keep_tokens(self, person: PersonState, tokens: Mapping[bytes, bytes]) -> None:
        """Keep tokens of a person, by the pseudonym that each is for; `forget` wipes them.

        Those of a secret that was forgotten meanwhile are not kept.
        """

    def token(self, key: bytes, pseudonym: bytes) -> bytes | None:
        """Return the token of a pseudonym; None: there is none."""

    def close(self) -> None:
        """Let go of files and connections."""

    def after_fork(self) -> None:
        """In a forked child: abandon what cannot be shared with the parent, and begin anew."""


def closed_series(notes: Notes, series: Iterable[str]) -> set[str]:
    """Return those of these series that the aggregator has closed: for what is shown to people.

    What a closing changes is kept by row (`close_row`): the pseudonym that received it sends no
    more, and no other does less, or a server could find a device's pseudonyms by closing one.
    """
    return {fingerprint for fingerprint in series if notes.note(f"closed {fingerprint}")}


def add_closed_series(notes: Notes, series: str) -> None:
    """Keep that a series was closed: for good, whoever withdraws or is forgotten."""
    notes.keep(f"closed {series}", "yes")
