"""A store is carried to another: whole, once, through interruptions, while writers keep trying."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable
from itertools import product

import pytest

from tests.aggregator.store.engines import ENGINES, Empty
from tests.aggregator.store.series_fixtures import DAILY, LINKED, Asked, row, send, series
from tests.aggregator.store.test_battery import everything, fill
from veilcount_aggregator.errors import StoreReadOnly, StoreUnfit
from veilcount_aggregator.store import Record, Store, TransferPiece, migrate, open_store
from veilcount_aggregator.store.migrate import CopyProgress, copy_store, outgoing_copy
from veilcount_aggregator.store.transfer_format import content_digest
from veilcount_shared.verdict import Verdict

COUNTED, DUPLICATE = Verdict.COUNTED, Verdict.DUPLICATE
CUT = "the line was cut"
#: each engine is left and arrived at; what any takes over from any other is in the battery
PAIRS = [("sqlite", "redis"), ("redis", "sqlite"), ("redis-cluster", "redis")]

pytestmark = pytest.mark.parametrize(
    ("empty", "another"),
    [
        pytest.param(*pair, marks=[] if pair in PAIRS else pytest.mark.full)
        for pair in product(ENGINES, ENGINES)
    ],
    indirect=True,
)


def content(store: Store) -> str:
    """Return the digest of all but the copy's own records."""
    return content_digest(
        piece
        for piece in store.export_pieces()
        if not (piece.kind == "record" and piece.key.startswith("copy/"))
    )


def cut(at: int) -> Callable[[CopyProgress], None]:
    """Return what ends a copy after so many pieces."""

    def tell(progress: CopyProgress) -> None:
        if progress.pieces >= at:
            raise ConnectionError(CUT)

    return tell


def test_a_copy_holds_everything(store: Store, target: Store) -> None:
    """Ledgers, counters, keys, notes; and it goes on where the source stood."""
    fill(store)
    found = copy_store(store, target, where="there")

    assert found == content(store) == content(target)
    assert everything(target) == everything(store)
    assert send(target, DAILY, Asked(row(2), 2), Asked(row(999), 2)) == [DUPLICATE, COUNTED]


def test_the_source_stays_read_only_and_says_where_to(store: Store, target: Store) -> None:
    """Its reports belong elsewhere."""
    fill(store)
    assert outgoing_copy(store) is None

    copy_store(store, target, where="redis://there")
    kept = outgoing_copy(store)
    assert kept is not None
    assert kept.where == "redis://there"
    with pytest.raises(StoreReadOnly):
        send(store, DAILY, Asked(row(1), 3))
    assert not target.health().read_only


def test_an_empty_store_can_be_copied(store: Store, target: Store) -> None:
    """Nothing is carried, and the source is closed all the same."""
    copy_store(store, target, where="there")

    assert content(target) == content_digest([])
    assert store.health().read_only


