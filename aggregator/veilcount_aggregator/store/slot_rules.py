"""The rules that give each report its verdict, from what its row has spent (`interface.Store`).

Nothing here reads or writes a store. A `SeriesState` is what a group touches of one series: an
engine fills it with what it holds (or with mappings that look it up lazily), `assign_verdicts`
updates it, and the engine writes what has changed.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from operator import and_

import numpy as np

from veilcount_analysis.series.series import Series
from veilcount_shared.verdict import Verdict

from .interface import Cell
from .series_reports import (
    CODES,
    COUNTED,
    HOURLY_FULL,
    ROW_BYTES,
    Bytes,
    Codes,
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
#: row, period, segment, slot, and the verdict if the slot is free
_Report = tuple[Row, int, int, int, int]


@dataclass(slots=True)
class SeriesState:
    """One series as a group finds it, and as it leaves it."""

    series: Series
    dropped: int  # the first epoch that was not
    spent: MutableMapping[Row, int]  # each row's slots, slot 0 the lowest bit; 0: no such row
    new_rows: MutableMapping[int, int]  # each period's new rows so far
    hourly: MutableMapping[Quota, int]  # what of each quota is spent
    most: int = field(init=False)
    changed: set[Row] = field(default_factory=set)
    grown: set[int] = field(default_factory=set)  # periods with new rows
    charged: set[Quota] = field(default_factory=set)  # quotas with new rows
    steps: Counter[tuple[int, int, int]] = field(default_factory=Counter)  # epoch, spent, and now
    counted: dict[Cell, list[Bytes]] = field(default_factory=dict)
    refused: Counter[tuple[int, int]] = field(default_factory=Counter)  # (period, verdict's code)

    def __post_init__(self) -> None:
        """Look up once what every report is held against."""
        self.most = self.series.most


def assign_verdicts(state: SeriesState, reports: SeriesReports, rows: Sequence[Row]) -> Codes:
    """Return the verdict of each report, in order, and update the state."""
    if len(rows) > FEW and _count_all(state, reports, rows):
        return np.full(len(rows), COUNTED)
    verdicts: list[int] = []
    places: dict[Cell, list[int]] = {}
    for place, report in enumerate(_reports(reports, rows)):
        verdict = _verdict(state, reports, report)
        verdicts.append(verdict)
        _, period, segment, _, _ = report
        if verdict == _COUNTED:
            _spend(state, reports.quota, report)
            places.setdefault(Cell(period, segment), []).append(place)
        else:
            state.refused[period, verdict] += 1
    _count(state, reports, places)
    return np.array(verdicts, np.uint8)


def _count(state: SeriesState, reports: SeriesReports, places: Mapping[Cell, list[int]]) -> None:
    for cell, chosen in places.items():
        state.counted.setdefault(cell, []).append(reports.messages[chosen])


def _count_all(state: SeriesState, reports: SeriesReports, rows: Sequence[Row]) -> bool:
    """Count all reports if none is refused, as nearly always; else change nothing: a fast path."""
    masks = _masks(rows, reports.slots.tolist())
    if masks is None or (reports.default_verdicts != COUNTED).any():
        return False
    had = {row: state.spent[row] for row in masks}
    has = {row: had[row] | mask for row, mask in masks.items()}
    periods = reports.periods.tolist()
    begun = dict(zip(reversed(rows), reversed(periods), strict=True))  # each row's first period
    new = Counter([begun[row] for row, spent in had.items() if not spent])
    if not (_are_free(state, had, masks, has) and _are_within(state, reports, new)):
        return False
    _advance(state, had, has)
    for period, number in new.items():
        _grow(state, reports.quota, period, number)
    cells = list(zip(periods, reports.segments.tolist(), strict=True))
    if len(set(cells)) == 1:
        state.counted.setdefault(Cell(*cells[0]), []).append(reports.messages)
        return True
    places: dict[Cell, list[int]] = {}
    for place, cell in enumerate(cells):
        places.setdefault(Cell._make(cell), []).append(place)
    _count(state, reports, places)
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


def _are_within(state: SeriesState, reports: SeriesReports, new: Counter[int]) -> bool:
    """Whether so many new rows of each period are within all limits."""
    most, quota = reports.new_pseudonym_limit, reports.quota
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


def row_keys(reports: SeriesReports) -> list[Row]:
    """Return the row of each report."""
    names = np.ascontiguousarray(reports.rows).view(f"V{ROW_BYTES}").ravel().tolist()
    return list(zip(reports.epochs.tolist(), names, strict=True))


def histogram_change(state: SeriesState, epoch: int) -> dict[int, int]:
    """Return by how much each number of spent slots has gained or lost rows in an epoch."""
    change: dict[int, int] = defaultdict(int)
    for (of, had, has), rows in state.steps.items():
        if of == epoch:
            change[has] += rows
            change[had] -= rows
    change.pop(0, None)  # rows that have spent nothing are no rows
    return change


def _reports(reports: SeriesReports, rows: Sequence[Row]) -> Iterator[_Report]:
    columns = (reports.periods, reports.segments, reports.slots, reports.default_verdicts)
    return zip(rows, *(column.tolist() for column in columns), strict=True)


def _verdict(state: SeriesState, reports: SeriesReports, report: _Report) -> int:
    """The contract's table, line by line. A closed row has all slots spent."""
    row, period, _, slot, otherwise = report
    if row[0] < state.dropped:
        return _STALE
    had = state.spent[row]
    if had >> slot & 1:
        return _DUPLICATE
    if otherwise != _COUNTED:
        return otherwise
    if not had and (limited := _limited(state, reports, period)) != _COUNTED:
        return limited
    if had.bit_count() >= state.most:
        return _OVER_BUDGET
    return _COUNTED


def _limited(state: SeriesState, reports: SeriesReports, period: int) -> int:
    """Return the verdict of the limits on a new row: its period's, its hour's and source's."""
    if state.new_rows[period] >= reports.new_pseudonym_limit:
        return _FULL
    quota = reports.quota
    if quota is not None and state.hourly[quota] >= quota.limit:
        return _DEFERRED
    return _COUNTED


def _spend(state: SeriesState, quota: Quota | None, report: _Report) -> None:
    row, period, _, slot, _ = report
    had = state.spent[row]
    has = state.spent[row] = had | 1 << slot
    state.changed.add(row)
    state.steps[row[0], had.bit_count(), has.bit_count()] += 1
    if not had:
        _grow(state, quota, period, 1)


def _advance(state: SeriesState, had: Mapping[Row, int], has: Mapping[Row, int]) -> None:
    """Have rows spend more than they had: the same rows, in the same order."""
    state.spent.update(has)
    state.changed.update(has)
    before, after = (map(int.bit_count, spent.values()) for spent in (had, has))
    state.steps.update(zip((epoch for epoch, _ in had), before, after, strict=True))


def _grow(state: SeriesState, quota: Quota | None, period: int, new: int) -> None:
    state.new_rows[period] += new
    state.grown.add(period)
    if quota is not None:
        state.hourly[quota] += new
        state.charged.add(quota)
