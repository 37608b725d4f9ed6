"""Batches of shufflers in the machine of stores: parts, commits, second batches, records, ends.

The intake itself runs over both stores, from parts on that are signed and opened: what it reads of
one, and writes, is what it reads of the other.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from functools import partial

import numpy as np
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule

from veilcount_aggregator.errors import BatchTooEarly, BatchTooLate, RecordDiffers, SecondBatch
from veilcount_aggregator.intake.shuffled_batches.batch_checks import BatchOrigin
from veilcount_aggregator.intake.shuffled_batches.batch_intake import BatchIntake
from veilcount_aggregator.intake.shuffled_batches.expiry import close_batches
from veilcount_aggregator.intake.shuffled_batches.opening import OpenedPart, SealedPart
from veilcount_aggregator.records.shuffled_batches.batch_states import batch_states
from veilcount_aggregator.records.shuffled_batches.record_store import (
    batch_records,
    keep_record,
    require_recorded_numbers,
)
from veilcount_aggregator.store import ROW_BYTES, BatchChange, Bytes, Store
from veilcount_shared.errors import WireError
from veilcount_shared.shuffling.batch_record import BatchRecord, BatchState
from veilcount_shared.shuffling.crowd import sealed_size
from veilcount_shared.shuffling.part import BatchHead, BatchPart, batch_digest
from veilcount_shared.shuffling.plain_report import PLAIN_BYTES, PlainReport
from veilcount_shared.shuffling.times import grace_end

from .series_fixtures import counts, row, series
from .store_machine import StoreMachine

BATCHED = series("three", "batch = {least = 2, grace = 3}", linkage="none")
SPENDING = series(linkage="none", unit="week")  # whose entries are any bytes
SECRET = X25519PrivateKey.from_private_bytes(bytes(range(32)))  # nothing is sealed to it
SIZE, REPORTS = sealed_size(PLAIN_BYTES), 4  # reports of a part
PERIODS, BATCHES = 2, 3  # batches of one crowd
REFUSED = (SecondBatch, BatchTooEarly, BatchTooLate, RecordDiffers, WireError)
#: of the end of its grace: too early, in time, too late, and when an unfinished one is dropped
INSTANTS = st.sampled_from([timedelta(days) for days in (-1, 0, 0, 0, 0, 34, 36, 41)])
PERIOD, TOKENS = st.integers(0, PERIODS - 1), st.sets(st.integers(0, 5), max_size=4)


def batch(crowd: int, period: int, number: int) -> list[BatchPart]:
    """Return the parts of a batch; the last one of a crowd has a wrong digest."""
    crowd_id, batch_id = bytes([crowd, period]) * 8, bytes([number]) * 16
    pieces = [_sealed(2 * number + part) for part in range(3)]
    digest = batch_digest(hashlib.sha256(piece).digest() for piece in pieces)
    digest = bytes(32) if number == BATCHES - 1 else digest
    head = BatchHead(batch_id, crowd_id, period, 3 * REPORTS, 0, digest, len(pieces), SIZE)
    return [BatchPart(head, part, piece) for part, piece in enumerate(pieces)]


def _sealed(seed: int) -> bytes:
    """Return reports as they are once opened, one of them no report, each filled up."""
    pack = BATCHED.collection.pack
    plain = [PlainReport(pack((seed + place) % 3)).encode() for place in range(REPORTS - 1)]
    return b"".join(raw.ljust(SIZE, b"\0") for raw in (*plain, bytes(PLAIN_BYTES)))


def open_plain(part: SealedPart) -> OpenedPart:
    """Take the fill off: nothing is sealed here."""
    starts = range(0, len(part.sealed), part.size)
    plain = b"".join(part.sealed[start : start + part.plain_size] for start in starts)
    return OpenedPart(plain, bytes([1]) * len(starts))


def end(period: int) -> datetime:
    """Return the end of a period's grace."""
    return grace_end(BATCHED.collection, period)


