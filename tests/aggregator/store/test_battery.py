"""What every store promises, engine by engine [veilcount_aggregator/store/interface.py]."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import numpy as np
import pytest

from veilcount_aggregator.errors import StoreReadOnly
from veilcount_aggregator.store import Cell, Record, Store, TransferPiece, open_store
from veilcount_analysis.series.series import Series
from veilcount_shared.mechanisms import SubsetSelection
from veilcount_shared.verdict import Verdict

from .series_fixtures import (
    ARMS,
    DAILY,
    LINKED,
    NUMBERS,
    SPARING,
    SlotReport,
    counts,
    drop,
    drop_and_delete,
    histograms,
    message,
    report,
    row,
    send,
    series,
)

COUNTED, DUPLICATE, FULL = Verdict.COUNTED, Verdict.DUPLICATE, Verdict.FULL
STALE, OVER_BUDGET, EARLY = Verdict.STALE, Verdict.OVER_BUDGET, Verdict.EARLY
CLOSED = Verdict.CLOSED


# -- the intake: which verdict --------------------------------------------------------------------


def test_the_first_report_of_a_slot_counts_and_no_other(store: Store) -> None:
    one, other = report(1, message=2), report(1, message=0)

    assert send(store, DAILY, one, other, one) == [COUNTED, DUPLICATE, DUPLICATE]
    assert send(store, DAILY, one) == [DUPLICATE]
    assert store.report_counts(DAILY) == {Cell(0, 0): 1}
    assert counts(store, DAILY, Cell(0, 0)) == [0, 0, 1]


def test_rows_differ_from_each_other_in_any_byte(store: Store) -> None:
    names = [bytes(12), bytes(11) + b"\1", b"\1" + bytes(11), b"\xff" * 12, b"\xff" * 11 + b"\xfe"]

    assert send(store, DAILY, *map(SlotReport, names)) == [COUNTED] * 5
    assert send(store, DAILY, *map(SlotReport, names)) == [DUPLICATE] * 5


@pytest.mark.parametrize("slots", [1, 64, 65, 1024])
def test_each_slot_is_spent_by_itself(store: Store, slots: int) -> None:
    which = series("three", f"per_day = {slots}", unit="event")
    chosen = range(slots) if slots < 100 else [0, 1, 7, 8, 31, 32, 63, 64, 65, 512, 1023]
    reports = [report(1, slot=slot) for slot in chosen]

    assert send(store, which, *reports) == [COUNTED] * len(reports)
    assert send(store, which, *reversed(reports)) == [DUPLICATE] * len(reports)
    spent = [0] * slots
    spent[len(reports) - 1] = 1
    assert histograms(store, which) == {0: spent}


def test_a_period_takes_so_many_new_rows(store: Store) -> None:
    """Known rows and other periods are not concerned; with a limit of 0 no row is new."""
    reports = [report(number, 2) for number in range(4)]

    assert send(store, LINKED, *reports, limit=2) == [COUNTED, COUNTED, FULL, FULL]
    other = [report(0, 3), report(9, 2)]
    assert send(store, LINKED, *other, limit=2) == [COUNTED, FULL]
    assert send(store, LINKED, report(2, 2), limit=3) == [COUNTED]
    assert store.new_pseudonyms(LINKED) == {2: 3}
    assert send(store, DAILY, report(1), limit=0) == [FULL]
    assert (store.new_pseudonyms(DAILY), store.report_counts(DAILY)) == ({}, {})


def test_the_first_rule_that_holds_decides(store: Store) -> None:
    """Stale before duplicate, before what was judged, before full, before over budget."""
    send(store, SPARING, report(1, 0), report(1, 1), limit=1)

    judged = report(1, 1, otherwise=CLOSED)
    assert send(store, SPARING, judged, limit=0) == [DUPLICATE]
    assert send(store, SPARING, report(1, 2, otherwise=CLOSED), limit=0) == [CLOSED]
    assert send(store, SPARING, report(2, 0, otherwise=CLOSED), limit=0) == [CLOSED]
    assert send(store, SPARING, report(2, 0), limit=1) == [FULL]
    assert send(store, SPARING, report(1, 2), limit=0) == [OVER_BUDGET]

    drop(store, SPARING, 1)
    assert send(store, SPARING, judged, limit=0) == [STALE]
    assert send(store, SPARING, report(2, 0, otherwise=CLOSED), limit=0) == [STALE]


# -- counters -------------------------------------------------------------------------------------


def supported(which: Series, reports: Sequence[SlotReport]) -> list[Any]:
    """Return how many of the messages support each value; of hashes, those that there are."""
    if which.counts_hashes:
        hashes = Counter(sent.message for sent in reports)
        return [sorted(hashes), [hashes[each] for each in sorted(hashes)]]
    mechanism, total = which.collection.mechanism, [0] * which.counters
    for sent in reports:
        if isinstance(mechanism, SubsetSelection):
            values = list(mechanism.members(sent.message))
        else:
            values = [sent.message]
        for value in values:
            total[value] += 1
    return total


@pytest.mark.parametrize("what", NUMBERS)
def test_counters_are_what_the_messages_support(store: Store, what: str) -> None:
    which, chance, sent = series(what), random.Random(what), []
    for group, many in enumerate((1, 40, 40, 40, 300)):
        reports = [
            report(1000 * group + n, chance.randrange(3), message=message(which, chance))
            for n in range(many)
        ]
        assert send(store, which, *reports) == [COUNTED] * many
        sent += reports

    read = [each for each in sent if each.period != 1]
    assert counts(store, which, Cell(0, 0), Cell(2, 0)) == supported(which, read)
    assert store.report_counts(which) == Counter(Cell(each.period, 0) for each in sent)


@pytest.mark.parametrize("what", ["several", "plane", "hashes"])
def test_many_groups_are_counted_as_one_would_be(store: Store, what: str) -> None:
    """However an engine keeps them meanwhile, and after their epoch was dropped."""
    which, chance, sent, cell = series(what), random.Random(what), [], Cell(0, 0)
    for group in range(70):
        reports = [report(10 * group + n, 0, None, message(which, chance)) for n in (0, 1)]
        send(store, which, *reports)
        sent += reports
    before = counts(store, which, cell)
    drop_and_delete(store, which, 1)

    assert before == counts(store, which, cell) == supported(which, sent)
    assert store.report_counts(which) == {cell: 140}


def test_segments_and_periods_have_tallies_of_their_own(store: Store) -> None:
    cells = [Cell(0, 0), Cell(0, 1), Cell(7, 1)]
    reports = [
        report(n, cell.period, message=n, segment=cell.segment) for n, cell in enumerate(cells)
    ]
    send(store, ARMS, *reports)

    assert store.report_counts(ARMS) == dict.fromkeys(cells, 1)
    assert counts(store, ARMS, Cell(0, 0), Cell(7, 1)) == [1, 0, 1]
    assert counts(store, ARMS, Cell(0, 1), Cell(3, 0)) == [0, 1, 0]
    assert counts(store, ARMS) == [0, 0, 0]
    assert store.counters(ARMS, [Cell(0, 0)]).dtype == np.int64


# -- rows that are closed, epochs that are dropped ------------------------------------------------


def test_a_closed_row_spends_no_slot_and_stays_counted(store: Store) -> None:
    """The histogram does not count it as spent; a row that is not there is not made."""
    send(store, LINKED, report(1, 1, message=2), report(2, 1))

    assert store.close_row(LINKED, [0], row(1))
    assert store.close_row(LINKED, [0, 1, 2], row(1)), "twice is once"
    assert not any(store.close_row(LINKED, epochs, row(3)) for epochs in ([], [0], [1, 2]))
    assert send(store, LINKED, report(1, 1), report(1, 50)) == [DUPLICATE] * 2
    assert send(store, LINKED, report(2, 50), report(3)) == [COUNTED] * 2
    assert histograms(store, LINKED)[0][:2] == [2, 1]
    assert counts(store, LINKED, Cell(1, 0)) == [1, 0, 1]
    assert store.new_pseudonyms(LINKED) == {0: 1, 1: 2}


@pytest.mark.parametrize("slots", [1, 5, 64, 65])
def test_a_closed_row_has_all_slots_set_and_no_others(store: Store, slots: int) -> None:
    which = series("three", f"per_day = {slots}", unit="event")
    send(store, which, report(1, slot=slots - 1))
    store.close_row(which, [0], row(1))

    (body,) = [piece.body for piece in store.export_pieces() if piece.kind == "rows"]
    assert body == row(1) + ((1 << slots) - 1).to_bytes(-(-slots // 8), "little")


def test_a_dropped_epoch_is_stale_and_stays_counted(store: Store) -> None:
    """Dropping goes forward only, also in a series without reports; later epochs go on."""
    send(store, DAILY, *(report(1, period, message=1) for period in range(4)))
    for epochs in (2, 1, 0):
        drop(store, DAILY, epochs)
    drop(store, LINKED, 1)

    reports = [report(number, period) for number, period in [(1, 0), (2, 1), (1, 2)]]
    assert send(store, DAILY, *reports) == [STALE, STALE, DUPLICATE]
    assert send(store, LINKED, report(1, 62)) == [STALE]
    assert not store.close_row(DAILY, [0, 1], row(1))
    assert counts(store, DAILY, Cell(0, 0), Cell(1, 0)) == [0, 2, 0]
    assert histograms(store, DAILY) == {period: [1] for period in range(4)}
    assert store.new_pseudonyms(DAILY) == dict.fromkeys(range(4), 1)
    rows = [piece.key for piece in store.export_pieces() if piece.kind == "rows"]
    assert {int(key.split("/")[1]) for key in rows} == {2, 3}


# -- records --------------------------------------------------------------------------------------


def test_records_are_kept_by_kind_and_key(store: Store) -> None:
    first = [Record("key", "a/b", b"\0\xff"), Record("key", "c", b""), Record("audit", "c", b"1")]
    assert store.change_records(0, first)

    assert store.records("key") == {"a/b": b"\0\xff", "c": b""}
    assert store.record_keys("key") == {"a/b", "c"}
    assert store.records_at("key", ["c", "not there"]) == {"c": b""}
    assert store.records_at("key", []) == {}
    assert store.change_records(1, [Record("key", "c", None), Record("key", "d", b"2")])
    assert store.records("key") == {"a/b": b"\0\xff", "d": b"2"}
    assert store.record_keys("key") == {"a/b", "d"}
    assert store.records("audit") == {"c": b"1"}
    assert store.records("none") == {}
    assert store.record_keys("none") == set()
    assert (store.record_count("key"), store.record_count("none")) == (2, 0)


def test_a_change_of_another_generation_is_not_made(store: Store) -> None:
    """Neither of an older one nor of one that is to come; each kind has that of its last change."""
    assert (store.generation(), store.generations()) == (0, {})
    assert store.change_records(0, [Record("key", "a", b"1")])
    assert not store.change_records(0, [Record("key", "a", b"2")])
    assert not store.change_records(2, [Record("key", "b", b"2")])
    assert store.records("key") == {"a": b"1"}

    assert store.change_records(1, [Record("audit", "a", b"1")])
    assert store.generations() == {"key": 1, "audit": 2}
    assert store.change_records(2, [Record("key", "not there", None)]), "a removal of nothing"
    assert store.change_records(3, []), "no change at all"
    store.import_pieces([TransferPiece("record", "audit/b", b"3")])
    assert store.generations() == {"key": 3, "audit": 5}
    assert store.generation() == 5


def test_one_record_is_changed_if_it_is_as_expected(store: Store) -> None:
    """By whoever read it last; readers of other kinds are not disturbed."""
    first, other = Record("ledger", "a", b"\0\xff"), Record("ledger", "a", b"2")
    assert not store.change_record(first, b"")
    assert store.change_record(first, None)
    assert not store.change_record(other, None)
    assert not store.change_record(other, b"\0")
    assert store.change_record(other, b"\0\xff")
    assert store.records("ledger") == {"a": b"2"}

    assert store.change_record(other, b"2"), "the same again"
    assert store.change_record(Record("ledger", "a", None), b"2")
    assert store.change_record(Record("ledger", "b", None), None), "a removal of nothing"
    assert store.records("ledger") == {}
    assert (store.generation(), store.generations()) == (0, {})
    store.set_read_only(on=True)
    with pytest.raises(StoreReadOnly):
        store.change_record(first, None)


def test_a_record_that_is_changed_on_its_own_is_exported(store: Store) -> None:
    """An issuer's ledger and keys are such: a backup without them would be none."""
    store.change_record(Record("ledger", "a", b"1"), None)
    pieces = list(store.export_pieces())
    assert TransferPiece("record", "ledger/a", b"1") in pieces
    store.import_pieces(pieces)

    assert [piece for piece in store.export_pieces() if piece.kind == "record"] == pieces[:1]


def add_to_record(store: Store) -> bool:
    before = store.records_at("n", ["n"]).get("n")
    return store.change_record(Record("n", "n", b"%d" % (int(before or b"0") + 1)), before)


def add_to_records(store: Store) -> bool:
    generation = store.generation()
    number = int(store.records("n").get("n", b"0"))
    return store.change_records(generation, [Record("n", "n", b"%d" % (number + 1))])


@pytest.mark.parametrize("add", [add_to_record, add_to_records])
def test_concurrent_writers_of_records_lose_nothing(
    url: str, store: Store, add: Callable[[Store], bool]
) -> None:
    def add_ten() -> None:
        with closing(open_store(url)) as own:
            for _ in range(10):
                while not add(own):
                    pass

    with ThreadPoolExecutor(4) as threads:
        for done in [threads.submit(add_ten) for _ in range(4)]:
            done.result()

    assert store.records("n") == {"n": b"40"}
    assert store.generation() == (40 if add is add_to_records else 0)
