"""Definitions that were ever loaded, so that a receipt can name those that no longer are; and the
names of the rows under which an aggregator may have counted a person's answers of them.

The state keeps reports by fingerprint and budgets by lineage; what they were about is kept here, in
one note of bounded size.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import astuple, dataclass
from datetime import date
from typing import NamedTuple

from veilcount_shared import Collection, schedule
from veilcount_shared.budget_claims import Claim
from veilcount_shared.collection import Linkage
from veilcount_shared.periods import Unit, calendar_range
from veilcount_shared.wire import encode_base64

from ..state import ClientState, Notes

NOTE = "definitions"
MOST = 200  # the newest: an app that changes one a month needs them in 16 years


@dataclass(frozen=True, slots=True)
class KnownDefinition:
    """What a receipt says of a definition."""

    fingerprint: str
    name: str
    lineage: str
    question: str
    model: str
    adjacency: str
    unit: str
    start: str
    until: str
    linkage: str

    @classmethod
    def from_collection(cls, collection: Collection, lineage: str) -> KnownDefinition:
        """Return what is to be kept of a loaded definition."""
        return cls(
            collection.fingerprint,
            collection.name,
            lineage,
            collection.question,
            collection.model.value,
            collection.epsilon_adjacency.value,
            collection.unit.value,
            collection.start.isoformat(),
            collection.until.isoformat(),
            str(collection.linkage),
        )

    def period_label(self, period: int) -> str:
        """Return the month or the dates of a period."""
        start, until = date.fromisoformat(self.start), date.fromisoformat(self.until)
        return _label(Unit(self.unit), start, until, period)


def period_label(collection: Collection, period: int) -> str:
    """Return the month or the dates of a period, as they are written everywhere."""
    return _label(collection.unit, collection.start, collection.until, period)


def _label(unit: Unit, start: date, until: date, period: int) -> str:
    first, end = calendar_range(unit, start, until, period)
    match unit:
        case Unit.MONTH:
            return f"{first:%Y-%m}"
        case Unit.DAY | Unit.EVENT:
            return first.isoformat()
        case Unit.WEEK | Unit.USER:
            last = date.fromordinal(end.toordinal() - 1)
            return f"{first} to {last}"


def known_definitions(notes: Notes) -> dict[str, KnownDefinition]:
    """Return the definitions that were ever loaded, by fingerprint, the oldest first."""
    rows = json.loads(notes.note(NOTE) or "[]")
    return {fingerprint: KnownDefinition(fingerprint, *row) for fingerprint, *row in rows}


def lineage_of(known: Mapping[str, KnownDefinition], collection: Collection) -> str:
    """Return the lineage of a loaded definition, whether or not its budget was reserved."""
    if collection.fingerprint in known:
        return known[collection.fingerprint].lineage
    forms = [form for form in known.values() if form.name in {collection.name, collection.replaces}]
    return forms[-1].lineage if forms else collection.replaces or collection.name


def remember(notes: Notes, collections: Iterable[Collection], claims: Mapping[str, Claim]) -> None:
    """Keep what is loaded now."""
    definitions = known_definitions(notes)
    loaded = {
        collection.fingerprint: KnownDefinition.from_collection(
            collection, claims[collection.name].lineage
        )
        for collection in collections
    }
    merged = definitions | loaded
    if merged != definitions:
        rows = [astuple(value) for value in merged.values()][-MOST:]
        notes.keep(NOTE, json.dumps(rows, separators=(",", ":"), ensure_ascii=False))


class RowName(NamedTuple):
    """What an operator needs to close one row; whoever knows it can tell it is the person's."""

    fingerprint: str
    pseudonym: str  # as the wire spells it

    def __str__(self) -> str:
        return f"{self.fingerprint} {self.pseudonym}"


def row_names(state: ClientState, key: bytes) -> list[RowName]:
    """Return the names of a person's rows, of definitions that are not loaded any more as well.

    Of a period that was not answered, too: nothing is stored that would tell. Without a linkage,
    or with tokens, each report is a row of its own, which takes no other report.
    """
    return list(_row_names(state, key))


def _row_names(state: ClientState, key: bytes) -> Iterator[RowName]:
    secret = state.person(key).secret
    for series, definition in known_definitions(state).items():
        last, _ = state.used(key, series)
        if last < 0 or definition.linkage not in {Linkage.COLLECTION, Linkage.PERIOD}:
            continue
        epochs = range(last + 1) if definition.linkage == Linkage.PERIOD else (0,)
        for epoch in epochs:
            pseudonym = schedule.derive_linked_pseudonym(secret, series, epoch)
            yield RowName(series, encode_base64(pseudonym))