class BatchMachine(StoreMachine):
    """The rules of batches."""

    @rule(
        crowd=st.integers(0, 1),
        period=PERIOD,
        numbers=st.lists(st.integers(0, 2), min_size=1, max_size=4),
        number=st.sampled_from([0, 0, 0, 1, BATCHES - 1]),
        later=INSTANTS,
    )
    def take_parts(
        self, crowd: int, period: int, numbers: list[int], number: int, later: timedelta
    ) -> None:
        """Some parts of a batch come, in any order and some again: the first begins an entry."""
        parts = batch(crowd, period, number)
        for place in numbers:
            self.agree(partial(_take, parts[place], end(period) + later))

    @rule(
        crowd=st.integers(0, 1),
        period=PERIOD,
        number=st.integers(0, BATCHES - 1),
        state=st.sampled_from(BatchState),
    )
    def take_record(self, crowd: int, period: int, number: int, state: BatchState) -> None:
        """A shuffler says what became of a crowd, whatever has come of it."""
        head = batch(crowd, period, number)[0].head
        record = BatchRecord(state, head.crowd_id, period)
        if state is BatchState.HANDED_OVER:
            record = BatchRecord(state, head.crowd_id, period, head.reports, 0, head.digest)
        self.agree(lambda store: _refused_or(lambda: keep_record(store, BATCHED, record)))

    @rule(period=PERIOD, later=INSTANTS)
    def close_batches(self, period: int, later: timedelta) -> None:
        """What is due at an instant ends: an unfinished batch loses its counters."""
        self.agree(lambda store: close_batches(store, [BATCHED], end(period) + later))

    @rule(key=st.sampled_from("ab"), period=PERIOD, tokens=TOKENS, is_first=st.booleans())
    def spend_tokens(
        self,
        key: str,
        period: int,
        tokens: set[int],
        is_first: bool,  # noqa: FBT001 - hypothesis names it
    ) -> None:
        """An entry changes with tokens, which are spent once, or does not change at all."""
        expected = None if is_first else self.model.batch(SPENDING, key)
        entry = None if expected and len(tokens) == 1 else bytes(sorted(tokens)) or None
        counters = np.arange(SPENDING.counters, dtype=np.int64) if tokens else None
        change = BatchChange(key, expected, entry, period, _rows(tokens), len(tokens), counters)
        self.agree(lambda store: store.change_batch(SPENDING, change))

    @rule(period=PERIOD)
    def forget_tokens(self, period: int) -> None:
        """A period is over for good."""
        self.agree(lambda store: store.forget_tokens(SPENDING, period))

    @invariant()
    def batches_agree(self) -> None:
        """Entries, tokens, tallies, records and what is read of them."""
        model, store = self.model, self.store
        for which in (BATCHED, SPENDING):
            cells = list(model.report_counts(which))
            assert store.report_counts(which) == model.report_counts(which)
            assert counts(store, which, *cells) == counts(model, which, *cells)
            assert store.batches(which) == model.batches(which)
        for period in range(PERIODS):
            tokens = _rows(range(6))
            spent = model.spent_tokens(SPENDING, period, tokens).tolist()
            assert store.spent_tokens(SPENDING, period, tokens).tolist() == spent
        assert batch_records(store, BATCHED) == batch_records(model, BATCHED)
        now = end(PERIODS)
        states = batch_states(model, model, BATCHED, now)
        assert batch_states(store, store, BATCHED, now) == states


def _take(part: BatchPart, now: datetime, store: Store) -> object:
    """Take a part as the service does; return what is answered, or why it is refused."""
    origin = BatchOrigin(BATCHED, part.head.period, 1, SECRET)

    def take() -> object:
        require_recorded_numbers(store, BATCHED, part.head)
        taken = BatchIntake(store, open_plain).take(part, origin, now)
        return taken.number, taken.totals, taken.entry.encode(), taken.is_new

    return _refused_or(take)


def _refused_or(act: Callable[[], object]) -> object:
    try:
        return act()
    except REFUSED as error:
        return type(error), str(error)


def _rows(tokens: Iterable[int]) -> Bytes:
    rows = [list(row(number)) for number in sorted(tokens)]
    return np.array(rows, np.uint8).reshape(-1, ROW_BYTES)
