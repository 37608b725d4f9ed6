"""Admission of definitions by the memory that their counters can need.

A definition is admitted once, when it is pushed: what the counters of all definitions can need from
then on must fit the limit, an operator's or the engine's own. So no report is refused for memory,
whatever reports arrive.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import date

from veilcount_analysis.mechanisms import handler_of
from veilcount_analysis.series.series import Series
from veilcount_analysis.text.number_format import format_bytes
from veilcount_analysis.text.privacy_guarantees import counts_are_public
from veilcount_shared import Collection

from ..errors import CounterMemoryExceeded
from ..store import Cell, TallyReader
from ..store.tally_size import period_bytes, touched_bytes, worst_case

#: how an operator raises the limit
RAISE = "--max-counter-memory; by default 60 % of Redis's maxmemory"


ReportCounts = Callable[[Series], Mapping[Cell, int]]


@dataclass(frozen=True, slots=True)
class AdmittedMemory:
    """What the counters of all definitions can need, and the limit on it."""

    needs: int
    limit: int | None  # None: there is none

    @classmethod
    def from_store(
        cls,
        store: TallyReader,
        series: Iterable[Series],
        day: date,
        limit: int | None,
        report_counts: ReportCounts | None = None,
    ) -> AdmittedMemory:
        """Sum up what the store holds and can still get; a limit of None is the engine's own.

        `report_counts` returns counts that were read before.
        """
        counts, shards = report_counts or store.report_counts, store.shard_count()
        needs = sum(needed_bytes(one_series, day, shards, counts) for one_series in series)
        return cls(needs, store.counter_limit() if limit is None else limit)

    @property
    def fits(self) -> bool:
        """Whether the counters fit the limit, whatever reports arrive."""
        return self.limit is None or self.needs <= self.limit


def needed_bytes(series: Series, day: date, shards: int, report_counts: ReportCounts) -> int:
    """Return what the counters of a series can need from a day on.

    A period that takes reports can be filled; an earlier one keeps what it has. Where the number of
    reports is secret, all periods are reckoned full: the figure is the same whatever was sent.
    """
    if not counts_are_public(series.collection):
        return worst_case(series.collection, shards)
    periods = series.collection.periods
    first = periods if series.closed else series.open_periods(day)[0]
    needs = (periods - first) * period_bytes(series.collection, shards)
    if first == 0:
        return needs
    return needs + _kept_bytes(series, report_counts(series), first, shards)


def _kept_bytes(series: Series, reports: Mapping[Cell, int], before: int, shards: int) -> int:
    """Return what the tallies before a period take at most, by the number of their reports."""
    by_report = handler_of(series.collection.mechanism).counters_per_report
    return sum(
        min(shards, number) * touched_bytes(series.counters, number * by_report)
        for cell, number in reports.items()
        if cell.period < before
    )


def require_memory(
    store: TallyReader,
    known: Mapping[str, Series],
    supplied: Iterable[Series],
    day: date,
    limit: int | None,
) -> None:
    """Refuse definitions that are not known yet and whose counters do not fit next to the known."""
    new = {
        one_series.fingerprint: one_series
        for one_series in supplied
        if one_series.fingerprint not in known
    }
    total = store.counter_limit() if new and limit is None else limit
    if not new or total is None:
        return
    shards = store.shard_count()
    bytes_left = total - AdmittedMemory.from_store(store, known.values(), day, total).needs
    for series in new.values():
        needs = needed_bytes(series, day, shards, store.report_counts)
        if needs > bytes_left:
            raise _refusal(series.collection, shards, needs, bytes_left, total)
        bytes_left -= needs


def _refusal(
    collection: Collection, shards: int, needs: int, bytes_left: int, total: int
) -> CounterMemoryExceeded:
    of_shards = f" in each of {shards} shards" if shards > 1 else ""
    return CounterMemoryExceeded(
        f"{collection.name}: its counters can need {format_bytes(needs)}"
        f" ({_dimensions(collection)}{of_shards}), and {format_bytes(max(0, bytes_left))} of"
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
