"""The budget ledger: all central releases, and what they have cost each period.

It is append-only: a release is never changed, and what a period spent is a fold over them. Charges
are whole numbers, in grains of the unit of the definition's budget, epsilon or rho (`price`).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any

from veilcount_analysis.releases.price import Accounting, period_budget
from veilcount_analysis.series.series import Series

from ..errors import InsufficientBudget, StoreUnfit
from ..store import Record, RecordStore
from .release_journal import JournalLine, encode_line, seal

KIND_PREFIX = "release:"  # a kind of record for each series

ReleaseContent = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class StoredRelease:
    """A release as the store and the journal hold it; all of it is JSON."""

    fingerprint: str
    canonical: str
    charges: Mapping[str, int]  # by period; JSON has no other keys
    answer: ReleaseContent
    day: str
    actor: str

    @classmethod
    def from_json(cls, line: JournalLine) -> StoredRelease:
        """Parse a line of the journal."""
        try:
            return cls(**line)
        except TypeError as error:
            raise StoreUnfit("a release of another version: run the one that made it") from error

    def line(self) -> JournalLine:
        """Return it as a line of the journal."""
        return {field_.name: getattr(self, field_.name) for field_ in fields(self)}

    @property
    def text(self) -> str:
        """Its canonical JSON."""
        return json.dumps(self.line(), sort_keys=True)

    def record(self, place: int) -> Record:
        """Return its record, the `place`-th of its series."""
        return Record(record_kind(self.fingerprint), f"{place:08}", self.text.encode())


@dataclass(frozen=True, slots=True)
class ReleasePrice:
    """The query of a release and its charges, without the answer, which may be long."""

    canonical: str
    charges: Mapping[str, int]
    seal: bytes  # of its line in the journal

    @classmethod
    def from_record(cls, record: bytes) -> ReleasePrice:
        """Parse a stored release."""
        stored_release = parse_release(record)
        return cls(
            stored_release.canonical,
            stored_release.charges,
            seal(encode_line(stored_release.line())),
        )


Charged = StoredRelease | ReleasePrice


@dataclass(frozen=True, slots=True)
class PeriodAccount:
    """What one period has spent of its budget."""

    period: int
    budget: Fraction
    spent: Fraction

    @property
    def remaining(self) -> Fraction:
        """What is left; 0 where releases that were restored add up to more than the budget."""
        return max(Fraction(0), self.budget - self.spent)


def record_kind(fingerprint: str) -> str:
    """Return the kind of record that holds the releases of a series."""
    return f"{KIND_PREFIX}{fingerprint}"


def release_records(store: RecordStore, fingerprint: str = "") -> list[bytes]:
    """Return the records of a series' releases (or, series by series, of all), the oldest first."""
    if fingerprint:
        kinds = [record_kind(fingerprint)]
    else:
        kinds = sorted(kind for kind in store.generations() if kind.startswith(KIND_PREFIX))
    return [value for kind in kinds for _, value in sorted(store.records(kind).items())]


def load_releases(store: RecordStore, fingerprint: str = "") -> list[StoredRelease]:
    """Return the releases of a series (or of all), the oldest first."""
    return list(map(parse_release, release_records(store, fingerprint)))


def parse_release(record: bytes) -> StoredRelease:
    """Parse a stored release."""
    return StoredRelease.from_json(json.loads(record))


def period_accounts(
    series: Series, kept: Iterable[Charged], periods: Iterable[int]
) -> list[PeriodAccount]:
    """Return the budget of each of these periods after these releases."""
    spent: Counter[int] = Counter()
    for release in kept:
        for period, charge in release.charges.items():
            spent[int(period)] += charge
    budget = period_budget(series.collection)
    grain = Accounting.of_collection(series.collection).grain
    return [PeriodAccount(period, budget, Fraction(spent[period], grain)) for period in periods]


def is_overspent(series: Series, release: Charged, earlier: Sequence[Charged]) -> bool:
    """Whether some period of a release was charged more than its budget."""
    standing = period_accounts(series, earlier, map(int, release.charges))
    return any(account.spent > account.budget for account in standing)


def require_budget(series: Series, charges: Mapping[int, int], earlier: Sequence[Charged]) -> None:
    """Refuse what some period's budget does not pay for."""
    unit = Accounting.of_collection(series.collection)
    requested = {period: Fraction(charge, unit.grain) for period, charge in charges.items()}
    standing = period_accounts(series, earlier, charges)
    least = min(standing, key=lambda account: account.remaining - requested[account.period])
    if requested[least.period] > least.remaining:
        raise InsufficientBudget(
            least.period,
            requested=requested[least.period],
            spent=least.spent,
            remaining=least.remaining,
            unit=unit,
        )
