"""The part of a group of reports that one shard gets, and its answers.

A `SeriesBatch` has all reports of one series in a group, an `EpochBatch` those of one epoch and
shard, a `ShardCommit` all of a shard. Each has the expected verdict of every report: a call adds
up by these.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veilcount_analysis.mechanisms import increments

from ..series_reports import (
    COUNTED,
    UNDECIDED,
    Codes,
    Numbers,
    Quota,
    SeriesReports,
    ServiceCounts,
    refusal_counts,
)
from ..transfer_format import bitmap_bytes, join_key
from .identity import StoreIdentity
from .lua_library import pack, raw
from .row_permutation import PermutedRows, RowPermutation
from .shard_client import Command

Chosen = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class SeriesBatch:
    """All reports of one series in a group, and the expected verdict of each."""

    reports: SeriesReports
    row_limits: Numbers  # of each report's request
    quotas: Sequence[Quota]
    charged: Numbers  # each report's quota, counted from 1; 0: none
    names: PermutedRows
    expected: Codes  # updated by the answers


@dataclass(frozen=True, slots=True)
class EpochBatch:
    """The reports of one epoch and shard, in their order."""

    sheet: SeriesBatch
    epoch: int
    chosen: Chosen

    def page(self, shards: int) -> list[Any]:
        """Return the request for the epoch. Each shard has its share of a limit, rounded up.

        Rows are spread evenly, so that a period is full at about its limit; sharing the number
        itself would take a transaction over all shards.
        """
        reports, chosen = self.sheet.reports, self.chosen
        return [
            reports.series.fingerprint,
            self.epoch,
            reports.series.most,
            bitmap_bytes(reports.series.bits),
            (-(-self.sheet.row_limits[chosen] // shards)).tolist(),
            [[quota.hour, quota.source, -(-quota.limit // shards)] for quota in self.sheet.quotas],
            self.sheet.charged[chosen].tolist(),
            raw(self.sheet.names.fields[chosen].tobytes()),
            self.sheet.names.places[chosen].tolist(),
            reports.slots[chosen].tolist(),
            reports.periods[chosen].tolist(),
            reports.default_verdicts[chosen].tolist(),
            self.sheet.expected[chosen].tolist(),
        ]

    def cells(self) -> Iterator[tuple[str, Chosen]]:
        """Return the reports that count, cell by cell."""
        reports = self.sheet.reports
        counted = self.chosen[self.sheet.expected[self.chosen] == COUNTED]
        for period, of_period in group_by_value(reports.periods, counted):
            for segment, of_cell in group_by_value(reports.segments, of_period):
                yield join_key(period, segment), of_cell

    def tallies(self, permutation: RowPermutation) -> Iterator[list[Any]]:
        """Yield what to add to the counters of each cell."""
        reports, series = self.sheet.reports, self.sheet.reports.series
        for cell, chosen in self.cells():
            places, counts = increments(series.collection, reports.messages[chosen])
            if series.counts_hashes:
                places = permutation.apply_hashes(np.array(places, np.int64)).tolist()
            yield [series.fingerprint, series.counters, cell, len(chosen), places, counts]

    def refusals(self) -> Iterator[str | int]:
        """Return service counters of reports that are not counted, each with its number."""
        reports, expected = self.sheet.reports, self.sheet.expected
        refused = self.chosen[expected[self.chosen] != COUNTED]
        for period, of_period in group_by_value(reports.periods, refused):
            for code, some in group_by_value(expected, of_period):
                counts = refusal_counts(reports.series.fingerprint, period, code, len(some))
                for counter, times in counts.items():
                    yield from (join_key(*counter), times)

    def learn(self, verdicts: Codes | np.uint8) -> None:
        """Expect these verdicts."""
        self.sheet.expected[self.chosen] = verdicts


@dataclass(frozen=True, slots=True)
class ShardCommit:
    """The part of a group that one shard gets."""

    shard: int
    leaves: Sequence[EpochBatch]
    counts: ServiceCounts

    def command(self, identity: StoreIdentity) -> Command:
        """Return the call, with the verdicts that are expected now."""
        pages = [leaf.page(identity.shards) for leaf in self.leaves]
        tallies = [tally for leaf in self.leaves for tally in leaf.tallies(identity.permutation)]
        counts: list[str | int] = [counter for leaf in self.leaves for counter in leaf.refusals()]
        for counter, times in self.counts.items():
            counts += (join_key(*counter), times) if times else ()
        base = identity.bases[self.shard]
        return identity.call("commit", base, pack([pages, tallies, counts]))

    def learn(self, answer: int | bytes) -> bool:
        """Take an answer; return whether the call has to be repeated: nothing was written."""
        if isinstance(answer, int):
            return False
        verdicts, first = np.frombuffer(answer, np.uint8), 0
        for leaf in self.leaves:
            leaf.learn(verdicts[first : first + len(leaf.chosen)])
            first += len(leaf.chosen)
        return True

    def give_up(self) -> None:
        """Leave its reports undecided."""
        for leaf in self.leaves:
            leaf.learn(UNDECIDED)


def group_by_value(column: Numbers | Codes, chosen: Chosen) -> Iterator[tuple[int, Chosen]]:
    """Return the chosen places by what stands there, in their order."""
    numbers = column[chosen]
    values = set(numbers.tolist())
    if len(values) == 1:  # nearly always
        yield values.pop(), chosen
        return
    for number in sorted(values):
        yield number, chosen[numbers == number]