def test_a_copy_tells_how_far_it_is(
    store: Store, target: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After every step, in pieces and in bytes of all that is carried."""
    monkeypatch.setattr(migrate, "STEP_PIECES", 10)
    fill(store)
    told: list[CopyProgress] = []
    copy_store(store, target, where="there", progress=told.append)

    pieces = [piece for piece in store.export_pieces() if not piece.key.startswith("copy/")]
    assert [each.pieces for each in told[:3]] == [10, 20, 30]
    assert told[-1] == CopyProgress(len(pieces), sum(len(piece.body) for piece in pieces))


def test_a_large_piece_is_a_step_of_its_own(
    store: Store, target: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Steps are bounded in bytes too."""
    monkeypatch.setattr(migrate, "STEP_BYTES", 1)
    store.change_records(0, [Record("audit", str(n), b"x" * 9) for n in range(5)])
    told: list[CopyProgress] = []
    copy_store(store, target, where="there", progress=told.append)

    assert told == [CopyProgress(n, 9 * n) for n in range(1, 6)]


class Counting:
    """A target that knows how many pieces it was given."""

    def __init__(self, store: Store) -> None:
        """Stand in front of a store."""
        self._store = store
        self.given: list[TransferPiece] = []

    def import_pieces(self, pieces: list[TransferPiece]) -> None:
        """Pass them on."""
        self.given += pieces
        self._store.import_pieces(pieces)

    def __getattr__(self, name: str) -> object:
        """All else is the store's."""
        return getattr(self._store, name)


@pytest.mark.parametrize("at", [1, 40, 10**6])
def test_an_interrupted_copy_goes_on(
    store: Store, target: Store, at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is there already is not carried again."""
    monkeypatch.setattr(migrate, "STEP_PIECES", 20)
    fill(store)
    counting = Counting(target)
    tell = cut(at)
    try:
        copy_store(store, counting, where="there", progress=tell)  # type: ignore[arg-type]
    except ConnectionError:
        first = len(counting.given)
        copy_store(store, counting, where="there")  # type: ignore[arg-type]
    else:
        first = len(counting.given)

    total = len([piece for piece in store.export_pieces() if not piece.key.startswith("copy/")])
    assert len(counting.given) == total
    assert first >= min(at, total)
    assert content(target) == content(store)


def carry(source: str, target: str) -> None:
    """Copy very slowly, in small steps."""
    migrate.STEP_PIECES = 5
    copy_store(
        open_store(source),
        open_store(target, make=True),
        where="there",
        progress=lambda _: time.sleep(0.01),
    )


def test_a_copy_that_is_killed_goes_on(empty: Empty, another: Empty) -> None:
    """kill -9 in the middle, and again from another process."""
    source, target = empty(), another()
    store = open_store(source, make=True)
    fill(store)
    before = everything(store)
    process = multiprocessing.get_context("spawn").Process(target=carry, args=(source, target))
    process.start()
    there = open_store(target, make=True)
    while next((piece for piece in there.export_pieces() if piece.kind == "tally"), None) is None:
        assert process.is_alive()
        time.sleep(0.01)
    os.kill(process.pid or 0, signal.SIGKILL)
    process.join()
    assert content(there) != content(store)

    copy_store(store, there, where="there")
    assert content(there) == content(store)
    assert everything(there) == before
    store.close()
    there.close()


def test_writers_lose_nothing_to_a_copy(empty: Empty, another: Empty) -> None:
    """Reports acknowledged before it became read-only are in the copy; later ones are refused."""
    url = empty()
    store, target = open_store(url, make=True), open_store(another(), make=True)
    acknowledged: list[int] = []
    refused = threading.Event()

    def write() -> None:
        own = open_store(url)
        for number in range(100_000):
            try:
                send(own, LINKED, Asked(row(number), number % 3))
            except StoreReadOnly:
                refused.set()
                break
            acknowledged.append(number)
        own.close()

    writer = threading.Thread(target=write)
    writer.start()
    while len(acknowledged) < 50:
        time.sleep(0.001)
    copy_store(store, target, where="there")
    writer.join()

    assert refused.is_set()
    again = [Asked(row(number), number % 3) for number in acknowledged]
    assert send(target, LINKED, *again) == [DUPLICATE] * len(acknowledged)
    assert sum(target.report_counts(LINKED).values()) == len(acknowledged)
    store.close()
    target.close()


def test_a_target_that_holds_something_else_is_refused(store: Store, target: Store) -> None:
    """A live store is never written over. The source is as it was."""
    fill(store)
    send(target, series("plane"), Asked(row(1)))
    before = content(target)

    with pytest.raises(StoreUnfit, match="not empty"):
        copy_store(store, target, where="there")
    assert content(target) == before
    assert not store.health().read_only


def test_a_copy_that_is_whole_is_not_made_again(store: Store, target: Store) -> None:
    """The target may have counted since."""
    fill(store)
    copy_store(store, target, where="there")
    send(target, LINKED, Asked(row(5000), 1))
    before = content(target)

    with pytest.raises(StoreUnfit, match="whole already"):
        copy_store(store, target, where="there")
    assert content(target) == before


def test_a_source_that_has_counted_since_begins_again(store: Store, target: Store) -> None:
    """Half of a copy of what was is no half of a copy of what is."""
    fill(store)
    with pytest.raises(ConnectionError, match=CUT):
        copy_store(store, target, where="there", progress=cut(1))
    store.set_read_only(on=False)
    send(store, LINKED, Asked(row(5000), 1))

    with pytest.raises(StoreUnfit, match="has taken reports since"):
        copy_store(store, target, where="there")
    assert not store.health().read_only


def test_a_source_is_not_copied_to_two_places(
    store: Store, target: Store, another: Empty, tmp_path: object
) -> None:
    """Both would count: a read-only source goes on to where it has begun."""
    fill(store)
    copy_store(store, target, where="there")
    elsewhere = open_store(f"sqlite:///{tmp_path}/elsewhere.db", make=True)

    with pytest.raises(StoreReadOnly, match="copied to there"):
        copy_store(store, elsewhere, where="elsewhere")
    assert content(elsewhere) == content_digest([])
    elsewhere.close()


def test_read_only_mode_without_a_copy_is_not_taken_for_one(store: Store, target: Store) -> None:
    """Somebody meant it."""
    store.set_read_only(on=True)

    with pytest.raises(StoreReadOnly, match="make it writable"):
        copy_store(store, target, where="there")


def test_a_target_that_counts_meanwhile_is_found_out(
    store: Store, target: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The copy is compared at its end."""
    fill(store)
    sent: list[object] = []

    def meddle(_: CopyProgress) -> None:
        if not sent:
            sent.append(send(target, DAILY, Asked(b"\xff" * 12, 61)))

    with pytest.raises(StoreUnfit, match="differs from its source"):
        copy_store(store, target, where="there", progress=meddle)


def test_a_copy_can_be_copied(store: Store, target: Store, tmp_path: object) -> None:
    """Records of an earlier copy stay behind."""
    fill(store)
    copy_store(store, target, where="there")
    third = open_store(f"sqlite:///{tmp_path}/third.db", make=True)
    copy_store(target, third, where="third")

    assert content(third) == content(store)
    assert third.records("copy").keys() == {"from"}
    third.close()
