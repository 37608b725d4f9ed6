"""The part of a group of reports that one shard gets, and its answers.

An `EpochBatch` has the reports of one epoch and series, a `ShardCommit` all of a shard. Each report
has an expected verdict: a call adds up by these.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from veilcount_analysis.mechanisms import increments

from ..series_reports import (
    COUNTED,
    ROW_BYTES,
    UNDECIDED,
    Bytes,
    Codes,
    ServiceCounts,
    refusal_counts,
)
from ..transfer_format import bitmap_bytes, join_key
from .group_table import GroupPart, GroupSeries, GroupTable
from .identity import StoreIdentity
from .lua_library import pack, raw
from .row_permutation import RowPermutation
from .shard_client import Command

_COUNTED = int(COUNTED)


class EpochBatch(NamedTuple):
    """The reports of one epoch, series and shard, in their order."""

    table: GroupTable
    part: GroupPart

    @property
    def of(self) -> GroupSeries:
        """Return the fields that all reports of their series share."""
        return self.table.series[self.part.series]

    @property
    def expected(self) -> Codes:
        """Return the expected verdict of each."""
        return self.table.expected[self.part.rows]

    def page(self, shards: int, verdicts: list[int]) -> list[Any]:
        """Return the request for the epoch. Each shard has its share of a limit, rounded up.

        Rows are spread evenly, so that a period is full at about its limit; sharing the number
        itself would take a transaction over all shards.
        """
        series, rows = self.of.series, self.part.rows
        limits, charged, *columns, _ = [column[rows] for column in self.table.columns]
        fields = self.table.fields[rows.start * ROW_BYTES : rows.stop * ROW_BYTES]
        return [
            series.fingerprint,
            self.part.epoch,
            series.most,
            bitmap_bytes(series.bits),
            limits,
            [[quota.hour, quota.source, -(-quota.limit // shards)] for quota in self.of.quotas],
            charged,
            raw(fields),
            *columns,
            verdicts,
        ]

    def cells(self, verdicts: list[int]) -> Iterator[tuple[str, Bytes]]:
        """Yield the messages of the reports that count, cell by cell."""
        rows, columns, messages = self.part.rows, self.table.columns, self.of.messages
        places = self.table.places[rows]
        periods, segments = columns.periods[rows], columns.segments[rows]
        if len(set(periods)) == len(set(segments)) == len(set(verdicts)) == 1:  # nearly always
            if verdicts[0] == _COUNTED:
                yield join_key(periods[0], segments[0]), messages.take(places, 0)
            return
        of_cell: dict[tuple[int, int], list[int]] = {}
        numbers = zip(periods, segments, verdicts, places.tolist(), strict=True)
        for period, segment, code, place in numbers:
            if code == _COUNTED:
                of_cell.setdefault((period, segment), []).append(place)
        for cell, chosen in of_cell.items():
            yield join_key(*cell), messages.take(chosen, 0)

    def tallies(self, permutation: RowPermutation, verdicts: list[int]) -> Iterator[list[Any]]:
        """Yield what to add to the counters of each cell."""
        series = self.of.series
        for cell, messages in self.cells(verdicts):
            places, counts = increments(series.collection, messages)
            if series.counts_hashes:
                places = permutation.apply_hashes(np.array(places, np.int64)).tolist()
            yield [series.fingerprint, series.counters, cell, len(messages), places, counts]

    def refusals(self, verdicts: list[int]) -> Iterator[str | int]:
        """Yield service counters of reports that are not counted, each with its number."""
        periods, fingerprint = (
            self.table.columns.periods[self.part.rows],
            self.of.series.fingerprint,
        )
        refused = Counter(zip(periods, verdicts, strict=True))
        for (period, code), times in refused.items():
            if code != _COUNTED:
                for counter, number in refusal_counts(fingerprint, period, code, times).items():
                    yield from (join_key(*counter), number)

    def learn(self, verdicts: Codes | np.uint8) -> None:
        """Expect these verdicts."""
        self.expected[:] = verdicts


@dataclass(frozen=True, slots=True)
class ShardCommit:
    """The part of a group that one shard gets."""

    shard: int
    leaves: Sequence[EpochBatch]
    counts: ServiceCounts

    def command(self, identity: StoreIdentity) -> Command:
        """Return the call, with the verdicts that are expected now."""
        pages: list[list[Any]] = []
        tallies: list[list[Any]] = []
        counts: list[str | int] = []
        for leaf in self.leaves:
            verdicts = leaf.expected.tolist()
            pages.append(leaf.page(identity.shards, verdicts))
            tallies += leaf.tallies(identity.permutation, verdicts)
            if verdicts.count(_COUNTED) < len(verdicts):
                counts += leaf.refusals(verdicts)
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
            leaf.learn(verdicts[first : first + len(leaf.expected)])
            first += len(leaf.expected)
        return True

    def give_up(self) -> None:
        """Leave its reports undecided."""
        for leaf in self.leaves:
            leaf.learn(UNDECIDED)
