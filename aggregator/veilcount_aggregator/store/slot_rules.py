"""The rules that give each report its verdict, from what its row has spent (`interface.Store`).

Nothing here reads or writes a store. A `SeriesState` is what a group touches of one series: an
engine fills it with what it holds (or with mappings that look it up lazily), `assign_verdicts`
updates it, and the engine writes what has changed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from operator import and_
from typing import Any

import numpy as np

from veilcount_shared.verdict import Verdict

from .interface import Cell
from .series_reports import (
    CODES,
    COUNTED,
    HOURLY_FULL,
    ROW_BYTES,
    Quota,
    SeriesReports,
)

_STALE = int(CODES[Verdict.STALE])
_DUPLICATE = int(CODES[Verdict.DUPLICATE])
_FULL = int(CODES[Verdict.FULL])
_OVER_BUDGET = int(CODES[Verdict.OVER_BUDGET])
_COUNTED = int(COUNTED)
_DEFERRED = int(HOURLY_FULL)

#: so many reports are judged faster one by one
FEW = 8
#: an epoch and the first bytes of a pseudonym
Row = tuple[int, bytes]
#: place in its table, row, period, segment, slot, the verdict if the slot is free, period's limit
Report = tuple[int, Row, int, int, int, int, int]


@dataclass(slots=True)
class SeriesState:
    """One series as a group finds it, and as it leaves it."""

    most: int  # slots of a row that may be spent
    dropped: int  # the first epoch that was not
    spent: MutableMapping[Row, int]  # each row's slots, slot 0 the lowest bit; 0: no such row
    new_rows: MutableMapping[int, int]  # each period's new rows so far
    hourly: MutableMapping[Quota, int]  # what of each quota is spent
    changed: set[Row] = field(default_factory=set)
    grown: set[int] = field(default_factory=set)  # periods with new rows
    charged: set[Quota] = field(default_factory=set)  # quotas with new rows
    steps: dict[tuple[int, int, int], int] = field(default_factory=dict)  # epoch, spent, and now
    counted: dict[Cell, list[int]] = field(default_factory=dict)  # places of reports
    refused: dict[tuple[int, int], int] = field(default_factory=dict)  # (period, verdict's code)


@dataclass(frozen=True, slots=True)
class ListedReports:
    """Reports as Python has them, in columns: a report's place, and so on as in `Report`."""

    columns: tuple[Any, ...]

    def __len__(self) -> int:
        return len(self.columns[0])

    def __iter__(self) -> Iterator[Report]:
        return zip(*self.columns, strict=True)

    def __getitem__(self, rows: slice) -> ListedReports:
        if rows == slice(0, len(self)):  # nearly always, where there are many
            return self
        return ListedReports(tuple([column[rows] for column in self.columns]))


def reports_of(table: SeriesReports) -> ListedReports:
    """Return reports as Python has them: a table of many series costs as much as one of few."""
    names = np.ascontiguousarray(table.rows).view(f"V{ROW_BYTES}").ravel().tolist()
    rows = list(zip(table.epochs.tolist(), names, strict=True))
    columns = (table.periods, table.segments, table.slots, table.default_verdicts, table.limits)
    return ListedReports((range(len(rows)), rows, *(column.tolist() for column in columns)))


def assign_verdicts(state: SeriesState, quota: Quota | None, reports: ListedReports) -> list[int]:
    """Return the verdict of each report, in order, and update the state."""
    if len(reports) > FEW and _count_all(state, quota, reports):
        return [_COUNTED] * len(reports)
    verdicts = []
    for report in reports:
        verdict = _verdict(state, quota, report)
        verdicts.append(verdict)
        place, _, period, segment, *_ = report
        if verdict == _COUNTED:
            _spend(state, quota, report)
            state.counted.setdefault(Cell(period, segment), []).append(place)
        else:
            state.refused[period, verdict] = state.refused.get((period, verdict), 0) + 1
    return verdicts


