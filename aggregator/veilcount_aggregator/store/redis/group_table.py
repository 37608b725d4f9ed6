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


@dataclass(frozen=True, slots=True)
class GroupSeries:
    """What all reports of one series in a group have in common."""

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
    fields: Bytes  # the names under which rows are kept
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
        keys = np.array(
            [
                shard_numbers(names.places, identity.shards),
                np.repeat(np.arange(len(series)), [len(each.messages) for each in series]),
                _joined(parts, "epochs"),
            ]
        )
        order = np.lexsort(keys[::-1])
        limits = [-(-part.new_pseudonym_limit // identity.shards) for part in parts]
        charged = [
            0 if part.quota is None else 1 + each.quotas.index(part.quota)
            for each, of in zip(series, by_series.values(), strict=True)
            for _, part in of
        ]
        sizes = [len(part) for part in parts]
        defaults = _joined(parts, "default_verdicts")[order]
        columns = GroupColumns(
            np.repeat(limits, sizes)[order].tolist(),
            np.repeat(charged, sizes)[order].tolist(),
            names.places[order].tolist(),
            _joined(parts, "slots")[order].tolist(),
            _joined(parts, "periods")[order].tolist(),
            defaults.tolist(),
            _joined(parts, "segments")[order].tolist(),
        )
        batches = list(_parts(keys[:, order]))
        return cls(members, series, order, names.fields[order], columns, defaults, batches)

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


def _parts(keys: Numbers) -> Iterator[GroupPart]:
    """Yield the parts of reports that are sorted by shard, series and epoch."""
    if not keys.shape[1]:
        return
    starts = np.flatnonzero((keys[:, 1:] != keys[:, :-1]).any(axis=0)) + 1
    firsts = [0, *starts.tolist()]
    for key, end in zip(
        keys[:, firsts].T.tolist(), pairwise([*firsts, keys.shape[1]]), strict=True
    ):
        yield GroupPart(*key, slice(*end))


def _joined(parts: Sequence[SeriesReports], column: str) -> NDArray[Any]:
    columns = [getattr(part, column) for part in parts]
    return columns[0] if len(columns) == 1 else np.concatenate(columns)
