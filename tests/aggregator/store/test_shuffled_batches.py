"""What every store promises of the batches of shufflers."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from veilcount_aggregator.errors import StoreReadOnly
from veilcount_aggregator.store import ROW_BYTES, BatchChange, Bytes, Cell, Store

from .series_fixtures import DAILY, UNLINKED, counts, digest, row, series

NO_ROWS = np.zeros((0, ROW_BYTES), np.uint8)
ENTRY, NEXT = b"\0one\xff", b"two"


def tokens(*numbers: int) -> Bytes:
    return np.array([list(row(number)) for number in numbers], np.uint8).reshape(-1, ROW_BYTES)


def change(expected: bytes | None, entry: bytes | None, **more: Any) -> BatchChange:
    fields: dict[str, Any] = {"key": "ab12", "period": 3, "spent": NO_ROWS} | more
    return BatchChange(expected=expected, entry=entry, **fields)


def test_an_entry_changes_from_what_was_read(store: Store) -> None:
    assert store.batch(DAILY, "ab12") is None
    assert store.change_batch(DAILY, change(None, ENTRY))
    assert not store.change_batch(DAILY, change(None, NEXT))
    assert not store.change_batch(DAILY, change(NEXT, b"three"))
    assert (store.batch(DAILY, "ab12"), store.batch(UNLINKED, "ab12")) == (ENTRY, None)

    assert store.change_batch(DAILY, change(ENTRY, NEXT))
    assert store.change_batch(DAILY, change(None, ENTRY, key="cd"))
    assert store.batches(DAILY) == {"ab12": NEXT, "cd": ENTRY}

    assert store.change_batch(DAILY, change(NEXT, None))
    assert store.batches(DAILY) == {"cd": ENTRY}


@pytest.mark.parametrize("what", ["three", "plane"])
def test_counters_are_added_with_the_entry_or_not_at_all(store: Store, what: str) -> None:
    which = series(what)
    counters = np.arange(which.counters, dtype=np.int64) % 5
    adds = {"reports": 7, "counters": counters}

    assert store.change_batch(which, change(None, ENTRY, **adds))
    assert not store.change_batch(which, change(None, NEXT, **adds))
    assert store.change_batch(which, change(None, ENTRY, key="other key", **adds))

    assert store.report_counts(which) == {Cell(3, 0): 14}
    assert counts(store, which, Cell(3, 0)) == (2 * counters).tolist()


def test_a_token_is_spent_once_in_all_batches_of_its_period(store: Store) -> None:
    assert store.change_batch(DAILY, change(None, ENTRY, spent=tokens(*range(2500))))
    spent = store.spent_tokens(DAILY, 3, tokens(2499, 2500, 0))
    assert spent.tolist() == [True, False, True]
    assert not store.spent_tokens(DAILY, 4, tokens(0)).any()
    assert not len(store.spent_tokens(DAILY, 3, NO_ROWS))

    again = {"key": "cd", "reports": 1, "counters": np.ones(3, np.int64)}
    assert not store.change_batch(DAILY, change(None, ENTRY, spent=tokens(2600, 2), **again))
    assert store.batches(DAILY) == {"ab12": ENTRY}
    assert store.report_counts(DAILY) == {}
    assert not store.spent_tokens(DAILY, 3, tokens(2600)).any()
    assert store.change_batch(DAILY, change(None, ENTRY, spent=tokens(2600), **again))

    store.forget_tokens(DAILY, 3)
    assert not store.spent_tokens(DAILY, 3, tokens(0, 2600)).any()
    assert (store.report_counts(DAILY), store.new_pseudonyms(DAILY)) == ({Cell(3, 0): 1}, {})


def test_of_two_changes_at_once_one_is_made(store: Store) -> None:
    adds = {"reports": 1, "counters": np.ones(3, np.int64)}

    def alike(key: int) -> bool:
        return store.change_batch(DAILY, change(None, ENTRY, key=str(key // 4), **adds))

    with ThreadPoolExecutor(8) as threads:
        done = list(threads.map(alike, range(80)))

    assert sum(done) == 20
    assert counts(store, DAILY, Cell(3, 0)) == [20] * 3


def test_a_read_only_store_takes_no_batch(store: Store) -> None:
    store.set_read_only(on=True)

    with pytest.raises(StoreReadOnly):
        store.change_batch(DAILY, change(None, ENTRY))
    assert store.batches(DAILY) == {}


def test_batches_move_to_another_store(store: Store, target: Store) -> None:
    adds = {"reports": 9, "counters": np.array([2, 3, 4])}
    store.change_batch(DAILY, change(None, ENTRY, spent=tokens(*range(2000)), **adds))
    store.change_batch(UNLINKED, change(None, NEXT))
    for _ in range(2):  # a copy that was interrupted begins anew
        target.import_pieces(list(store.export_pieces()))

    assert (target.batches(DAILY), target.batches(UNLINKED)) == ({"ab12": ENTRY}, {"ab12": NEXT})
    assert target.spent_tokens(DAILY, 3, tokens(1999, 2000)).tolist() == [True, False]
    assert digest(target) == digest(store)
    assert not target.change_batch(DAILY, change(ENTRY, NEXT, spent=tokens(5)))
