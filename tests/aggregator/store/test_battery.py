"""What every store promises, engine by engine [aggregator/store/contract.py]."""

from __future__ import annotations

import multiprocessing
import random
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from tests.aggregator.store.engines import Empty
from tests.aggregator.store.model import Model
from tests.aggregator.store.series_fixtures import (
    ARMS,
    DAILY,
    LINKED,
    NUMBERS,
    SPARING,
    UNLINKED,
    Asked,
    drop,
    drop_and_delete,
    message,
    row,
    send,
    series,
    spends,
    told,
)
from veilcount_aggregator.errors import StoreReadOnly
from veilcount_aggregator.series.series import Series
from veilcount_aggregator.store import (
    VERDICT,
    Cell,
    DurabilityState,
    Record,
    ServiceCounter,
    Store,
    TransferPiece,
    open_store,
)
from veilcount_aggregator.store.transfer_format import KINDS, content_digest, encode_numbers
from veilcount_shared.verdict import Verdict

COUNTED, DUPLICATE, FULL = Verdict.COUNTED, Verdict.DUPLICATE, Verdict.FULL
STALE, OVER_BUDGET, EARLY = Verdict.STALE, Verdict.OVER_BUDGET, Verdict.EARLY
CLOSED = Verdict.CLOSED


def spread(store: Store, which: Series) -> dict[int, list[int]]:
    """Return the spread as lists."""
    return {epoch: rows.tolist() for epoch, rows in store.spend_histograms(which).items()}


def counts(store: Store, which: Series, *cells: Cell) -> list[int]:
    """Return counters as a list."""
    found: list[int] = store.counters(which, cells).tolist()
    return found


# -- the intake: which verdict --------------------------------------------------------------------


def test_a_free_slot_is_counted_once(store: Store) -> None:
    """The same report again is a duplicate, in a later group or in the same."""
    one = Asked(row(1))

    assert send(store, DAILY, one, one) == [COUNTED, DUPLICATE]
    assert send(store, DAILY, one) == [DUPLICATE]
    assert store.report_counts(DAILY) == {Cell(0, 0): 1}


def test_a_slot_is_spent_whatever_is_said_in_it(store: Store) -> None:
    """Another message in the same slot is a duplicate: the first counts."""
    said = [Asked(row(1), message=2), Asked(row(1), message=0)]

    assert send(store, DAILY, *said) == [COUNTED, DUPLICATE]
    assert counts(store, DAILY, Cell(0, 0)) == [0, 0, 1]


def test_rows_differ_from_each_other_in_any_byte(store: Store) -> None:
    """Twelve bytes tell them apart, zeros at either end included."""
    names = [bytes(12), bytes(11) + b"\1", b"\1" + bytes(11), b"\xff" * 12, b"\xff" * 11 + b"\xfe"]

    assert send(store, DAILY, *map(Asked, names)) == [COUNTED] * 5
    assert send(store, DAILY, *map(Asked, names)) == [DUPLICATE] * 5


def test_series_do_not_share_rows(store: Store) -> None:
    """One group may hold several series; each has its own ledger and tallies."""
    one = Asked(row(1))
    group = [spends(which, [one]) for which in (DAILY, LINKED, UNLINKED, DAILY)]

    assert [told(codes) for codes in store.commit(group, {})] == [
        [COUNTED],
        [COUNTED],
        [COUNTED],
        [DUPLICATE],
    ]
    assert [store.report_counts(which) for which in (DAILY, LINKED, UNLINKED)] == [
        {Cell(0, 0): 1}
    ] * 3


def test_an_empty_group_is_judged(store: Store) -> None:
    """Nothing in, nothing out; notes are kept all the same."""
    note = ServiceCounter("request", "", -1, "200")

    assert store.commit([], {note: 2}) == []
    assert told(store.commit([spends(DAILY, [])], {note: 1})[0]) == []
    assert store.service_counts() == {note: 3}
    assert store.report_counts(DAILY) == {}


