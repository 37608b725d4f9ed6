"""The ledger of central releases: what was released, and what that has cost each period.

Releases are append-only data: none is ever changed, and a price is a fold over them. Epsilons are
whole numbers there, in millionths.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any, Protocol

from veilcount_shared.epsilon import EPSILON_GRAIN

from ..errors import StoreUnfit
from ..series.series import Series
from ..store import Record, Store
from .release_journal import Line, encode_line, seal

KIND_PREFIX = "release:"  # a kind of record for each series

Answer = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class StoredRelease:
    """A release, as it is kept: all of it is JSON, here and on the shelf and in the journal."""

    fingerprint: str
    canonical: str
    charges: Mapping[str, int]  # by period; JSON has no other keys
    answer: Answer
    day: str
    who: str

    @classmethod
    def read(cls, line: Line) -> StoredRelease:
        """Return the release that a line holds, or refuse what is none."""
        try:
            return cls(**line)
        except TypeError as error:
            raise StoreUnfit("a release of another version: run the one that made it") from error

    def line(self) -> Line:
        """Return it as a line of the journal."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    @property
    def text(self) -> str:
        """Its one spelling."""
        return json.dumps(self.line(), sort_keys=True)

    def record(self, place: int) -> Record:
        """Return it as it is kept, in order."""
        return Record(record_kind(self.fingerprint), f"{place:08}", self.text.encode())


class HasCharges(Protocol):
    """Whatever says what a release was charged."""

    @property
    def charges(self) -> Mapping[str, int]:
        """What each period was charged, in millionths of epsilon."""


@dataclass(frozen=True, slots=True)
class ReleasePrice:
    """A release without its answer, which may be long: what was asked, and what it was charged."""

    canonical: str
    charges: Mapping[str, int]
    seal: bytes  # of its line in the journal

    @classmethod
    def of(cls, record: bytes) -> ReleasePrice:
        """Return the price in a record of the shelf."""
        kept = parse_release(record)
        return cls(kept.canonical, kept.charges, seal(encode_line(kept.line())))


@dataclass(frozen=True, slots=True)
class PeriodAccount:
    """What one period's budget has paid for, and what is left of it."""

    period: int
    budget: Fraction
    spent: Fraction

    @property
    def remaining(self) -> Fraction:
        """What may still be asked for; nothing where what was entered again is more than all."""
        return max(Fraction(0), self.budget - self.spent)


def record_kind(fingerprint: str) -> str:
    """Return the kind of record that holds the releases of a series."""
    return f"{KIND_PREFIX}{fingerprint}"


def release_records(store: Store, fingerprint: str = "") -> list[bytes]:
    """Return the records of a series' releases (or, series by series, of all), the oldest first."""
    if fingerprint:
        kinds = [record_kind(fingerprint)]
    else:
        kinds = sorted(kind for kind in store.generations() if kind.startswith(KIND_PREFIX))
    return [value for kind in kinds for _, value in sorted(store.records(kind).items())]


def load_releases(store: Store, fingerprint: str = "") -> list[StoredRelease]:
    """Return the releases of a series (or of all), the oldest first."""
    return list(map(parse_release, release_records(store, fingerprint)))


def parse_release(record: bytes) -> StoredRelease:
    """Return the release in a record of the shelf."""
    return StoredRelease.read(json.loads(record))


def period_accounts(
    series: Series, kept: Iterable[HasCharges], periods: Iterable[int]
) -> list[PeriodAccount]:
    """Return where each of these periods stands after these releases."""
    spent: Counter[int] = Counter()
    for release in kept:
        for period, charge in release.charges.items():
            spent[int(period)] += charge
    budget = series.collection.unit_epsilon
    return [PeriodAccount(each, budget, Fraction(spent[each], EPSILON_GRAIN)) for each in periods]
