"""All reports of a group as one table, divided by one sort: by shard, series and epoch.

With many series or shards each part has a report or two, and touching a column of a part costs as
much as one of the whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from veilcount_analysis.series.series import Series

from ..series_reports import Bytes, Codes, Numbers, Quota, SeriesReports
from .identity import StoreIdentity
from .row_permutation import shard_numbers

Places = NDArray[np.intp]
_EPOCHS = 1 << 32  # more than any series has


@dataclass(frozen=True, slots=True)
class GroupSeries:
    """The fields that all reports of one series in a group share."""

    series: Series
    quotas: Sequence[Quota]
    first: int  # the place of its first report, series by series
    messages: Bytes


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

    members: Sequence[tuple[int, SeriesReports]]  # by series, with their places in the group
    series: Sequence[GroupSeries]
    order: Places  # the place of each report, series by series
    fields: Bytes  # the names under which rows are stored
    columns: GroupColumns
    expected: Codes  # the verdict of each report; updated by the answers
    parts: Sequence[GroupPart]

    @classmethod
    def divide(cls, identity: StoreIdentity, group: Sequence[SeriesReports]) -> GroupTable:
        """Divide a group."""
        by_series: dict[str, list[tuple[int, SeriesReports]]] = {}
        for place, member in enumerate(group):
            by_series.setdefault(member.series.fingerprint, []).append((place, member))
        members = list(chain.from_iterable(by_series.values()))
        parts = [part for _, part in members]
        series = list(_series([part for _, part in of] for of in by_series.values()))
        names = identity.permutation.apply(_joined(parts, "rows"))
        shards = shard_numbers(names.places, identity.shards)
        keys = _keys(shards, series, _joined(parts, "epochs"))
        order = np.argsort(keys, kind="stable")
        limits = [-(-part.new_pseudonym_limit // identity.shards) for part in parts]
        charged = [
            _charged(part, joined)
            for joined, of in zip(series, by_series.values(), strict=True)
            for _, part in of
        ]
        columns = (_joined(parts, name) for name in GroupColumns._fields[3:])
        return cls(
            members,
            series,
            order,
            names.fields[order],
            GroupColumns(
                *(_repeated(numbers, parts, order) for numbers in (limits, charged)),
                *(column[order].tolist() for column in (names.places, *columns)),
            ),
            _joined(parts, "default_verdicts")[order],
            list(_parts(keys[order], len(series))),
        )

    def verdicts(self) -> list[Codes]:
        """Return the verdicts of each member of the group."""
        codes = np.empty_like(self.expected)
        codes[self.order] = self.expected
        ends = pairwise(accumulate((len(member) for _, member in self.members), initial=0))
        of_place = {
            place: codes[slice(*end)] for (place, _), end in zip(self.members, ends, strict=True)
        }
        return [of_place[place] for place in range(len(of_place))]


def _series(groups: Iterable[Sequence[SeriesReports]]) -> Iterator[GroupSeries]:
    """Yield each series of the group, with all its messages."""
    first = 0
    for parts in groups:
        quotas = list(dict.fromkeys(part.quota for part in parts if part.quota is not None))
        messages = _joined(parts, "messages")
        yield GroupSeries(parts[0].series, quotas, first, messages)
        first += len(messages)


def _charged(part: SeriesReports, series: GroupSeries) -> int:
    return 0 if part.quota is None else 1 + series.quotas.index(part.quota)


def _repeated(numbers: list[int], parts: Sequence[SeriesReports], order: Places) -> list[int]:
    """Return for each report the number of its part of the group."""
    if len(set(numbers)) == 1:  # nearly always
        return numbers[:1] * len(order)
    repeated: list[int] = np.repeat(numbers, [len(part) for part in parts])[order].tolist()
    return repeated


def _keys(shards: Numbers, series: Sequence[GroupSeries], epochs: Numbers) -> Numbers:
    """Return one number for the shard, series and epoch of each report."""
    numbers = np.repeat(np.arange(len(series)), [len(joined.messages) for joined in series])
    keys: Numbers = (shards * len(series) + numbers) * _EPOCHS + epochs
    return keys


def _parts(keys: Numbers, series: int) -> Iterator[GroupPart]:
    """Yield the parts of reports that are sorted by their keys."""
    starts = [0, *(np.flatnonzero(keys[1:] != keys[:-1]) + 1).tolist()] if len(keys) else []
    for key, end in zip(keys[starts].tolist(), pairwise([*starts, len(keys)]), strict=True):
        shard_and_series, epoch = divmod(key, _EPOCHS)
        shard, number = divmod(shard_and_series, series)
        yield GroupPart(shard, number, epoch, slice(*end))


def _joined(parts: Sequence[SeriesReports], column: str) -> NDArray[Any]:
    columns = [getattr(part, column) for part in parts]
    return columns[0] if len(columns) == 1 else np.concatenate(columns)