@pytest.mark.parametrize("slots", [1, 64, 65, 1024])
def test_each_slot_is_spent_by_itself(store: Store, slots: int) -> None:
    """The first, the last and those around the ends of words."""
    which = series("three", f"per_day = {slots}", unit="event")
    chosen = sorted({0, 1, 7, 8, 31, 32, 62, 63, 64, 65, slots // 2, slots - 1})
    reports = [Asked(row(1), slot=slot) for slot in chosen if slot < slots]

    assert send(store, which, *reports) == [COUNTED] * len(reports)
    assert send(store, which, *reversed(reports)) == [DUPLICATE] * len(reports)
    assert spread(store, which)[0][len(reports) - 1] == 1


def test_all_slots_of_a_row_can_be_spent(store: Store) -> None:
    """A full bitmap is no closed row: its spread says what was received."""
    which = series("three", "per_day = 65", unit="event")
    reports = [Asked(row(1), slot=slot) for slot in range(65)]

    assert send(store, which, *reports) == [COUNTED] * 65
    assert spread(store, which) == {0: [0] * 64 + [1]}


def test_linked_periods_share_a_row(store: Store) -> None:
    """A day's slot is its own; the row is one, and new in its first counted period only."""
    assert send(store, LINKED, Asked(row(1), 3), Asked(row(1), 5)) == [COUNTED] * 2
    assert store.new_pseudonyms(LINKED) == {3: 1}
    assert spread(store, LINKED)[0][:3] == [0, 1, 0]


def test_unlinked_periods_have_rows_of_their_own(store: Store) -> None:
    """The same pseudonym in another period is another row."""
    assert send(store, DAILY, Asked(row(1), 3), Asked(row(1), 5)) == [COUNTED] * 2
    assert store.new_pseudonyms(DAILY) == {3: 1, 5: 1}
    assert spread(store, DAILY) == {3: [1], 5: [1]}


def test_who_is_linked_may_spend_so_many_slots(store: Store) -> None:
    """Two answers: the third is over budget, in whatever slot and group."""
    reports = [Asked(row(1), period) for period in (4, 9, 11)]

    assert send(store, SPARING, *reports) == [COUNTED, COUNTED, OVER_BUDGET]
    assert send(store, SPARING, Asked(row(1), 30)) == [OVER_BUDGET]
    assert send(store, SPARING, Asked(row(1), 9)) == [DUPLICATE]
    assert store.report_counts(SPARING) == {Cell(4, 0): 1, Cell(9, 0): 1}


def test_a_period_has_room_for_so_many_new_rows(store: Store) -> None:
    """Those that are known already, and other periods, are not concerned."""
    reports = [Asked(row(number), 2) for number in range(4)]

    assert send(store, LINKED, *reports, room=2) == [COUNTED, COUNTED, FULL, FULL]
    assert send(store, LINKED, Asked(row(0), 3), Asked(row(9), 2), room=2) == [COUNTED, FULL]
    assert send(store, LINKED, Asked(row(2), 2), room=3) == [COUNTED]
    assert store.new_pseudonyms(LINKED) == {2: 3}


def test_no_room_at_all_takes_nobody_new(store: Store) -> None:
    """Room 0 closes a period for new rows."""
    assert send(store, DAILY, Asked(row(1)), room=0) == [FULL]
    assert store.new_pseudonyms(DAILY) == {}
    assert store.report_counts(DAILY) == {}


def test_what_was_judged_before_is_told_if_the_slot_is_free(store: Store) -> None:
    """A spent slot is looked up first: a late retry learns that it had succeeded."""
    send(store, DAILY, Asked(row(1)))
    late = [Asked(row(1), otherwise=STALE), Asked(row(2), otherwise=STALE)]

    assert send(store, DAILY, *late) == [DUPLICATE, STALE]
    assert send(store, DAILY, Asked(row(2))) == [COUNTED]


def test_a_refused_report_spends_nothing(store: Store) -> None:
    """Neither slot nor row nor room, of whichever verdict."""
    before = content_digest(
        piece for piece in store.export_pieces() if piece.kind != "service_counter"
    )
    refused = [Asked(row(1), 2, otherwise=verdict) for verdict in (EARLY, CLOSED, STALE)]

    assert send(store, LINKED, *refused) == [EARLY, CLOSED, STALE]
    assert (
        content_digest(piece for piece in store.export_pieces() if piece.kind != "service_counter")
        == before
    )


def test_the_first_rule_that_holds_decides(store: Store) -> None:
    """Stale before duplicate, before what was judged, before full, before over budget."""
    send(store, SPARING, Asked(row(1), 0), Asked(row(1), 1), room=1)

    judged = Asked(row(1), 1, otherwise=CLOSED)
    assert send(store, SPARING, judged, room=0) == [DUPLICATE]
    assert send(store, SPARING, Asked(row(1), 2, otherwise=CLOSED), room=0) == [CLOSED]
    assert send(store, SPARING, Asked(row(2), 0, otherwise=CLOSED), room=0) == [CLOSED]
    assert send(store, SPARING, Asked(row(2), 0), room=1) == [FULL]
    assert send(store, SPARING, Asked(row(1), 2), room=0) == [OVER_BUDGET]

    drop(store, SPARING, 1)
    assert send(store, SPARING, judged, room=0) == [STALE]
    assert send(store, SPARING, Asked(row(2), 0, otherwise=CLOSED), room=0) == [STALE]


def test_what_is_not_counted_is_noted(store: Store) -> None:
    """By series, period and verdict; what is counted is in the tallies."""
    send(store, DAILY, Asked(row(1), 4), Asked(row(1), 4), Asked(row(1), 4))
    send(store, DAILY, Asked(row(2), 5), Asked(row(3), 5, otherwise=EARLY), room=0)

    name = DAILY.fingerprint
    assert store.service_counts() == {
        ServiceCounter(VERDICT, name, 4, "duplicate"): 2,
        ServiceCounter(VERDICT, name, 5, "full"): 1,
        ServiceCounter(VERDICT, name, 5, "early"): 1,
    }


def test_notes_add_up(store: Store) -> None:
    """Those of a group beside those of earlier ones, whatever words they have."""
    notes = {
        ServiceCounter("lost", "ab" * 32, 7, "aged/2"): 3,
        ServiceCounter("request", "", -1, "429"): 1,
    }
    store.commit([], notes)
    store.commit([spends(DAILY, [Asked(row(1))])], notes)

    assert store.service_counts() == {note: 2 * times for note, times in notes.items()}


# -- counters -------------------------------------------------------------------------------------


@pytest.mark.parametrize("what", NUMBERS)
def test_counters_are_what_the_messages_support(store: Store, what: str) -> None:
    """Of every design, over several groups and cells, as the plainest counting has it."""
    which, chance, model = series(what), random.Random(what), Model()
    for group in range(5):
        reports = [
            Asked(row(1000 * group + n), chance.randrange(3), message=message(which, chance))
            for n in range(40)
        ]
        assert send(store, which, *reports) == model.commit(which, reports, 1 << 40)

    cells = [Cell(0, 0), Cell(2, 0)]
    assert counts(store, which, *cells) == model.counters(which, cells)
    assert store.report_counts(which) == model.report_counts(which)


@pytest.mark.parametrize("what", ["several", "plane", "distribution"])
def test_many_groups_are_counted_as_one_would_be(store: Store, what: str) -> None:
    """However an engine keeps them meanwhile, and after their epoch was dropped."""
    which, chance, model = series(what), random.Random(what), Model()
    for group in range(150):
        reports = [Asked(row(10 * group + n), 0, message=message(which, chance)) for n in range(3)]
        send(store, which, *reports)
        model.commit(which, reports, 1 << 40)

    cell = Cell(0, 0)
    assert counts(store, which, cell) == model.counters(which, [cell])

    drop_and_delete(store, which, 1)
    assert counts(store, which, cell) == model.counters(which, [cell])
    assert store.report_counts(which) == {cell: 450}


def test_segments_and_periods_have_tallies_of_their_own(store: Store) -> None:
    """Any of them can be summed; those that hold nothing are zeros."""
    send(
        store,
        ARMS,
        Asked(row(1), 0, message=0, segment=0),
        Asked(row(2), 0, message=1, segment=1),
        Asked(row(3), 7, message=2, segment=1),
    )

    assert store.report_counts(ARMS) == {Cell(0, 0): 1, Cell(0, 1): 1, Cell(7, 1): 1}
    assert counts(store, ARMS, Cell(0, 0), Cell(7, 1)) == [1, 0, 1]
    assert counts(store, ARMS, Cell(0, 1), Cell(3, 0)) == [0, 1, 0]
    assert counts(store, ARMS) == [0, 0, 0]
    assert store.counters(ARMS, [Cell(0, 0)]).dtype == np.int64


def test_an_unknown_series_holds_nothing(store: Store) -> None:
    """Reading is no mistake."""
    assert store.report_counts(DAILY) == {}
    assert counts(store, DAILY, Cell(0, 0)) == [0, 0, 0]
    assert spread(store, DAILY) == {}
    assert store.new_pseudonyms(DAILY) == {}


# -- spread, forget, drop -------------------------------------------------------------------------


def test_the_spread_counts_rows_by_spent_slots(store: Store) -> None:
    """A row moves on with each slot, in one group or in several."""
    which = series("three", "per_day = 4", unit="event")
    send(store, which, *(Asked(row(1), slot=slot) for slot in (0, 3)), Asked(row(2), slot=1))
    assert spread(store, which) == {0: [1, 1, 0, 0]}

    send(store, which, *(Asked(row(2), slot=slot) for slot in (0, 2, 3)), Asked(row(3), slot=0))
    assert spread(store, which) == {0: [1, 1, 0, 1]}


def test_a_forgotten_row_is_closed(store: Store) -> None:
    """What it spent is not told any more, no slot is free, and what it said stays counted."""
    send(store, LINKED, Asked(row(1), 1, message=2), Asked(row(2), 1))

    assert store.close_row(LINKED, [0], row(1))
    assert send(store, LINKED, Asked(row(1), 1), Asked(row(1), 50)) == [DUPLICATE] * 2
    assert send(store, LINKED, Asked(row(2), 50)) == [COUNTED]
    assert spread(store, LINKED)[0][:2] == [1, 1]
    assert counts(store, LINKED, Cell(1, 0)) == [1, 0, 1]
    assert store.new_pseudonyms(LINKED) == {1: 2}


def test_who_has_no_row_cannot_be_forgotten(store: Store) -> None:
    """It says so, and makes none."""
    send(store, DAILY, Asked(row(1), 1))

    assert not store.close_row(DAILY, [1], row(2))
    assert not store.close_row(DAILY, [0, 2], row(1))
    assert not store.close_row(DAILY, [], row(1))
    assert not store.close_row(LINKED, [0], row(1))
    assert send(store, DAILY, Asked(row(2), 1)) == [COUNTED]


def test_a_row_is_forgotten_wherever_it_stands(store: Store) -> None:
    """In each of the epochs that were named, and in no other; twice is once."""
    send(store, DAILY, *(Asked(row(1), period) for period in range(3)))

    assert store.close_row(DAILY, range(1, 9), row(1))
    assert store.close_row(DAILY, range(1, 9), row(1))
    rows = {piece.key: piece.body for piece in store.export_pieces() if piece.kind == "rows"}
    assert len(rows) == 3


@pytest.mark.parametrize("slots", [1, 5, 64, 65])
def test_a_closed_row_has_all_slots_set_and_no_others(store: Store, slots: int) -> None:
    """So that two engines write the same bytes."""
    which = series("three", f"per_day = {slots}", unit="event")
    send(store, which, Asked(row(1), slot=slots - 1))
    store.close_row(which, [0], row(1))

    (body,) = [piece.body for piece in store.export_pieces() if piece.kind == "rows"]
    assert body == row(1) + ((1 << slots) - 1).to_bytes(-(-slots // 8), "little")


def test_a_dropped_epoch_is_stale_for_ever(store: Store) -> None:
    """Whether its slot was spent or not, and whatever was judged; later epochs go on."""
    send(store, DAILY, *(Asked(row(1), period, message=1) for period in range(4)))
    drop(store, DAILY, 2)

    reports = [Asked(row(1), 0), Asked(row(2), 1), Asked(row(1), 2), Asked(row(2), 2)]
    assert send(store, DAILY, *reports) == [STALE, STALE, DUPLICATE, COUNTED]
    assert not store.close_row(DAILY, [0, 1], row(1))


def test_what_was_dropped_stays_counted(store: Store) -> None:
    """Tallies, spread and fresh rows outlive the rows; no row of it is left."""
    send(store, DAILY, *(Asked(row(1), period, message=1) for period in range(4)))
    drop(store, DAILY, 2)

    assert counts(store, DAILY, Cell(0, 0), Cell(1, 0)) == [0, 2, 0]
    assert spread(store, DAILY) == {period: [1] for period in range(4)}
    assert store.new_pseudonyms(DAILY) == dict.fromkeys(range(4), 1)
    epochs = {
        int(piece.key.split("/")[1]) for piece in store.export_pieces() if piece.kind == "rows"
    }
    assert epochs == {2, 3}


def test_dropping_goes_forward_only(store: Store) -> None:
    """Fewer epochs than before change nothing; an unknown series can be dropped too."""
    drop(store, DAILY, 3)
    drop(store, DAILY, 1)
    drop(store, DAILY, 0)

    assert send(store, DAILY, Asked(row(1), 2), Asked(row(1), 3)) == [STALE, COUNTED]


def test_a_whole_campaign_is_dropped_at_once(store: Store) -> None:
    """Its one epoch has the periods of all."""
    send(store, LINKED, *(Asked(row(n), period) for n in range(9) for period in (0, 40)))
    drop(store, LINKED, 1)

    assert send(store, LINKED, Asked(row(1), 62)) == [STALE]
    assert store.report_counts(LINKED) == {Cell(0, 0): 9, Cell(40, 0): 9}


# -- records --------------------------------------------------------------------------------------


def test_records_are_kept_by_kind(store: Store) -> None:
    """Any bytes under any key, written and removed together."""
    first = [Record("key", "a/b", b"\0\xff"), Record("key", "c", b""), Record("audit", "c", b"1")]

    assert store.generation() == 0
    assert store.change_records(0, first)
    assert store.generation() == 1
    assert store.records("key") == {"a/b": b"\0\xff", "c": b""}
    assert store.change_records(1, [Record("key", "c", None), Record("key", "d", b"2")])
    assert store.records("key") == {"a/b": b"\0\xff", "d": b"2"}
    assert store.records("audit") == {"c": b"1"}
    assert store.records("none") == {}


def test_records_are_listed_by_key_and_read_by_key(store: Store) -> None:
    """Whoever knows a value by its key does not read it again."""
    assert store.change_records(0, [Record("key", "a/b", b"\0\xff"), Record("key", "c", b"")])

    assert store.record_keys("key") == {"a/b", "c"}
    assert store.record_keys("none") == set()
    assert store.records_at("key", ["c", "not there"]) == {"c": b""}
    assert store.records_at("key", []) == {}
    assert store.change_records(1, [Record("key", "c", None)])
    assert store.record_keys("key") == {"a/b"}


def test_each_kind_of_record_has_the_generation_of_its_last_change(store: Store) -> None:
    """A reader of one kind need not read it again when others change."""
    assert store.generations() == {}
    assert store.change_records(0, [Record("key", "a", b"1"), Record("key", "b", b"2")])
    assert store.change_records(1, [Record("audit", "a", b"1")])

    assert store.generations() == {"key": 1, "audit": 2}
    assert (store.record_count("key"), store.record_count("none")) == (2, 0)
    assert store.change_records(2, [Record("key", "a", None)])
    assert store.generations() == {"key": 3, "audit": 2}
    assert store.record_count("key") == 1
    store.import_pieces([TransferPiece("record", "audit/b", b"3")])
    assert store.generations() == {"key": 3, "audit": 4}


def test_a_change_after_somebody_elses_is_not_made(store: Store) -> None:
    """Neither by an older generation nor by one that is to come."""
    assert store.change_records(0, [Record("key", "a", b"1")])

    assert not store.change_records(0, [Record("key", "a", b"2")])
    assert not store.change_records(2, [Record("key", "b", b"2")])
    assert store.records("key") == {"a": b"1"}
    assert store.generation() == 1


def test_removing_what_is_not_there_is_a_change(store: Store) -> None:
    """It was done; so was a change of nothing."""
    assert store.change_records(0, [Record("key", "a", None)])
    assert store.change_records(1, [])
    assert store.generation() == 2


def test_whoever_opens_a_store_finds_the_same_incarnation(url: str, store: Store) -> None:
    """It stays while records change."""
    before = store.incarnation()
    other = open_store(url)
    other.change_records(other.generation(), [Record("kind", "key", b"value")])
    found = other.incarnation()
    other.close()

    assert before == found == store.incarnation()


def test_many_writers_of_the_shelf_lose_nothing(url: str, store: Store) -> None:
    """Each adds one to a number, again until nobody else was faster."""

    def add() -> None:
        own = open_store(url)
        for _ in range(10):
            while True:
                generation = own.generation()
                number = int(own.records("n").get("n", b"0"))
                if own.change_records(generation, [Record("n", "n", str(number + 1).encode())]):
                    break
        own.close()

    with ThreadPoolExecutor(4) as threads:
        for done in [threads.submit(add) for _ in range(4)]:
            done.result()

    assert store.records("n") == {"n": b"40"}
    assert store.generation() == 40


# -- many at once ---------------------------------------------------------------------------------


def test_64_threads_that_replay_one_batch_count_it_once(store: Store) -> None:
    """Each report is counted for exactly one of them."""
    reports = [Asked(row(n), n % 3, message=n % 3) for n in range(50)]
    begin = threading.Barrier(64)
    verdicts: list[list[Verdict]] = []

    def replay() -> None:
        begin.wait()
        verdicts.append(send(store, LINKED, *reports))

    threads = [threading.Thread(target=replay) for _ in range(64)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(verdicts) == 64
    assert all(Counter(each) == {COUNTED: 1, DUPLICATE: 63} for each in zip(*verdicts, strict=True))
    assert sum(store.report_counts(LINKED).values()) == 50
    assert spread(store, LINKED)[0][0] == 50


def replay(url: str, seed: int, into: multiprocessing.Queue[int]) -> None:
    """Send the same reports as every other process, in another order."""
    store = open_store(url)
    reports = [Asked(row(n), n % 5, message=n % 3) for n in range(200)]
    random.Random(seed).shuffle(reports)
    counted = 0
    for first in range(0, 200, 7):
        counted += send(store, LINKED, *reports[first : first + 7]).count(COUNTED)
    store.close()
    into.put(counted)


def test_two_processes_that_replay_one_batch_count_it_once(url: str, store: Store) -> None:
    """Together they are told of 200, and as many are there."""
    spawn = multiprocessing.get_context("spawn")
    told_of: multiprocessing.Queue[int] = spawn.Queue()
    processes = [spawn.Process(target=replay, args=(url, seed, told_of)) for seed in range(2)]
    for process in processes:
        process.start()
    counted = [told_of.get(timeout=60) for _ in processes]
    for process in processes:
        process.join()

    assert sum(counted) == 200
    assert counts(store, LINKED, *(Cell(period, 0) for period in range(5))) == [67, 67, 66]
    assert spread(store, LINKED)[0][0] == 200


def test_reading_goes_on_while_others_write(store: Store) -> None:
    """What is read is one state: never more counted than there are reports."""
    which = series("plane")
    done = threading.Event()

    def write() -> None:
        for n in range(60):
            send(store, which, Asked(row(n), 0, message=n))
        done.set()

    writer = threading.Thread(target=write)
    writer.start()
    sums = []
    while not done.is_set():
        sums.append(int(store.counters(which, [Cell(0, 0)]).sum()))
    writer.join()

    assert sums == sorted(sums)
    assert counts(store, which, Cell(0, 0))[:61] == [1] * 60 + [0]


# -- again, and elsewhere -------------------------------------------------------------------------


def fill(store: Store) -> None:
    """Put something of every kind into a store."""
    chance = random.Random(5)
    for which in (
        DAILY,
        LINKED,
        series("plane"),
        ARMS,
        series("three", "per_day = 65", unit="event"),
    ):
        reports = [
            Asked(row(n), n % 4, message=message(which, chance), segment=n % which.collection.cells)
            for n in range(150)
        ]
        send(store, which, *reports, *reports[:3])
    drop(store, DAILY, 2)
    store.close_row(LINKED, [0], row(7))
    store.change_records(
        store.generation(), [Record("key", "a/b", b"\0"), Record("audit", "1", b"")]
    )
    store.commit([], {ServiceCounter("lost", "", -1, "a/b"): 4})


def everything(store: Store) -> list[object]:
    """Return all that can be read of what `fill` has written."""
    kinds = (DAILY, LINKED, series("plane"), ARMS)
    return [
        *(store.report_counts(which) for which in kinds),
        *(counts(store, which, *store.report_counts(which)) for which in kinds),
        *(spread(store, which) for which in kinds),
        *(store.new_pseudonyms(which) for which in kinds),
        store.service_counts(),
        store.records("key"),
        store.records("audit"),
    ]


def test_opening_again_gives_the_same(url: str, store: Store) -> None:
    """All that was acknowledged, and what was refused stays refused."""
    fill(store)
    before, pieces = everything(store), content_digest(store.export_pieces())
    store.close()
    again = open_store(url)

    assert everything(again) == before
    assert content_digest(again.export_pieces()) == pieces
    assert send(again, DAILY, Asked(row(0), 0), Asked(row(2), 2)) == [STALE, DUPLICATE]
    again.close()


def test_an_open_store_can_be_made_again(url: str, store: Store) -> None:
    """Making takes what is there."""
    send(store, DAILY, Asked(row(1)))
    again = open_store(url, make=True)

    assert send(again, DAILY, Asked(row(1))) == [DUPLICATE]
    again.close()


REFUSED: dict[str, Callable[[Store], object]] = {
    "commit": lambda store: send(store, DAILY, Asked(row(1))),
    "a commit of notes": lambda store: store.commit(
        [], {ServiceCounter("request", "", -1, "200"): 1}
    ),
    "change": lambda store: store.change_records(store.generation(), [Record("key", "a", b"")]),
    "forget": lambda store: store.close_row(DAILY, [0], row(1)),
    "drop": lambda store: drop(store, DAILY, 50),
    "restore epochs": lambda store: store.restore_dropped(DAILY),
}


@pytest.mark.parametrize("act", REFUSED)
def test_a_read_only_store_changes_no_more(url: str, store: Store, act: str) -> None:
    """Not in another process either; it is read as ever, until it is made writable."""
    fill(store)
    other = open_store(url)
    store.set_read_only(on=True)
    before = content_digest(store.export_pieces())

    assert store.health().read_only
    assert other.health().read_only
    for each in (store, other):
        with pytest.raises(StoreReadOnly):
            REFUSED[act](each)
    assert content_digest(other.export_pieces()) == before

    other.set_read_only(on=False)
    REFUSED[act](store)
    assert not store.health().read_only
    other.close()


def test_a_store_says_how_it_is(store: Store) -> None:
    """The test's engines are set to be durable."""
    health = store.health()

    assert health.durable is DurabilityState.YES
    assert health.engine
    assert health.why
    assert not health.read_only


# -- moving ---------------------------------------------------------------------------------------


def test_an_empty_store_has_no_pieces(store: Store) -> None:
    """Nothing is carried where nothing is."""
    assert list(store.export_pieces()) == []


def test_pieces_say_everything(store: Store) -> None:
    """As the table has it: kind, key and body, the same in every engine."""
    reports = [Asked(row(1), 3, message=2), Asked(row(1), 4, message=1), Asked(row(1), 4)]
    send(store, LINKED, *reports)
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
    """Twice the same; the kinds as they are listed; rows ascending, by their first byte."""
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
            assert {each[0] for each in names} == {int(first, 16)}


def test_another_store_takes_everything_over(store: Store, target: Store) -> None:
    """Of whichever engine: what is read there, and what is said of every report."""
    fill(store)
    before = target.generation()
    target.import_pieces(list(store.export_pieces()))

    assert content_digest(target.export_pieces()) == content_digest(store.export_pieces())
    assert everything(target) == everything(store)
    assert target.generation() != before
    again = [Asked(row(0), 0), Asked(row(2), 2), Asked(row(999), 2)]
    assert send(target, DAILY, *again) == [STALE, DUPLICATE, COUNTED]
    assert send(target, LINKED, Asked(row(7), 60)) == [DUPLICATE]


def test_taking_over_twice_changes_nothing(store: Store, target: Store) -> None:
    """Pieces are absolute, in whatever steps and order they come."""
    fill(store)
    pieces = list(store.export_pieces())
    random.Random(1).shuffle(pieces)
    target.import_pieces(pieces[:20])
    target.import_pieces(pieces)
    target.import_pieces(pieces[5:30])

    assert content_digest(target.export_pieces()) == content_digest(store.export_pieces())


def test_a_piece_takes_the_place_of_what_stands_there(store: Store, target: Store) -> None:
    """Also where the target has counted something of its own meanwhile."""
    which = series("plane")
    fill(store)
    pieces = list(store.export_pieces())
    target.import_pieces(pieces)
    send(target, which, *(Asked(row(5000 + n), n % 4, message=7) for n in range(200)))
    send(target, LINKED, *(Asked(row(600 + n), 3) for n in range(6)))
    target.import_pieces(
        [piece for piece in pieces if piece.kind not in {"rows", "service_counter"}]
    )

    assert everything(target)[:4] == everything(store)[:4]
    assert counts(target, which, Cell(0, 0)) == counts(store, which, Cell(0, 0))


def test_counting_goes_on_where_it_was_taken_over(store: Store, target: Store) -> None:
    """Small counters and large ones, as if nothing had been moved."""
    kinds: Sequence[Series] = [DAILY, series("wide"), series("plane")]
    model = Model()
    for where in (store, target):
        if where is target:
            target.import_pieces(list(store.export_pieces()))
        for which in kinds:
            chance = random.Random(where is store)
            reports = [
                Asked(row(n + 100 * (where is target)), 1, message=message(which, chance))
                for n in range(60)
            ]
            send(where, which, *reports)
            model.commit(which, reports, 1 << 40)

    for which in kinds:
        assert counts(target, which, Cell(1, 0)) == model.counters(which, [Cell(1, 0)])


def test_two_stores_of_one_engine_are_two(empty: Empty, another: Empty) -> None:
    """What one has counted, the other has not."""
    one, two = (open_store(serve(), make=True) for serve in (empty, another))

    assert send(one, DAILY, Asked(row(1))) == [COUNTED]
    assert send(two, DAILY, Asked(row(1))) == [COUNTED]
    one.close()
    two.close()
