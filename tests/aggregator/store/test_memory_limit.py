"""Memory of counters is judged before anything is written, alike on every engine."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.aggregator.store.series_fixtures import (
    DAILY,
    LINKED,
    SPARING,
    decode_verdicts,
    drop_and_delete,
    message,
    report,
    report_columns,
    send,
    series,
)
from tests.aggregator.store.sqlite.sqlite_fixtures import open_at
from veilcount_aggregator.mechanisms import tally
from veilcount_aggregator.series.series import Series
from veilcount_aggregator.store import Cell, MemoryLimits, Store
from veilcount_aggregator.store.memory_limit import TALLY_BYTES, tally_bytes
from veilcount_aggregator.store.sqlite import SqliteStore
from veilcount_aggregator.store.sqlite.schema import PART_BYTES
from veilcount_shared.verdict import Verdict

COUNTED, DUPLICATE, FULL = Verdict.COUNTED, Verdict.DUPLICATE, Verdict.FULL
OVER_BUDGET, CLOSED = Verdict.OVER_BUDGET, Verdict.CLOSED

ONE = tally_bytes(DAILY.counters)  # DAILY, LINKED and SPARING have three counters each


def enough_for(tallies: int) -> MemoryLimits:
    return MemoryLimits(tallies * ONE)


def test_a_report_that_needs_memory_over_the_limit_is_full(store: Store) -> None:
    first = [report(1, period) for period in range(3)]

    assert send(store, DAILY, *first, memory=enough_for(2)) == [COUNTED, COUNTED, FULL]
    again = [report(1, 0), report(2, 0), report(2, 2), report(2, 3)]
    assert send(store, DAILY, *again, memory=enough_for(2)) == [DUPLICATE, COUNTED, FULL, FULL]
    assert send(store, LINKED, report(1, 5), memory=enough_for(1)) == [COUNTED]
    assert send(store, DAILY, report(1, 2), memory=enough_for(3)) == [COUNTED]
    assert store.memory_use().series == {DAILY.fingerprint: 3 * ONE, LINKED.fingerprint: ONE}


def test_all_series_share_the_store_s_limit(store: Store) -> None:
    limits = MemoryLimits(store=2 * ONE)
    group = [
        report_columns(DAILY, [report(1, 0)], memory=limits),
        report_columns(LINKED, [report(1, 0)], memory=limits),
        report_columns(SPARING, [report(1, 0)], memory=limits),
    ]

    assert [decode_verdicts(codes) for codes in store.commit(group, {})] == [
        [COUNTED],
        [COUNTED],
        [FULL],
    ]
    assert send(store, SPARING, report(1, 0), memory=limits) == [FULL]
    assert send(store, DAILY, report(2, 0), report(2, 1), memory=limits) == [COUNTED, FULL]
    assert store.memory_use().total == 2 * ONE


def test_one_row_s_many_refusals_do_not_hold_up_a_group(store: Store) -> None:
    """Each refusal lets the row's next report be tried: a group ends all the same."""
    send(store, SPARING, report(9, 0), memory=enough_for(1))
    refused = [report(1, n) for n in range(1, 63)]
    many = report_columns(SPARING, [*refused, report(2, 0)], memory=enough_for(1))
    other = report_columns(DAILY, [report(1, 0)])

    codes = [decode_verdicts(each) for each in store.commit([many, other], {})]
    assert codes == [[*[FULL] * 62, COUNTED], [COUNTED]]


def test_a_period_s_limit_and_its_memory_may_end_together(store: Store) -> None:
    """Each refusal by memory lets the next row be tried: a group ends nevertheless."""
    send(store, LINKED, report(9, 5), memory=enough_for(1))
    many = [report(100 + n, 7) for n in range(80)]

    assert send(store, LINKED, *many, limit=1, memory=enough_for(1)) == [FULL] * 80


@pytest.mark.parametrize("what", ["plane", "labels"])
def test_a_large_tally_stays_within_its_limit(store: Store, what: str) -> None:
    which, chance = series(what), random.Random(what)
    limits = MemoryLimits(5_000)
    verdicts = [
        verdict
        for group in range(30)
        for verdict in send(
            store,
            which,
            *(
                report(100 * group + n, n % 3, message=message(which, chance))
                for n in range(1 + 60 * (group % 2))
            ),
            memory=limits,
        )
    ]

    assert set(verdicts) == {COUNTED, FULL}
    assert store.memory_use().series[which.fingerprint] <= 5_000
    assert sum(store.report_counts(which).values()) == verdicts.count(COUNTED)
    per_report = getattr(which.collection.mechanism, "w", 1)
    total = store.counters(which, list(store.report_counts(which))).sum()
    assert total == per_report * verdicts.count(COUNTED)


def test_the_account_moves_with_the_tallies(store: Store, target: Store) -> None:
    """Of whichever engine, also where something stands in the target; and counting goes on."""
    kinds: list[Series] = [DAILY, series("plane"), series("labels")]
    chance = random.Random(3)
    for which in kinds:
        reports = [report(n, n % 2, message=message(which, chance)) for n in range(300)]
        send(store, which, *reports)
        send(target, which, *(report(n, 1, message=2) for n in range(3)))
    pieces = list(store.export_pieces())
    for _ in range(2):
        target.import_pieces(pieces)

    tallies = [piece for piece in pieces if piece.kind == "tally"]
    assert [piece for piece in target.export_pieces() if piece.kind == "tally"] == tallies
    for which in kinds:
        counters = store.counters(which, [Cell(1, 0)])
        taken = target.memory_use().series[which.fingerprint]
        assert 0 < taken < 3 * tally_bytes(which.counters)
        more = [report(5000 + n, 1, message=message(which, chance)) for n in range(60)]
        assert send(target, which, *more) == [COUNTED] * 60
        added = tally(which.collection, [each.message for each in more])
        assert (target.counters(which, [Cell(1, 0)]) == counters + added).all()


# -- SQLite's account: kept by triggers, equal to what the rows have -------------------------------


TALLIES = "select coalesce(sum(? + length(counters)), 0) from tally"
PARTS = "select coalesce(sum(? + length(body)), 0) from part"


def recounted(store: SqliteStore) -> int:
    with store.file.reading() as database:
        (tallies,) = database.execute(TALLIES, (TALLY_BYTES,)).fetchone()
        (parts,) = database.execute(PARTS, (PART_BYTES,)).fetchone()
    return int(tallies + parts)


def test_the_account_is_what_the_rows_have(tmp_path: Path) -> None:
    store, which, chance = open_at(tmp_path / "a.db"), series("plane"), random.Random(1)
    for group in range(70):
        reports = [report(10 * group + n, message=message(which, chance)) for n in range(9)]
        send(store, which, *reports)
        send(store, DAILY, report(group, group % 20))
        if group % 10 == 0:
            assert store.memory_use().total == recounted(store)
    grown = store.memory_use().total

    drop_and_delete(store, which, 1)
    assert recounted(store) == store.memory_use().total < grown
    target = open_at(tmp_path / "b.db")
    for _ in range(2):
        target.import_pieces(list(store.export_pieces()))
        assert target.memory_use().total == recounted(target)
    assert send(target, DAILY, *(report(900 + n, n) for n in range(25)))
    assert target.memory_use().total == recounted(target)
    store.close()
    target.close()
