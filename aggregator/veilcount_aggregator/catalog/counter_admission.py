"""Admission of definitions by the memory that their counters can need.

A definition is admitted once, when it is pushed: what the counters of all definitions can need from
then on must fit the limit, an operator's or the engine's own. So no report is refused for memory,
whatever reports arrive.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from veilcount_shared import Collection

from ..errors import CounterMemoryExceeded
from ..mechanisms import handler_of
from ..series.series import Series
from ..store import Cell, Store
from ..store.tally_size import period_bytes, touched_bytes, worst_case
from ..text.number_format import format_bytes
from ..text.privacy_guarantees import counts_are_public

#: how an operator raises the limit
RAISE = "--max-counter-memory; by default 60 % of Redis's maxmemory"


@dataclass(frozen=True, slots=True)
class AdmittedMemory:
    """What the counters of definitions can need, by fingerprint, and the limit on the sum."""

    series: Mapping[str, int]
    limit: int | None  # None: there is none

    @classmethod
    def from_store(
        cls, store: Store, series: Iterable[Series], day: date, limit: int | None
    ) -> AdmittedMemory:
        """Sum up what the store holds and what it can still get."""
        needs = {each.fingerprint: needed_bytes(store, each, day) for each in series}
        return cls(needs, effective_limit(store, limit))

    @property
    def total(self) -> int:
        """What all of them can need together."""
        return sum(self.series.values())

    @property
    def fits(self) -> bool:
        """Whether the counters fit the limit, whatever reports arrive."""
        return self.limit is None or self.total <= self.limit


def effective_limit(store: Store, limit: int | None) -> int | None:
    """Return the operator's limit; the engine's own where the operator sets none."""
    return store.counter_limit() if limit is None else limit


def needed_bytes(store: Store, series: Series, day: date) -> int:
    """Return what the counters of a series can need from a day on.

    A period that takes reports can be filled; an earlier one keeps what it has. Where the number of
    reports is secret, all periods are reckoned full: the figure is the same whatever was sent.
    """
    shards = store.shard_count()
    if not counts_are_public(series.collection):
        return worst_case(series.collection, shards)
    periods = series.collection.periods
    first = periods if series.closed else series.open_periods(day)[0]
    needs = (periods - first) * period_bytes(series.collection, shards)
    if first == 0:
        return needs
    return needs + _kept_bytes(series, store.report_counts(series), first, shards)


def _kept_bytes(series: Series, reports: Mapping[Cell, int], before: int, shards: int) -> int:
    """Return what the tallies before a period take at most, by the number of their reports."""
    by_report = handler_of(series.collection.mechanism).counters_per_report
    return sum(
        min(shards, number) * touched_bytes(series.counters, number * by_report)
        for cell, number in reports.items()
        if cell.period < before
    )


def require_memory(
    store: Store, known: Iterable[Series], new: Sequence[Series], day: date, limit: int | None
) -> None:
    """Refuse new definitions whose counters do not fit next to those that are known."""
    if not new or (total := effective_limit(store, limit)) is None:
        return
    bytes_left = total - sum(needed_bytes(store, series, day) for series in known)
    for series in new:
        needs = needed_bytes(store, series, day)
        if needs > bytes_left:
            raise _refusal(series.collection, store.shard_count(), needs, bytes_left, total)
        bytes_left -= needs


def _refusal(
    collection: Collection, shards: int, needs: int, bytes_left: int, total: int
) -> CounterMemoryExceeded:
    each = f" in each of {shards} shards" if shards > 1 else ""
    return CounterMemoryExceeded(
        f"{collection.name}: its counters can need {format_bytes(needs)}"
        f" ({_dimensions(collection)}{each}), and {format_bytes(max(0, bytes_left))} of"
        f" {format_bytes(total)} are left: define fewer values or cells, a shorter time from `from`"
        f" to `until`, or raise the limit ({RAISE})"
    )


def memory_at_most(collection: Collection) -> str:
    """Return what a definition's counters take at most in a shard, and why."""
    size = format_bytes(worst_case(collection))
    return f"counters take at most {size} in each shard: {_dimensions(collection)}"


def _dimensions(collection: Collection) -> str:
    counted = {
        "period": collection.periods,
        "cell": collection.cells,
        "counter": collection.mechanism.counters,
    }
    return " x ".join(_number(number, noun) for noun, number in counted.items())


def _number(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' * (number != 1)}"
