"""All reports of a group as one table, divided by one sort: by shard, series and epoch.

With many series or shards each part has a report or two, and touching a column of a part costs as
much as one of the whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from veilcount_analysis.series.series import Series

from ..series_reports import (
    Bytes,
    CoalescedReports,
    Codes,
    Numbers,
    Quota,
    SeriesReports,
    coalesce,
)
from .identity import StoreIdentity
from .row_permutation import shard_numbers

Places = NDArray[np.intp]
_EPOCHS = 1 << 32  # more than any series has
MANY = 1000  # reports: fewer are listed sooner than compared


class GroupSeries(NamedTuple):
    """The fields that all reports of one series in a group share."""

    series: Series
    quotas: list[Quota]
    messages: Bytes  # of the table


class GroupColumns(NamedTuple):
    """Numbers of each report, as a call has them."""

    row_limits: list[int]  # of its request; each shard has its share, rounded up
    charged: list[int]  # its quota, counted from 1 within the series; 0: none
    places: list[int]
    slots: list[int]
    periods: list[int]
    default_verdicts: list[int]
    segments: list[int]


class GroupPart(NamedTuple):
    """The reports of one shard, series and epoch."""

    shard: int
    series: int
    epoch: int
    rows: slice


@dataclass(frozen=True, slots=True)
class GroupTable:
    """The reports of a group: those of one shard, series and epoch together, in their order."""

    tables: Sequence[CoalescedReports]
    series: Sequence[GroupSeries]
    order: Places  # the place of each report, table by table
    places: Places  # of each report in its own table
    fields: bytes  # the names under which rows are stored
    columns: GroupColumns
    expected: Codes  # the verdict of each report; updated by the answers
    parts: Sequence[GroupPart]

    @classmethod
    def divide(cls, identity: StoreIdentity, group: Sequence[SeriesReports]) -> GroupTable:
        """Divide a group."""
        tables = coalesce(group)
        series, numbers, charged = _numbered(tables)
        names = identity.permutation.apply(_joined(tables, "rows"))
        shards = shard_numbers(names.places, identity.shards)
        keys = (shards * len(series) + numbers) * _EPOCHS + _joined(tables, "epochs")
        order = np.argsort(keys, kind="stable")
        limits = -(-_joined(tables, "limits") // identity.shards)
        columns = (_joined(tables, name) for name in GroupColumns._fields[3:])
        return cls(
            tables,
            series,
            order,
            np.concatenate([np.arange(len(table.reports)) for table in tables])[order],
            names.fields[order].tobytes(),
            GroupColumns(
                *(_listed(column, order) for column in (limits, charged, names.places, *columns))
            ),
            _joined(tables, "default_verdicts")[order],
            list(_parts(keys[order], len(series))),
        )

    def verdicts(self, group: Sequence[SeriesReports]) -> list[Codes]:
        """Return the verdicts of each member of the group that was divided."""
        codes = np.empty_like(self.expected)
        codes[self.order] = self.expected
        ends = pairwise(accumulate((len(table.reports) for table in self.tables), initial=0))
        of_place: dict[int, Codes] = {}
        for table, end in zip(self.tables, ends, strict=True):
            of_place.update(table.members(group, codes[slice(*end)]))
        return [of_place[place] for place in range(len(of_place))]


def _numbered(tables: Sequence[CoalescedReports]) -> tuple[list[GroupSeries], Numbers, Numbers]:
    """Return the series of a group; and of each report the series' number and what is charged."""
    numbers: dict[str, int] = {}
    series: list[GroupSeries] = []
    of_parts = []
    for table in tables:
        for part in table.reports.parts:
            number = numbers.setdefault(part.series.fingerprint, len(series))
            if number == len(series):
                series.append(GroupSeries(part.series, [], table.reports.messages))
            size = part.rows.stop - part.rows.start
            of_parts.append((number, _charged(part.quota, series[number].quotas), size))
    series_numbers, charged, sizes = np.array(of_parts).T
    return series, series_numbers.repeat(sizes), charged.repeat(sizes)


def _charged(quota: Quota | None, quotas: list[Quota]) -> int:
    """Return the place of a quota among those of its series, counted from 1; 0: there is none."""
    if quota is None:
        return 0
    if quota not in quotas:
        quotas.append(quota)
    return 1 + quotas.index(quota)


def _parts(keys: Numbers, series: int) -> Iterator[GroupPart]:
    """Yield the parts of reports that are sorted by their keys."""
    starts = [0, *(np.flatnonzero(keys[1:] != keys[:-1]) + 1).tolist()] if len(keys) else []
    for key, end in zip(keys[starts].tolist(), pairwise([*starts, len(keys)]), strict=True):
        shard_and_series, epoch = divmod(key, _EPOCHS)
        shard, number = divmod(shard_and_series, series)
        yield GroupPart(shard, number, epoch, slice(*end))


def _listed(column: Numbers, order: Places) -> list[int]:
    """Return numbers in an order. Of many reports, most columns have one number."""
    if len(column) > MANY and (column == column[0]).all():
        return [int(column[0])] * len(column)
    ordered: list[int] = column[order].tolist()
    return ordered


def _joined(tables: Sequence[CoalescedReports], column: str) -> NDArray[Any]:
    columns = [getattr(table.reports, column) for table in tables]
    return columns[0] if len(columns) == 1 else np.concatenate(columns)
