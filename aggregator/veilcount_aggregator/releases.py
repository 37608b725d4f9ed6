"""Central releases, paid for from a budget that outlives every process.

A pure filter per (series, period): what a period paid for may not add up to more than its budget,
whatever was asked and in whatever order. Charge, draw and result are one change of the shelf:
whoever loses a race draws again, and nobody has seen the first draw. The same question has the same
answer, free. Before an answer leaves, a journal beside the store has it too: a store that forgot
what its journal remembers releases nothing until that is entered again.

Each release reads all that were made before, from the store and from the journal: another process
may have made one, and the store may have forgotten one. What was read before is not decoded again.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from fractions import Fraction
from typing import NamedTuple, Protocol

from veilcount_shared.epsilon import EPSILON_GRAIN
from veilcount_shared.schedule import closes

from .audit import entry
from .errors import (
    InsufficientBudget,
    NoJournal,
    ReleasesLocked,
    SettingsError,
    StillFilling,
    StoreFenced,
    StoreUnfit,
)
from .journal import Journal, believed, line_in, spelled
from .ledger import Answer, Charged, Kept, Price, accounts, kept_in, records, releases
from .once import Once
from .series import Series, utc_day
from .shelf import change
from .store import Record, Store
from .store.lock import KIND as LOCK
from .store.lock import RELEASES, lock, locked

FORGOTTEN = "the journal remembers releases that the store does not: a budget would be spent twice"


class Question(Protocol):
    """What is asked of a collection's closed periods, in its one spelling."""

    @property
    def canonical(self) -> str:
        """The question, spelled in one way."""

    @property
    def charges(self) -> Mapping[int, int]:
        """What each period is charged, in millionths of epsilon."""


class Paid(NamedTuple):
    """An answer, whether it was charged now, and the prices of all releases of its series since."""

    kept: Kept
    now: bool
    prices: Sequence[Price]


@dataclass(frozen=True, slots=True)
class Filter:
    """What stands between the true tallies and everyone."""

    store: Store
    journal: Journal | None
    _price: Once[Price] = field(default_factory=lambda: Once(Price.of), init=False, repr=False)
    _look: Once[bytes | None] = field(
        default_factory=lambda: Once(believed), init=False, repr=False
    )

    def release(
        self,
        series: Series,
        question: Question,
        draw: Callable[[], Answer],
        now: datetime,
        who: str,
    ) -> Paid:
        """Return the answer, charged and durable; or the one that was given before."""
        if self.journal is None:
            raise NoJournal(
                "releases are written to a journal beside the store before they leave, and there is"
                " none: start with --journal FILE"
            )
        self.guard()
        kept, charged = change(self.store, lambda: self._decide(series, question, draw, now, who))
        # Those before it too: whoever made them may have died before their lines were written.
        made = records(self.store, series.fingerprint)
        prices = list(map(self._price, made))
        texts = {price.seal: record for price, record in zip(prices, made, strict=True)}
        self.journal.add(texts, lambda seal: spelled(kept_in(texts[seal]).line()))
        return Paid(kept, charged, prices)

    def prices(self, series: Series) -> list[Price]:
        """Return the prices of a series' releases, the oldest first."""
        return list(map(self._price, records(self.store, series.fingerprint)))

    def _decide(
        self,
        series: Series,
        question: Question,
        draw: Callable[[], Answer],
        now: datetime,
        who: str,
    ) -> tuple[list[Record], tuple[Kept, bool]]:
        if locked(self.store):
            raise ReleasesLocked(
                "releases are locked: the store may have forgotten what was spent; the operator "
                "enters it again with `veilcount store unlock --journal FILE`"
            )
        made = records(self.store, series.fingerprint)
        earlier = list(map(self._price, made))
        for known, record in zip(earlier, made, strict=True):
            if known.canonical == question.canonical:
                return [], (kept_in(record), False)
        refuse_filling(series, question.charges, utc_day(now))
        refuse_overspending(series, question.charges, earlier)
        new = _kept(series, question, draw(), now, who)
        act = entry(self.store, now, who, "release", series.collection.name)
        return [new.record(len(earlier)), act], (new, True)

    # -- the journal against the store ---------------------------------------------------------

    def guard(self) -> None:
        """Lock releases if the journal remembers what the store does not, or cannot be believed."""
        try:
            why = FORGOTTEN if self.forgotten() else ""
        except StoreUnfit as error:
            why = str(error)
        if why and not locked(self.store):
            with suppress(StoreFenced):  # nothing is released from a fenced store anyway
                lock(self.store, why)

    def forgotten(self) -> list[Kept]:
        """Return what the journal remembers and the store does not."""
        if self.journal is None:
            return []
        # The journal first: what it holds is in the store already, unless the store forgot.
        remembered = dict(self.journal.sealed(self._look))
        here = {self._price(each).seal for each in records(self.store)}
        return [Kept.read(line_in(text)) for seal, text in remembered.items() if seal not in here]

    def reenter(self, now: datetime, who: str) -> list[Kept]:
        """Enter again what was forgotten, and open the lock; return what was entered."""
        if self.journal is None or not self.journal.path.exists():
            given = str(self.journal.path) if self.journal else ""
            raise SettingsError(
                "journal",
                given,
                "no such file: give the one that releases were written to, or an empty one if"
                " nothing was ever released",
            )

        def decide() -> tuple[list[Record], list[Kept]]:
            missing = self.forgotten()
            act = entry(self.store, now, who, "store unlock", f"{len(missing)} releases")
            return [*self._behind(missing), act, Record(LOCK, RELEASES, None)], missing

        return change(self.store, decide)

    def _behind(self, missing: Iterable[Kept]) -> list[Record]:
        """Return records behind those that are there: none of them is ever written over."""
        places = Counter(kept.fingerprint for kept in releases(self.store))
        records = []
        for kept in missing:
            records.append(kept.record(places[kept.fingerprint]))
            places[kept.fingerprint] += 1
        return records


def _kept(series: Series, question: Question, answer: Answer, now: datetime, who: str) -> Kept:
    """Return a new release as it will be read: to JSON and back, numbers and lists are the same."""
    charges = {str(period): charge for period, charge in question.charges.items()}
    day = utc_day(now).isoformat()
    made = Kept(series.fingerprint, question.canonical, charges, answer, day, who)
    return Kept.read(json.loads(json.dumps(made.line())))


def refuse_filling(series: Series, charges: Iterable[int], day: date) -> None:
    """Refuse periods that take reports still."""
    oldest, _ = series.taken(day)
    newest = max(charges)
    if newest < oldest:
        return
    late = timedelta(days=series.collection.late)
    raise StillFilling(
        f"to: period {newest} takes reports before {_closes(series, newest) + late}: ask from then"
        f" on{_instead(series, oldest)}"
    )


def _instead(series: Series, oldest: int) -> str:
    if not oldest:
        return ""
    return f", or up to {_closes(series, oldest - 1) - timedelta(days=1)}"


def _closes(series: Series, period: int) -> date:
    return closes(series.collection, period).date()


def refuse_overspending(
    series: Series, charges: Mapping[int, int], earlier: Sequence[Charged]
) -> None:
    """Refuse what some period's budget does not pay for."""
    asked = {period: Fraction(charge, EPSILON_GRAIN) for period, charge in charges.items()}
    standing = accounts(series, earlier, charges)
    least = min(standing, key=lambda account: account.remaining - asked[account.period])
    requested = asked[least.period]
    if requested > least.remaining:
        raise InsufficientBudget(
            least.period, requested=requested, spent=least.spent, remaining=least.remaining
        )
