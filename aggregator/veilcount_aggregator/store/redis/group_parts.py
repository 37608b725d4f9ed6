"""The part of a group of reports that one shard gets, and its answers.

A `SeriesBatch` has all reports of one series in a group, an `EpochBatch` those of one epoch and
shard, a `ShardCommit` all of a shard. Each has the expected verdict of every report: a call adds
up by these.

Where counters need memory beyond a limit, the answer has their pages. What touches them is `full`
from then on unless its slot is spent. A refusal may let another report of the same row count, which
may be refused next: after `PAGE_BY_PAGE` such answers, a row is refused whole, so that no device
uses up the tries of its group. It may also leave a period's room to another row: after `ROW_BY_ROW`
answers, all of an epoch are refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...mechanisms import counter_places, increments
from ..memory_limit import PAGE, share
from ..series_reports import (
    COUNTED,
    MEMORY_FULL,
    ROW_BYTES,
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
from .memory_limit import ShardLimits
from .row_permutation import PermutedRows
from .shard_client import Command

PAGE_BY_PAGE, ROW_BY_ROW = 3, 12

Chosen = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class SeriesBatch:
    """All reports of one series in a group, and the expected verdict of each."""

    reports: SeriesReports
    row_limits: Numbers  # of each report's request
    quotas: Sequence[Quota]
    charged: Numbers  # each report's quota, counted from 1; 0: none
    names: PermutedRows
    otherwise: Codes  # the verdict if the slot is free: changed where memory is full
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
            [[each.hour, each.source, -(-each.limit // shards)] for each in self.sheet.quotas],
            self.sheet.charged[chosen].tolist(),
            raw(self.sheet.names.fields[chosen].tobytes()),
            self.sheet.names.places[chosen].tolist(),
            reports.slots[chosen].tolist(),
            reports.periods[chosen].tolist(),
            self.sheet.otherwise[chosen].tolist(),
            self.sheet.expected[chosen].tolist(),
        ]

    def cells(self) -> Iterator[tuple[str, Chosen]]:
        """Return the reports that count, cell by cell."""
        reports = self.sheet.reports
        counted = self.chosen[self.sheet.expected[self.chosen] == COUNTED]
        for period, of_period in group_by_value(reports.periods, counted):
            for segment, of_cell in group_by_value(reports.segments, of_period):
                yield join_key(period, segment), of_cell

    def tally(self, cell: str, chosen: Chosen, shards: int, most: int) -> list[Any]:
        """Return what to add to the counters of a cell, and the shard's share of the limit."""
        reports, series = self.sheet.reports, self.sheet.reports.series
        limit = min(share(reports.memory.series, shards), most)
        figures = increments(series.collection, reports.messages[chosen])
        return [series.fingerprint, series.counters, limit, cell, len(chosen), *figures]

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

    def touching(self, chosen: Chosen, pages: set[int]) -> Chosen:
        """Return those of a cell whose counters are in some of its pages."""
        reports = self.sheet.reports
        places = counter_places(reports.series.collection, reports.messages[chosen])
        if places is None:
            return chosen
        # Nearly always a handful, which lists are faster for.
        return chosen[[page in pages for page in (places // PAGE).tolist()]]

    def of_rows(self, chosen: Chosen) -> Chosen:
        """Return all reports of the same rows."""
        names = np.ascontiguousarray(self.sheet.names.fields).view(f"V{ROW_BYTES}").ravel()
        rows = set(names[chosen].tolist())
        return self.chosen[[row in rows for row in names[self.chosen].tolist()]]

    def refuse(self, chosen: Chosen) -> None:
        """Expect `full` for those that were to be counted."""
        counted = chosen[self.sheet.otherwise[chosen] == COUNTED]
        self.sheet.otherwise[counted] = MEMORY_FULL
        self.sheet.expected[counted] = MEMORY_FULL


@dataclass(slots=True)
class ShardCommit:
    """The part of a group that one shard gets."""

    shard: int
    leaves: Sequence[EpochBatch]
    counts: ServiceCounts
    limits: ShardLimits
    refusals: int = 0  # answers that counters do not fit

    def command(self, identity: StoreIdentity) -> Command:
        """Return the call, with the verdicts that are expected now."""
        pages = [leaf.page(identity.shards) for leaf in self.leaves]
        tallies = [
            leaf.tally(cell, chosen, identity.shards, self.limits.series)
            for leaf, cell, chosen in self._cells()
        ]
        counts: list[str | int] = [counter for leaf in self.leaves for counter in leaf.refusals()]
        for counter, times in self.counts.items():
            counts += (join_key(*counter), times) if times else ()
        base = identity.bases[self.shard]
        arguments = pack([pages, tallies, counts, self.limits.total])
        return identity.call("commit", base, arguments)

    def learn(self, answer: int | bytes | list[int]) -> bool:
        """Take an answer; return whether the call has to be repeated: nothing was written."""
        if isinstance(answer, int):
            return False
        if isinstance(answer, list):
            self._refuse(answer)
            return True
        verdicts, first = np.frombuffer(answer, np.uint8), 0
        for leaf in self.leaves:
            leaf.learn(verdicts[first : first + len(leaf.chosen)])
            first += len(leaf.chosen)
        return True

    def give_up(self) -> None:
        """Leave its reports undecided."""
        for leaf in self.leaves:
            leaf.learn(UNDECIDED)

    def _cells(self) -> list[tuple[EpochBatch, str, Chosen]]:
        """Return the cells that are counted in, by their first reports: those have memory first."""
        found = [(leaf, *cell) for leaf in self.leaves for cell in leaf.cells()]
        return sorted(found, key=lambda each: int(each[2][0]))

    def _refuse(self, unfit: list[int]) -> None:
        """Refuse what touches pages that do not fit, each by its tally and its number."""
        self.refusals += 1
        pages: dict[int, set[int]] = {}
        for tally, page in zip(unfit[::2], unfit[1::2], strict=True):
            pages.setdefault(tally, set()).add(page)
        cells = self._cells()
        for tally, numbers in pages.items():
            leaf, _, chosen = cells[tally]
            refused = leaf.touching(chosen, numbers)
            if self.refusals > ROW_BY_ROW:
                refused = leaf.chosen
            elif self.refusals > PAGE_BY_PAGE:
                refused = leaf.of_rows(refused)
            leaf.refuse(refused)


def group_by_value(column: Numbers | Codes, chosen: Chosen) -> Iterator[tuple[int, Chosen]]:
    """Return the chosen places by what stands there, in their order."""
    numbers = column[chosen]
    found = set(numbers.tolist())
    if len(found) == 1:  # nearly always
        yield found.pop(), chosen
        return
    for number in sorted(found):
        yield number, chosen[numbers == number]
