"""A store is carried to another: whole, once, through interruptions, and to one place."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import product
from pathlib import Path

import pytest

from veilcount_aggregator.errors import StoreReadOnly, StoreUnfit
from veilcount_aggregator.store import Cell, Record, Store, TransferPiece, migrate, open_store
from veilcount_aggregator.store.migrate import CopyProgress, copy_store, outgoing_copy
from veilcount_aggregator.store.transfer_format import add_padded, content_digest
from veilcount_analysis.mechanisms import tally
from veilcount_shared.verdict import Verdict

from .engines import ENGINES
from .series_fixtures import (
    DAILY,
    LINKED,
    SlotReport,
    digest,
    everything,
    fill,
    message,
    report,
    send,
    series,
)

COUNTED, DUPLICATE = Verdict.COUNTED, Verdict.DUPLICATE
CUT = "the line was cut"
EMPTY = content_digest([])
#: each engine is left and arrived at; what any takes over from any other is in the battery
PAIRS = [("sqlite", "redis"), ("redis", "sqlite")]

#: of what no engine has a part in, one pair
one_pair = pytest.mark.parametrize(("empty", "another"), [("sqlite", "redis")], indirect=True)
each_pair = pytest.mark.parametrize(
    ("empty", "another"),
    [
        pytest.param(*pair, marks=[] if pair in PAIRS else pytest.mark.full)
        for pair in product(ENGINES, ENGINES)
    ],
    indirect=True,
)


def pieces_of(store: Store) -> list[TransferPiece]:
    return [piece for piece in store.export_pieces() if not piece.key.startswith("copy/")]


def cut(at: int) -> Callable[[CopyProgress], None]:
    """Return what ends a copy after so many pieces."""

    def break_off(progress: CopyProgress) -> None:
        if progress.pieces >= at:
            raise ConnectionError(CUT)

    return break_off


@pytest.fixture
def third(tmp_path: Path) -> Iterator[Store]:
    with closing(open_store(f"sqlite:///{tmp_path}/third.db", make=True)) as opened:
        yield opened


@each_pair
def test_a_copy_holds_everything_and_its_source_stays_read_only(
    store: Store, target: Store
) -> None:
    fill(store)
    assert outgoing_copy(store) is None
    found = copy_store(store, target, where="redis://there")

    assert found == digest(store) == digest(target)
    assert everything(target) == everything(store)
    reports = [report(2, 2), report(999, 2)]
    assert send(target, DAILY, *reports) == [DUPLICATE, COUNTED]
    assert outgoing_copy(store).where == "redis://there"  # type: ignore[union-attr]
    with pytest.raises(StoreReadOnly):
        send(store, DAILY, report(1, 3))
    assert not target.health().read_only


@one_pair
@pytest.mark.parametrize(("most_pieces", "most_bytes"), [(10, 1 << 20), (1 << 20, 1)])
def test_progress_is_reported_after_every_step(
    store: Store, target: Store, monkeypatch: pytest.MonkeyPatch, most_pieces: int, most_bytes: int
) -> None:
    """Steps are bounded in pieces and in bytes: a large piece is a step of its own."""
    monkeypatch.setattr(migrate, "STEP_PIECES", most_pieces)
    monkeypatch.setattr(migrate, "STEP_BYTES", most_bytes)
    store.change_records(0, [Record("audit", f"{n:02}", b"x" * 9) for n in range(25)])
    reported: list[CopyProgress] = []
    copy_store(store, target, where="there", progress=reported.append)

    steps = range(1, 26) if most_bytes == 1 else [10, 20, 25]
    assert reported == [CopyProgress(n, 9 * n) for n in steps]


class Counting:
    def __init__(self, store: Store) -> None:
        self._store = store
        self.imported = 0

    def import_pieces(self, pieces: list[TransferPiece]) -> None:
        self.imported += len(pieces)
        self._store.import_pieces(pieces)

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)


@each_pair
def test_an_interrupted_copy_goes_on(
    store: Store, target: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrate, "STEP_PIECES", 20)
    fill(store)
    counting = Counting(target)
    for at in (1, 60):
        with pytest.raises(ConnectionError, match=CUT):
            copy_store(store, counting, where="there", progress=cut(at))  # type: ignore[arg-type]
        assert counting.imported >= at
    copy_store(store, counting, where="there")  # type: ignore[arg-type]

    assert counting.imported == len(pieces_of(store))
    assert digest(target) == digest(store)


# -- what is refused -------------------------------------------------------------------------------


@one_pair
def test_a_target_that_holds_something_else_is_refused(store: Store, target: Store) -> None:
    """A live store is never written over. The source is as it was."""
    fill(store)
    send(target, series("plane"), report(1))
    before = digest(target)

    with pytest.raises(StoreUnfit, match="not empty"):
        copy_store(store, target, where="there")
    assert digest(target) == before
    assert not store.health().read_only


@one_pair
def test_a_complete_copy_is_made_neither_again_nor_to_a_second_place(
    store: Store, target: Store, third: Store
) -> None:
    """The target may have counted since, and two targets would both count."""
    fill(store)
    copy_store(store, target, where="there")
    send(target, LINKED, report(5000, 1))
    before = digest(target)

    with pytest.raises(StoreUnfit, match="complete already"):
        copy_store(store, target, where="there")
    with pytest.raises(StoreReadOnly, match="copied to there"):
        copy_store(store, third, where="elsewhere")
    assert (digest(target), digest(third)) == (before, EMPTY)


@one_pair
def test_a_source_that_has_counted_since_begins_again(store: Store, target: Store) -> None:
    """Half of a copy of what was is no half of a copy of what is."""
    fill(store)
    with pytest.raises(ConnectionError, match=CUT):
        copy_store(store, target, where="there", progress=cut(1))
    store.set_read_only(on=False)
    send(store, LINKED, report(5000, 1))

    with pytest.raises(StoreUnfit, match="has taken reports since"):
        copy_store(store, target, where="there")
    assert not store.health().read_only


@one_pair
def test_read_only_mode_without_a_copy_is_not_taken_for_one(store: Store, target: Store) -> None:
    store.set_read_only(on=True)

    with pytest.raises(StoreReadOnly, match="make it writable"):
        copy_store(store, target, where="there")


@one_pair
def test_a_target_that_counts_meanwhile_differs_from_its_source(
    store: Store, target: Store
) -> None:
    fill(store)

    def meddle(_: CopyProgress) -> None:
        send(target, DAILY, SlotReport(b"\xff" * 12, 61))

    with pytest.raises(StoreUnfit, match="differs from its source"):
        copy_store(store, target, where="there", progress=meddle)


def test_tallies_replace_what_stands_in_the_target_and_count_on(
    store: Store, target: Store
) -> None:
    """Of whichever engine, small ones and large ones; also where they are imported twice."""
    chance = random.Random(3)
    kinds = (DAILY, series("plane"), series("labels"), series("hashes"))
    for which in kinds:
        reports = [report(n, n % 2, message=message(which, chance)) for n in range(300)]
        send(store, which, *reports)
        send(target, which, *(report(n, 1, message=2) for n in range(3)))
    pieces = list(store.export_pieces())
    for _ in range(2):
        target.import_pieces(pieces)

    tallies = [piece for piece in pieces if piece.kind in {"tally", "hashes"}]
    moved = [piece for piece in target.export_pieces() if piece.kind in {"tally", "hashes"}]
    assert moved == tallies
    for which in kinds:
        counters = store.counters(which, [Cell(1, 0)])
        more = [report(5000 + n, 1, message=message(which, chance)) for n in range(60)]
        assert send(target, which, *more) == [Verdict.COUNTED] * 60
        added = tally(which.collection, [each.message for each in more])
        total = target.counters(which, [Cell(1, 0)])
        assert (total == add_padded(counters, added)).all()