def _count_all(state: SeriesState, quota: Quota | None, reports: ListedReports) -> bool:
    """Count all reports if none is refused, as nearly always; else change nothing: a fast path."""
    places, rows, periods, segments, slots, otherwise, limits = reports.columns
    masks = _masks(rows, slots)
    if masks is None or set(otherwise) != {_COUNTED}:
        return False
    had = {row: state.spent[row] for row in masks}
    has = {row: had[row] | mask for row, mask in masks.items()}
    begun = dict(zip(reversed(rows), reversed(periods), strict=True))  # each row's first period
    new = Counter([begun[row] for row, spent in had.items() if not spent])
    if not (_are_free(state, had, masks, has) and _are_within(state, min(limits), quota, new)):
        return False
    _advance(state, had, has)
    for period, number in new.items():
        _grow(state, quota, period, number)
    cells = list(zip(periods, segments, strict=True))
    if len(set(cells)) == 1:
        state.counted.setdefault(Cell(*cells[0]), []).extend(places)
        return True
    for place, cell in zip(places, cells, strict=True):
        state.counted.setdefault(Cell._make(cell), []).append(place)
    return True


def _are_free(
    state: SeriesState, had: Mapping[Row, int], masks: Mapping[Row, int], has: Mapping[Row, int]
) -> bool:
    """Whether all rows may spend these slots."""
    return not masks or (
        min(epoch for epoch, _ in masks) >= state.dropped
        and not any(map(and_, had.values(), masks.values()))
        and max(map(int.bit_count, has.values())) <= state.most
    )


def _are_within(state: SeriesState, most: int, quota: Quota | None, new: Counter[int]) -> bool:
    """Whether so many new rows of each period are within all limits."""
    return all(state.new_rows[period] + number <= most for period, number in new.items()) and (
        not new or quota is None or state.hourly[quota] + new.total() <= quota.limit
    )


def _masks(rows: Sequence[Row], slots: Sequence[int]) -> dict[Row, int] | None:
    """Return the slots that each row is to spend; None: one of them twice."""
    masks: dict[Row, int] = {}
    for row, slot in zip(rows, slots, strict=True):
        mask = masks.get(row, 0)
        if mask >> slot & 1:
            return None
        masks[row] = mask | 1 << slot
    return masks


def _verdict(state: SeriesState, quota: Quota | None, report: Report) -> int:
    """The contract's table, line by line. A closed row has all slots spent."""
    _, row, period, _, slot, otherwise, limit = report
    if row[0] < state.dropped:
        return _STALE
    had = state.spent[row]
    if had >> slot & 1:
        return _DUPLICATE
    if otherwise != _COUNTED:
        return otherwise
    if not had and (limited := _limited(state, quota, period, limit)) != _COUNTED:
        return limited
    if had.bit_count() >= state.most:
        return _OVER_BUDGET
    return _COUNTED


def _limited(state: SeriesState, quota: Quota | None, period: int, limit: int) -> int:
    """Return the verdict of the limits on a new row: its period's, its hour's and source's."""
    if state.new_rows[period] >= limit:
        return _FULL
    if quota is not None and state.hourly[quota] >= quota.limit:
        return _DEFERRED
    return _COUNTED


def _spend(state: SeriesState, quota: Quota | None, report: Report) -> None:
    _, row, period, _, slot, *_ = report
    had = state.spent[row]
    has = state.spent[row] = had | 1 << slot
    state.changed.add(row)
    _step(state, (row[0], had.bit_count(), has.bit_count()), 1)
    if not had:
        _grow(state, quota, period, 1)


def _advance(state: SeriesState, had: Mapping[Row, int], has: Mapping[Row, int]) -> None:
    """Have rows spend more than they had: the same rows, in the same order."""
    state.spent.update(has)
    state.changed.update(has)
    before, after = (map(int.bit_count, spent.values()) for spent in (had, has))
    steps = Counter(zip((epoch for epoch, _ in had), before, after, strict=True))
    for step, rows in steps.items():
        _step(state, step, rows)


def _step(state: SeriesState, step: tuple[int, int, int], rows: int) -> None:
    state.steps[step] = state.steps.get(step, 0) + rows


def _grow(state: SeriesState, quota: Quota | None, period: int, new: int) -> None:
    state.new_rows[period] += new
    state.grown.add(period)
    if quota is not None:
        state.hourly[quota] += new
        state.charged.add(quota)
