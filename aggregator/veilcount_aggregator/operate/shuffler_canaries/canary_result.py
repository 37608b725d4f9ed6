"""What the canaries of a plan say of a shuffler, and what they cannot say.

Only batches that have come whole are read, and only canaries whose receipt was acknowledged: a
right shuffler loses none of these.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil, floor

from veilcount_analysis.privacy.shuffled.shuffler_conduct import (
    ALPHA,
    CanaryOrder,
    batches_needed,
    drop_power,
    most_dropped,
)
from veilcount_analysis.series.series import Series
from veilcount_shared.shuffling.batch_record import BatchState

from ...records.shuffled_batches.batch_entry import BatchEntry
from ...records.shuffled_batches.record_store import batch_records
from ...store import Store
from .canary_file import CanaryBatch, CanaryFile

TENTH = 0.1
#: what stands beside every result
LIMITS = (
    "An order that is passed on outside the batch, or hidden in it by a key, is not seen.",
    "A shuffler that knows the canaries shows them nothing: send them from several networks.",
    "An order that is kept of a tenth of the reports is not seen.",
)


@dataclass(frozen=True, slots=True)
class CanaryBatchResult:
    """The canaries of one batch."""

    period: int
    state: str  # complete, incomplete, unfinished, awaited, or as its shuffler says: lost, ...
    planned: int
    held: int  # acknowledged by the shuffler
    missing: list[int]  # of these, the numbers that are not in the batch
    positions: list[int]  # of these, in the order of sending, where in the batch they are


@dataclass(frozen=True, slots=True)
class CanaryResult:
    """The canaries of all batches of a plan."""

    collection: str
    batches: list[CanaryBatchResult]

    @property
    def complete(self) -> list[CanaryBatchResult]:
        """The batches that can be read."""
        return [batch for batch in self.batches if batch.state == "complete"]

    @property
    def held(self) -> int:
        """How many canaries should be in complete batches."""
        return sum(batch.held for batch in self.complete)

    @property
    def dropped(self) -> int:
        """How many of these are not."""
        return sum(len(batch.missing) for batch in self.complete)

    @property
    def order(self) -> CanaryOrder:
        """The order of those that are."""
        return CanaryOrder.from_batches(batch.positions for batch in self.complete)

    @property
    def is_misconduct(self) -> bool:
        """Whether the order shows or a canary is missing."""
        return self.order.is_kept or self.dropped > 0

    @property
    def batches_missing(self) -> int | None:
        """How many batches more show a coarse order; None: batches of one canary never do."""
        typical = min((batch.planned for batch in self.batches), default=0)
        needed = batches_needed(typical)
        return None if needed is None else max(0, needed - self.order.batches)

    def sentences(self) -> Iterator[str]:
        """Yield what the canaries say."""
        yield self._order_sentence()
        yield self._drop_sentence()
        yield from LIMITS

    def _order_sentence(self) -> str:
        order, missing = self.order, self.batches_missing
        pairs = f"{order.inversions} of {order.pairs} pairs of canaries are inverted"
        if order.is_kept:
            return (
                f"order: KEPT. {pairs}, of a right shuffler about half. Such evidence comes of one"
                f" right shuffler in {round(1 / ALPHA)} at most, however often you look."
            )
        if missing is None:
            return "order: not tested. A batch needs two canaries at least: raise `least`."
        if missing:
            return f"order: open. {pairs} so far; batches that are still needed: {missing}."
        return f"order: not kept, as far as canaries see. {pairs}; batches: {order.batches}."

    def _drop_sentence(self) -> str:
        if self.dropped:
            return (
                f"reports: DROPPED. {self.dropped} of {self.held} canaries that the shuffler"
                " acknowledged are not in their batches."
            )
        if not self.held:
            return "reports: open. No batch with canaries is complete."
        most = ceil(1000 * most_dropped(self.held)) / 10  # what is promised is rounded outwards
        seen = floor(100 * drop_power(self.held, TENTH)) / 100
        return (
            f"reports: none of {self.held} canaries is missing: at most {most:.1f}% are dropped,"
            f" with 95% confidence. One tenth would show with probability {seen:.2f}."
        )


def read_result(store: Store, series: Series, file: CanaryFile) -> CanaryResult:
    """Return what became of a plan's canaries."""
    entries = {key: BatchEntry.decode(raw) for key, raw in store.batches(series).items()}
    absent = {
        record.crowd_id.hex(): record.state.name.lower().replace("_", "-")
        for record in batch_records(store, series)
        if record.state is not BatchState.HANDED_OVER
    }
    batches = [
        _batch_result(batch, entries.get(batch.crowd_id), absent.get(batch.crowd_id, "awaited"))
        for batch in file.batches
    ]
    return CanaryResult(file.collection, batches)


def _batch_result(batch: CanaryBatch, entry: BatchEntry | None, absent: str) -> CanaryBatchResult:
    """Return the result of a batch; `absent`: what it is called if nothing of it has come."""
    sent = sorted(
        (canary.held, canary.number) for canary in batch.canaries if canary.held is not None
    )
    numbers = [number for _, number in sent]
    if entry is None or not entry.is_complete:
        state = absent if entry is None else "unfinished" if entry.closed else "incomplete"
        return CanaryBatchResult(batch.period, state, len(batch.canaries), len(numbers), [], [])
    positions = entry.canary_positions
    return CanaryBatchResult(
        batch.period,
        "complete",
        len(batch.canaries),
        len(numbers),
        [number for number in numbers if number not in positions],
        [positions[number] for number in numbers if number in positions],
    )
