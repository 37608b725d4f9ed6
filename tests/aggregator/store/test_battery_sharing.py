"""What every store promises when many use it, when it is opened again and when it is moved."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from veilcount_aggregator.errors import StoreReadOnly
from veilcount_aggregator.store import (
    Cell,
    DurabilityState,
    Record,
    ServiceCounter,
    Store,
    TransferPiece,
    open_store,
)
from veilcount_aggregator.store.transfer_format import KINDS, encode_numbers
from veilcount_shared.verdict import Verdict

from .series_fixtures import (
    DAILY,
    LINKED,
    counts,
    digest,
    drop,
    everything,
    fill,
    histograms,
    report,
    row,
    send,
    series,
)

COUNTED, DUPLICATE, STALE = Verdict.COUNTED, Verdict.DUPLICATE, Verdict.STALE


def test_8_threads_that_replay_one_batch_count_it_once(store: Store) -> None:
    """Each report is counted for exactly one of them.

    No more than may wait for Redis at once: on a slow machine others are refused.
    """
    reports = [report(n, n % 3, message=n % 3) for n in range(50)]
    begin = threading.Barrier(8)

    def replay_once() -> list[Verdict]:
        begin.wait()
        return send(store, LINKED, *reports)

    with ThreadPoolExecutor(8) as threads:
        replays = [threads.submit(replay_once) for _ in range(8)]
        verdicts = [replay.result() for replay in replays]

    assert all(Counter(each) == {COUNTED: 1, DUPLICATE: 7} for each in zip(*verdicts, strict=True))
    assert sum(store.report_counts(LINKED).values()) == 50
    assert histograms(store, LINKED)[0][0] == 50


# -- opening again, read-only ---------------------------------------------------------------------


def test_opening_again_gives_the_same(url: str, store: Store) -> None:
    """All that was acknowledged; also where a store is to be made, if there is none."""
    fill(store)
    before, content = everything(store), digest(store)
    store.close()
    for make in (False, True):
        again = open_store(url, make=make)
        assert (everything(again), digest(again)) == (before, content)
        again.close()


CHANGES: Sequence[Callable[[Store], object]] = [
    lambda store: send(store, DAILY, report(1)),
    lambda store: store.commit([], {ServiceCounter("request", "", -1, "200"): 1}),
    lambda store: store.change_records(store.generation(), [Record("key", "a", b"")]),
    lambda store: store.close_row(DAILY, [0], row(1)),
    lambda store: drop(store, DAILY, 50),
    lambda store: store.restore_dropped(DAILY),
]


def test_a_read_only_store_changes_no_more(url: str, store: Store) -> None:
    fill(store)
    before = digest(store)
    health = store.health()
    other = open_store(url)
    store.set_read_only(on=True)

    durable = DurabilityState.NO if health.engine == "memory" else DurabilityState.YES
    assert (health.durable, health.read_only) == (durable, False)
    assert (bool(health.engine), bool(health.why), health.trouble) == (True, True, "")
    for each in (store, other):
        assert each.health().read_only
        for change in CHANGES:
            with pytest.raises(StoreReadOnly):
                change(each)
    assert digest(other) == before

    other.set_read_only(on=False)
    for change in CHANGES:
        change(store)
    assert not store.health().read_only
    other.close()


# -- moving ---------------------------------------------------------------------------------------


def test_pieces_hold_everything(store: Store) -> None:
    """As the table has it: kind, key and body, the same in every engine; none if it is empty."""
    assert list(store.export_pieces()) == []

    periods_and_messages = [(3, 2), (4, 1), (4, 0)]
    send(store, LINKED, *(report(1, at, message=x) for at, x in periods_and_messages))
    drop(store, DAILY, 2)
    store.change_records(0, [Record("key", "a/b", b"z")])

    name = LINKED.fingerprint
    assert sorted(store.export_pieces()) == sorted(
        [
            TransferPiece("record", "key/a/b", b"z"),
            TransferPiece("dropped", DAILY.fingerprint, encode_numbers([2])),
            TransferPiece("new_rows", f"{name}/3", encode_numbers([1])),
            TransferPiece("service_counter", f"verdict/{name}/4/duplicate", encode_numbers([1])),
            TransferPiece("spent_rows", f"{name}/0", encode_numbers([0, 1])),
            TransferPiece("tally", f"{name}/3/0", encode_numbers([1, 0, 0, 1])),
            TransferPiece("tally", f"{name}/4/0", encode_numbers([1, 0, 1])),
            TransferPiece("rows", f"{name}/0/8/{row(1)[0]:02x}", row(1) + bytes([24]) + bytes(7)),
        ]
    )


def test_pieces_come_in_one_order(store: Store) -> None:
    fill(store)
    pieces = list(store.export_pieces())

    assert list(store.export_pieces()) == pieces
    assert {piece.kind for piece in pieces} == set(KINDS)
    assert len({(piece.kind, piece.key) for piece in pieces}) == len(pieces)
    for piece in pieces:
        if piece.kind == "rows":
            _, _, size, first = piece.key.split("/")
            step = 12 + int(size)
            names = [piece.body[at : at + 12] for at in range(0, len(piece.body), step)]
            assert names == sorted(set(names))
            assert {name[0] for name in names} == {int(first, 16)}


def test_another_store_takes_everything_over(store: Store, target: Store) -> None:
    """Of whichever engine, in whatever steps and order pieces come: they are absolute."""
    fill(store)
    before, pieces = target.generation(), list(store.export_pieces())
    random.Random(1).shuffle(pieces)
    for some in (pieces[:20], pieces, pieces[5:30]):
        target.import_pieces(some)

    assert digest(target) == digest(store)
    assert everything(target) == everything(store)
    assert target.generation() != before
    again = [report(0, 0), report(2, 2), report(999, 2)]
    assert send(target, DAILY, *again) == [STALE, DUPLICATE, COUNTED]
    assert send(target, LINKED, report(7, 60)) == [DUPLICATE]


def test_a_piece_takes_the_place_of_what_stands_there(store: Store, target: Store) -> None:
    which = series("plane")
    fill(store)
    pieces = list(store.export_pieces())
    target.import_pieces(pieces)
    send(target, which, *(report(5000 + n, n % 4, message=7) for n in range(200)))
    send(target, LINKED, *(report(600 + n, 3) for n in range(6)))
    target.import_pieces(
        [piece for piece in pieces if piece.kind not in {"rows", "service_counter"}]
    )

    assert everything(target)[:4] == everything(store)[:4]
    assert counts(target, which, Cell(0, 0)) == counts(store, which, Cell(0, 0))
