"""The store in memory: each method as plainly as its contract."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from threading import RLock

import numpy as np

from veilcount_analysis.series.hash_counts import NO_HASHES
from veilcount_analysis.series.series import Series

from ...errors import RetentionTooEarly, StoreReadOnly
from ..health import Durability, DurabilityState, ShardHealth, StoreHealth
from ..interface import BatchChange, Cell, Record, Records, TransferPiece
from ..series_reports import (
    Bytes,
    Codes,
    Counters,
    Flags,
    SeriesReports,
    ServiceCounter,
    ServiceCounts,
)
from ..transfer_format import add_padded, pad_zeros
from . import transfer
from .content import StoreContent
from .intake import NOTHING, bitmap, commit

VOLATILE = "in the memory of one process"


class MemoryStore:
    """The store of one process. `content` may be replaced by an older state of it."""

    def __init__(self) -> None:
        self.content = StoreContent()
        self._lock = RLock()

    def close(self) -> None:
        """Do nothing: it lasts as long as the process."""

    # -- the intake ----------------------------------------------------------------------------

    def commit(self, group: Sequence[SeriesReports], counts: ServiceCounts) -> list[Codes]:
        with self._changing() as content:
            content.service_counters.update(counts)
            return [commit(content, reports) for reports in group]

    def close_row(self, series: Series, epochs: Sequence[int], row: bytes) -> bool:
        with self._changing() as content:
            stored = content.series[series.fingerprint]
            named = [stored.rows[epoch] for epoch in epochs if epoch >= stored.dropped]
            present = [rows for rows in named if row in rows]
            for rows in present:
                rows[row] = bitmap(series, (1 << series.bits) - 1)
        return bool(present)

    def server_times(self) -> list[datetime]:
        return []

    def mark_dropped(self, series: Series, epochs: int, due: datetime, now: datetime) -> int:
        if now < due:
            raise RetentionTooEarly(f"{series.collection.name}: not before {due}")
        before = self.content.series[series.fingerprint].dropped
        if epochs <= before:
            return 0
        with self._changing() as content:
            stored = content.series[series.fingerprint]
            stored.dropped = epochs
            stored.drops[epochs] = now
        return epochs - before

    def finalize_dropped(self, series: Series, kept: timedelta, now: datetime) -> None:
        stored = self.content.series[series.fingerprint]
        due = [epochs for epochs, marked in stored.drops.items() if marked <= now - kept]
        if due:
            with self._changing():
                stored.final = max(due)
                stored.drops = {n: at for n, at in stored.drops.items() if n not in due}

    def delete_rows(self, series: Series) -> bool:
        with self._lock:
            stored = self.content.series[series.fingerprint]
            final = sorted(epoch for epoch in stored.rows if epoch < stored.final)
            for epoch in final[:1]:
                del stored.rows[epoch]
        return len(final) > 1

    def restore_dropped(self, series: Series) -> int:
        with self._changing() as content:
            stored = content.series[series.fingerprint]
            restored, stored.dropped, stored.drops = stored.dropped - stored.final, stored.final, {}
        return restored

    # -- what the analyst reads ----------------------------------------------------------------

    def report_counts(self, series: Series) -> dict[Cell, int]:
        return dict(+self.content.series[series.fingerprint].reports)

    def counters(self, series: Series, cells: Sequence[Cell]) -> Counters:
        tallies = self.content.series[series.fingerprint].tallies
        total = NO_HASHES if series.counts_hashes else np.zeros(series.counters, np.int64)
        for cell in cells:
            total = add_padded(total, tallies.get(cell, NOTHING))
        return total

    def spend_histograms(self, series: Series) -> dict[int, Counters]:
        spent_rows = self.content.series[series.fingerprint].spent_rows
        return {epoch: pad_zeros(rows, series.most) for epoch, rows in spent_rows.items()}

    def new_pseudonyms(self, series: Series) -> dict[int, int]:
        return dict(self.content.series[series.fingerprint].new_rows)

    def service_counts(self) -> dict[ServiceCounter, int]:
        return dict(+self.content.service_counters)

    def shard_count(self) -> int:
        return 1

    def counter_limit(self) -> int | None:
        return None

    # -- batches of shufflers ------------------------------------------------------------------

    def batches(self, series: Series) -> Records:
        return dict(self.content.series[series.fingerprint].batches)

    def batch(self, series: Series, key: str) -> bytes | None:
        return self.content.series[series.fingerprint].batches.get(key)

    def spent_tokens(self, series: Series, period: int, rows: Bytes) -> Flags:
        spent = self.content.series[series.fingerprint].tokens[period]
        return np.array([row.tobytes() in spent for row in rows], np.bool_)

    def change_batch(self, series: Series, change: BatchChange) -> bool:
        with self._changing() as content:
            stored = content.series[series.fingerprint]
            if stored.batches.get(change.key) != change.expected:
                return False
            if self.spent_tokens(series, change.period, change.spent).any():
                return False
            stored.batches.pop(change.key, None)
            if change.entry is not None:
                stored.batches[change.key] = change.entry
            stored.tokens[change.period].update(row.tobytes() for row in change.spent)
            if change.counters is not None:
                cell = Cell(change.period, 0)
                stored.reports[cell] += change.reports
                tally = stored.tallies.get(cell, NOTHING)
                stored.tallies[cell] = add_padded(tally, change.counters)
        return True

    def forget_tokens(self, series: Series, period: int) -> None:
        with self._changing() as content:
            content.series[series.fingerprint].tokens.pop(period, None)

    # -- records -------------------------------------------------------------------------------

    def generation(self) -> int:
        return self.content.generation

    def generations(self) -> Mapping[str, int]:
        return dict(self.content.generations)

    def records(self, kind: str) -> Records:
        return dict(self.content.records.get(kind, {}))

    def record_keys(self, kind: str) -> frozenset[str]:
        return frozenset(self.records(kind))

    def record_count(self, kind: str) -> int:
        return len(self.records(kind))

    def records_at(self, kind: str, keys: Collection[str]) -> Records:
        records = self.records(kind)
        return {key: records[key] for key in keys if key in records}

    def change_records(self, generation: int, records: Sequence[Record]) -> bool:
        with self._changing() as content:
            if content.generation != generation:
                return False
            _write(content, records)
            _advance(content, {record.kind for record in records})
        return True

    def change_record(self, record: Record, expected: bytes | None) -> bool:
        with self._changing() as content:
            if content.records[record.kind].get(record.key) != expected:
                return False
            _write(content, [record])
        return True

    def incarnation(self) -> str:
        return str(self.content.incarnation)

    # -- moving, and the operator --------------------------------------------------------------

    def set_read_only(self, *, on: bool) -> None:
        self.content.read_only = on

    def export_pieces(self) -> Iterator[TransferPiece]:
        with self._lock:
            return iter(list(transfer.pieces(self.content)))

    def import_pieces(self, pieces: Sequence[TransferPiece]) -> None:
        with self._changing() as content:
            _advance(content, transfer.absorb(content, pieces))

    def accept_losses(self, now: datetime) -> None:
        self.content.incarnation += 1

    def replicate(self, kinds: Sequence[str]) -> bool:
        """Do nothing: there is one process."""
        return True

    def replica(self, kind: str) -> tuple[int, Records]:
        return self.generation(), self.records(kind)

    def losses(self) -> Sequence[str]:
        return []

    def durability(self) -> Durability:
        return Durability(DurabilityState.NO, VOLATILE)

    def health(self) -> StoreHealth:
        return StoreHealth("memory", DurabilityState.NO, VOLATILE, self.content.read_only)

    def shards(self) -> list[ShardHealth]:
        return [ShardHealth("0", up=True)]

    def reachable_part(self) -> tuple[MemoryStore, bool]:
        return self, True

    @contextmanager
    def _changing(self) -> Iterator[StoreContent]:
        """Change the content, unless it is read-only."""
        with self._lock:
            content = self.content
            if content.read_only:
                raise StoreReadOnly("the store is read-only: allow writes first")
            yield content


def _write(content: StoreContent, records: Sequence[Record]) -> None:
    for kind, key, value in records:
        if value is None:
            content.records[kind].pop(key, None)
        else:
            content.records[kind][key] = value


def _advance(content: StoreContent, kinds: Collection[str]) -> None:
    """Advance the generation where records were changed, also to what they were."""
    content.generation += 1
    content.generations.update(dict.fromkeys(kinds, content.generation))
