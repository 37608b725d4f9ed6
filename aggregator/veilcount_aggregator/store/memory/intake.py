"""The verdicts of reports as the contract has them, one report after the other.

No rule is shared with the engines that are compared with it: nothing is looked up lazily, coalesced
or merged.
"""

from __future__ import annotations

import numpy as np

from veilcount_analysis.mechanisms import increments
from veilcount_analysis.series.series import Series
from veilcount_shared.verdict import Verdict

from ..interface import Cell
from ..series_reports import (
    CODES,
    COUNTED,
    HOURLY_FULL,
    Codes,
    Counters,
    SeriesPart,
    SeriesReports,
    refusal_counts,
)
from ..transfer_format import add_padded, bitmap_bytes, pad_zeros
from .content import SeriesContent, StoreContent

NOTHING: Counters = np.zeros(0, np.int64)


def commit(content: StoreContent, reports: SeriesReports) -> Codes:
    """Judge and count reports."""
    codes = []
    for part in reports.parts:
        stored = content.series[part.series.fingerprint]
        for place in range(len(reports))[part.rows]:
            code = _verdict(stored, part, reports, place)
            if code == COUNTED:
                _count(stored, part, reports, place)
            else:
                period = int(reports.periods[place])
                refused = refusal_counts(part.series.fingerprint, period, int(code), 1)
                content.service_counters.update(refused)
            codes.append(code)
    return np.array(codes, np.uint8)


def _verdict(
    stored: SeriesContent, part: SeriesPart, reports: SeriesReports, place: int
) -> np.uint8:
    """Return the first line of the contract's table that applies."""
    epoch = int(reports.epochs[place])
    spent = _spent(stored, epoch, reports.rows[place].tobytes())
    if epoch < stored.dropped:
        return CODES[Verdict.STALE]
    if spent >> int(reports.slots[place]) & 1:
        return CODES[Verdict.DUPLICATE]
    if reports.default_verdicts[place] != COUNTED:
        return np.uint8(reports.default_verdicts[place])
    if not spent and (limit := _exceeded_limit(stored, part, reports, place)) is not None:
        return limit
    if spent.bit_count() >= part.series.most:
        return CODES[Verdict.OVER_BUDGET]
    return COUNTED


def _count(stored: SeriesContent, part: SeriesPart, reports: SeriesReports, place: int) -> None:
    """Spend a report's slot, and add its message to the tally."""
    series, epoch, row = part.series, int(reports.epochs[place]), reports.rows[place].tobytes()
    cell = Cell(int(reports.periods[place]), int(reports.segments[place]))
    spent = _spent(stored, epoch, row)
    stored.rows[epoch][row] = bitmap(series, spent | 1 << int(reports.slots[place]))
    if not spent:
        stored.new_rows[cell.period] += 1
        if part.quota:
            stored.charged[part.quota.hour, part.quota.source] += 1
    histogram = pad_zeros(stored.spent_rows.get(epoch, NOTHING), series.most)
    histogram[spent.bit_count()] += 1
    if spent:
        histogram[spent.bit_count() - 1] -= 1
    stored.spent_rows[epoch] = histogram
    stored.reports[cell] += 1
    places, times = increments(series.collection, reports.messages[place : place + 1])
    if series.counts_hashes:
        one = np.array([places, times], np.int64)
        stored.tallies[cell] = add_padded(stored.tallies.get(cell, NOTHING), one)
        return
    if len(stored.tallies.get(cell, NOTHING)) < series.counters:  # it is new, or was imported
        stored.tallies[cell] = pad_zeros(stored.tallies.get(cell, NOTHING), series.counters)
    stored.tallies[cell][places] += times


def _exceeded_limit(
    stored: SeriesContent, part: SeriesPart, reports: SeriesReports, place: int
) -> np.uint8 | None:
    """Return the verdict of the limit that a new row would exceed; None: of none."""
    if stored.new_rows[int(reports.periods[place])] >= reports.limits[place]:
        return CODES[Verdict.FULL]
    quota = part.quota
    if quota and stored.charged[quota.hour, quota.source] >= quota.limit:
        return HOURLY_FULL
    return None


def _spent(stored: SeriesContent, epoch: int, row: bytes) -> int:
    return int.from_bytes(stored.rows[epoch].get(row, b""), "little")


def bitmap(series: Series, spent: int) -> bytes:
    """Return the spent slots of a row, as they are stored."""
    return spent.to_bytes(bitmap_bytes(series.bits), "little")
