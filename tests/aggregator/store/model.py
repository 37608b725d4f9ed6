"""What a store does, in the plainest words: sets of slots and lists of messages, in one process."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from veilcount_aggregator.errors import StoreReadOnly
from veilcount_aggregator.store import VERDICT, Cell, Record, ServiceCounter
from veilcount_analysis.series.series import Series
from veilcount_shared.mechanisms import SubsetSelection
from veilcount_shared.verdict import Verdict

from .series_fixtures import SlotReport, slot_of


class Model:
    def __init__(self) -> None:
        self.slots: dict[tuple[str, int, bytes], set[int]] = {}
        self.closed: set[tuple[str, int, bytes]] = set()
        self.messages: dict[str, dict[Cell, list[int]]] = defaultdict(lambda: defaultdict(list))
        self.received: dict[str, dict[int, Counter[bytes]]] = defaultdict(
            lambda: defaultdict(Counter)
        )
        self.new: dict[str, Counter[int]] = defaultdict(Counter)
        self.dropped: Counter[str] = Counter()
        self.deleted: Counter[str] = Counter()
        self.service_counters: Counter[ServiceCounter] = Counter()
        self.records_by_kind: dict[str, dict[str, bytes]] = defaultdict(dict)
        self.changes = 0
        self.read_only = False

    def commit(self, series: Series, reports: Sequence[SlotReport], limit: int) -> list[Verdict]:
        """Judge and count."""
        self._open()
        return [self._judge(series, report, limit) for report in reports]

    def close_row(self, series: Series, epochs: Sequence[int], row: bytes) -> bool:
        self._open()
        name = series.fingerprint
        found = {
            (name, epoch, row)
            for epoch in epochs
            if epoch >= self.dropped[name] and (name, epoch, row) in self.slots
        }
        self.closed |= found
        return bool(found)

    def mark_dropped(self, series: Series, epochs: int) -> int:
        self._open()
        name, before = series.fingerprint, self.dropped[series.fingerprint]
        self.dropped[name] = max(before, epochs)
        return self.dropped[name] - before

    def finalize_dropped(self, series: Series) -> None:
        self._open()
        self.deleted[series.fingerprint] = self.dropped[series.fingerprint]

    def restore_dropped(self, series: Series) -> int:
        self._open()
        name, before = series.fingerprint, self.dropped[series.fingerprint]
        self.dropped[name] = self.deleted[name]
        return before - self.dropped[name]

    def change_records(self, generation: int, records: Sequence[Record]) -> bool:
        self._open()
        if generation != self.changes:
            return False
        for kind, key, value in records:
            if value is None:
                self.records_by_kind[kind].pop(key, None)
            else:
                self.records_by_kind[kind][key] = value
        self.changes += 1
        return True

    def report_counts(self, series: Series) -> dict[Cell, int]:
        return {cell: len(held) for cell, held in self.messages[series.fingerprint].items()}

    def counters(self, series: Series, cells: Sequence[Cell]) -> list[int]:
        """Return the sum of what the messages of these cells support."""
        mechanism = series.collection.mechanism
        total = [0] * series.counters
        for cell in cells:
            for message in self.messages[series.fingerprint].get(cell, ()):
                for x in (
                    mechanism.members(message)
                    if isinstance(mechanism, SubsetSelection)
                    else (message,)
                ):
                    total[x] += 1
        return total

    def spend_histograms(self, series: Series) -> dict[int, list[int]]:
        """Return how many rows of each epoch have spent 1, 2, .. slots."""
        return {
            epoch: [list(rows.values()).count(j) for j in range(1, series.most + 1)]
            for epoch, rows in self.received[series.fingerprint].items()
        }

    def _open(self) -> None:
        if self.read_only:
            raise StoreReadOnly

    def _judge(self, series: Series, report: SlotReport, limit: int) -> Verdict:
        verdict = self._verdict(series, report, limit)
        name, epoch = series.fingerprint, series.epoch(report.period)
        if verdict is not Verdict.COUNTED:
            self.service_counters[ServiceCounter(VERDICT, name, report.period, verdict)] += 1
            return verdict
        key = (name, epoch, report.row)
        self.new[name][report.period] += key not in self.slots
        self.slots.setdefault(key, set()).add(slot_of(series, report))
        self.received[name][epoch][report.row] += 1
        self.messages[name][Cell(report.period, report.segment)].append(report.message)
        return verdict

    def _verdict(self, series: Series, report: SlotReport, limit: int) -> Verdict:
        name, epoch = series.fingerprint, series.epoch(report.period)
        key = (name, epoch, report.row)
        spent = self.slots.get(key, set())
        if epoch < self.dropped[name]:
            return Verdict.STALE
        if slot_of(series, report) in spent or key in self.closed:
            return Verdict.DUPLICATE
        if report.otherwise is not Verdict.COUNTED:
            return report.otherwise
        if not spent and self.new[name][report.period] >= limit:
            return Verdict.FULL
        if len(spent) >= series.most:
            return Verdict.OVER_BUDGET
        return Verdict.COUNTED
