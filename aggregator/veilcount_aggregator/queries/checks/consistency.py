"""The consistency check of a store: reports equal spent slots, rows equal new pseudonyms.

The store may serve meanwhile. Counters only grow, so a figure that is read in between lies between
the counters before and after; while nothing is written, all are equal.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from veilcount_analysis.series.series import Series
from veilcount_analysis.text.privacy_guarantees import counts_are_public
from veilcount_serving.findings import CheckResult, or_ok, wrong

from ...store import ROW_BYTES, TallyReader, TransferPiece
from ...store.transfer_format import decode_numbers
from .store_snapshot import StoreSnapshot

FIX = "keep a copy of this store and report it to the developers: waiting loses no report"

Epoch = tuple[str, int]  # fingerprint, number


@dataclass(frozen=True, slots=True)
class CountedTotals:
    """The reports and new pseudonyms of each epoch, by the counters."""

    reports: Counter[Epoch]
    rows: Counter[Epoch]


@dataclass(frozen=True, slots=True)
class StoredLedgers:
    """The rows of each epoch that was not dropped, by their number of spent slots."""

    spent: Mapping[Epoch, Counter[int]]
    dropped: Mapping[str, int]

    def has(self, epoch: Epoch) -> bool:
        """Whether an epoch's rows are kept."""
        return epoch[1] >= self.dropped.get(epoch[0], 0)


@or_ok("counters, ledgers and histogram agree")
def counters_agree(stored: StoreSnapshot) -> Iterator[CheckResult]:
    """Compare counters, ledgers and the histogram of spent slots."""
    known = stored.catalog.series
    before = totals(stored.store, known)
    ledgers = read_ledgers(stored.store.export_pieces())
    spread = {name: stored.store.spend_histograms(one_series) for name, one_series in known.items()}
    after = totals(stored.store, known)
    for name, one_series in known.items():
        yield from _series(one_series, before, ledgers, spread[name], after)


def totals(store: TallyReader, known: Mapping[str, Series]) -> CountedTotals:
    """Return the current counters."""
    reports: Counter[Epoch] = Counter()
    rows: Counter[Epoch] = Counter()
    for name, series in known.items():
        for cell, number in store.report_counts(series).items():
            reports[name, series.epoch(cell.period)] += number
        for period, number in store.new_pseudonyms(series).items():
            rows[name, series.epoch(period)] += number
    return CountedTotals(reports, rows)


def read_ledgers(pieces: Iterator[TransferPiece]) -> StoredLedgers:
    """Return the number of spent slots of all rows."""
    spent: defaultdict[Epoch, Counter[int]] = defaultdict(Counter)
    dropped: dict[str, int] = {}
    for piece in pieces:
        if piece.kind == "dropped":
            dropped[piece.key] = int(decode_numbers(piece.body)[0])
        elif piece.kind == "rows":
            fingerprint, epoch, width, _ = piece.key.split("/")
            spent[fingerprint, int(epoch)].update(_bits(piece.body, int(width)))
    return StoredLedgers(spent, dropped)


def _bits(body: bytes, width: int) -> list[int]:
    rows = np.frombuffer(body, np.uint8).reshape(-1, ROW_BYTES + width)
    bits: list[int] = np.unpackbits(rows[:, ROW_BYTES:], axis=1).sum(axis=1).tolist()
    return bits


def _series(
    series: Series,
    before: CountedTotals,
    ledgers: StoredLedgers,
    spread: Mapping[int, np.ndarray[tuple[int], np.dtype[np.int64]]],
    after: CountedTotals,
) -> Iterator[CheckResult]:
    epochs = {epoch for epoch in after.reports | after.rows if epoch[0] == series.fingerprint}
    epochs |= {epoch for epoch in ledgers.spent if epoch[0] == series.fingerprint}
    for epoch in sorted(epochs):
        least, most = before.reports[epoch], after.reports[epoch]
        histogram = spread.get(epoch[1], np.zeros(0, np.int64))
        slots = int((histogram * np.arange(1, len(histogram) + 1)).sum())
        if off := _outside(slots, slots, least, most):
            yield _differ(series, epoch, "counted reports and slots in the histogram", off)
        if ledgers.has(epoch):
            yield from _ledger(series, epoch, ledgers.spent.get(epoch, Counter()), before, after)


def _ledger(
    series: Series, epoch: Epoch, spent: Counter[int], before: CountedTotals, after: CountedTotals
) -> Iterator[CheckResult]:
    """Compare the rows of one epoch.

    A row that its owner closed has all slots spent, and may have any number of reports.
    """
    rows, whole = spent.total(), spent[series.bits]
    if off := _outside(rows, rows, before.rows[epoch], after.rows[epoch]):
        yield _differ(series, epoch, "new pseudonyms and rows of the ledger", off)
    partly = sum(slots * times for slots, times in spent.items() if slots < series.bits)
    least, most = partly + whole, partly + whole * series.most
    if off := _outside(least, most, before.reports[epoch], after.reports[epoch]):
        yield _differ(series, epoch, "counted reports and spent slots", off)


def _outside(least: int, most: int, before: int, after: int) -> int:
    """Return the gap between the expected and the observed range; 0 if they overlap."""
    return max(least - after, before - most, 0)


def _differ(series: Series, epoch: Epoch, what: str, by: int) -> CheckResult:
    """Return a problem; the size of the difference only if exact counts are public."""
    public = counts_are_public(series.collection)
    size = f" by {by:,}" if public else ""
    return wrong(f"{series.collection.name}, epoch {epoch[1]}: {what} differ{size}", FIX)
