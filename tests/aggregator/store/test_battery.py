"""What every store promises, engine by engine [aggregator/store/interface.py]."""

from __future__ import annotations

import multiprocessing
import random
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from tests.aggregator.store.engines import ENGINES
from tests.aggregator.store.model import Model
from tests.aggregator.store.series_fixtures import (
    ARMS,
    DAILY,
    LINKED,
    NUMBERS,
    SPARING,
    UNLINKED,
    SlotReport,
    counts,
    decode_verdicts,
    digest,
    drop,
    drop_and_delete,
    everything,
    fill,
    histograms,
    message,
    report,
    report_columns,
    row,
    send,
    series,
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
from veilcount_aggregator.store.transfer_format import KINDS, encode_numbers
from veilcount_shared.verdict import Verdict

COUNTED, DUPLICATE, FULL = Verdict.COUNTED, Verdict.DUPLICATE, Verdict.FULL
STALE, OVER_BUDGET, EARLY = Verdict.STALE, Verdict.OVER_BUDGET, Verdict.EARLY
CLOSED = Verdict.CLOSED

#: a cluster with one shard has the shard of one server and the routing of three shards
#: (redis/test_shards.py): with --full
pytestmark = pytest.mark.parametrize(
    "empty",
    [
        pytest.param(name, marks=pytest.mark.full if name == "redis-cluster" else [])
        for name in ENGINES
    ],
    indirect=True,
)


# -- the intake: which verdict --------------------------------------------------------------------


def test_the_first_report_of_a_slot_counts_and_no_other(store: Store) -> None:
    """Whatever its message: in the same group, and in a later one."""
    one, other = report(1, message=2), report(1, message=0)

    assert send(store, DAILY, one, other, one) == [COUNTED, DUPLICATE, DUPLICATE]
    assert send(store, DAILY, one) == [DUPLICATE]
    assert store.report_counts(DAILY) == {Cell(0, 0): 1}
    assert counts(store, DAILY, Cell(0, 0)) == [0, 0, 1]


def test_rows_differ_from_each_other_in_any_byte(store: Store) -> None:
    names = [bytes(12), bytes(11) + b"\1", b"\1" + bytes(11), b"\xff" * 12, b"\xff" * 11 + b"\xfe"]

    assert send(store, DAILY, *map(SlotReport, names)) == [COUNTED] * 5
    assert send(store, DAILY, *map(SlotReport, names)) == [DUPLICATE] * 5


def test_series_of_one_group_do_not_share_rows(store: Store) -> None:
    kinds = (DAILY, LINKED, UNLINKED, DAILY)
    group = [report_columns(which, [report(1)]) for which in kinds]
    verdicts = [decode_verdicts(codes) for codes in store.commit(group, {})]

    assert verdicts == [[COUNTED], [COUNTED], [COUNTED], [DUPLICATE]]
    assert [store.report_counts(which) for which in kinds] == [{Cell(0, 0): 1}] * 4


def test_an_empty_group_is_judged_and_its_counters_are_kept(store: Store) -> None:
    counter = ServiceCounter("request", "", -1, "200")

    assert store.commit([], {counter: 2}) == []
    assert decode_verdicts(store.commit([report_columns(DAILY, [])], {counter: 1})[0]) == []
    assert store.service_counts() == {counter: 3}
    assert store.report_counts(DAILY) == {}


@pytest.mark.parametrize("slots", [1, 64, 65, 1024])
def test_each_slot_is_spent_by_itself(store: Store, slots: int) -> None:
    """All of a row's slots, or those around the ends of words."""
    which = series("three", f"per_day = {slots}", unit="event")
    chosen = range(slots) if slots < 100 else [0, 1, 7, 8, 31, 32, 63, 64, 65, 512, 1023]
    reports = [report(1, slot=slot) for slot in chosen]

    assert send(store, which, *reports) == [COUNTED] * len(reports)
    assert send(store, which, *reversed(reports)) == [DUPLICATE] * len(reports)
    spent = [0] * slots
    spent[len(reports) - 1] = 1
    assert histograms(store, which) == {0: spent}


def test_linked_periods_share_a_row_and_unlinked_ones_do_not(store: Store) -> None:
    """A shared row is new in its first counted period only."""
    for which in (LINKED, DAILY):
        send(store, which, report(1, 3), report(1, 5))

    assert store.new_pseudonyms(LINKED) == {3: 1}
    assert histograms(store, LINKED)[0][:3] == [0, 1, 0]
    assert store.new_pseudonyms(DAILY) == {3: 1, 5: 1}
    assert histograms(store, DAILY) == {3: [1], 5: [1]}


def test_a_linked_row_may_spend_so_many_slots(store: Store) -> None:
    """Two answers: the third is over budget, in whatever slot and group."""
    reports = [report(1, period) for period in (4, 9, 11)]

    assert send(store, SPARING, *reports) == [COUNTED, COUNTED, OVER_BUDGET]
    assert send(store, SPARING, report(1, 30)) == [OVER_BUDGET]
    assert send(store, SPARING, report(1, 9)) == [DUPLICATE]
    assert store.report_counts(SPARING) == {Cell(4, 0): 1, Cell(9, 0): 1}


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


def test_a_refused_report_spends_nothing(store: Store) -> None:
    before = digest(store, counters=False)
    refused = [report(1, 2, otherwise=verdict) for verdict in (EARLY, CLOSED, STALE)]

    assert send(store, LINKED, *refused) == [EARLY, CLOSED, STALE]
    assert digest(store, counters=False) == before


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


def test_refusals_are_counted_by_series_period_and_verdict(store: Store) -> None:
    """With a group's own service counters, which add up."""
    own = {
        ServiceCounter("lost", "ab" * 32, 7, "aged/2"): 3,
        ServiceCounter("request", "", -1, "429"): 1,
    }
    store.commit([report_columns(DAILY, [report(1, 4)] * 3)], own)
    store.commit([], own)
    early = report(3, 5, otherwise=EARLY)
    send(store, DAILY, report(2, 5), early, limit=0)

    name = DAILY.fingerprint
    assert store.service_counts() == {counter: 2 * times for counter, times in own.items()} | {
        ServiceCounter(VERDICT, name, 4, "duplicate"): 2,
        ServiceCounter(VERDICT, name, 5, "full"): 1,
        ServiceCounter(VERDICT, name, 5, "early"): 1,
    }


# -- counters -------------------------------------------------------------------------------------


@pytest.mark.parametrize("what", NUMBERS)
def test_counters_are_what_the_messages_support(store: Store, what: str) -> None:
    """Of every mechanism, over groups of one to hundreds, as the plainest counting has it."""
    which, chance, model = series(what), random.Random(what), Model()
    for group, many in enumerate((1, 40, 40, 40, 300)):
        reports = [
            report(1000 * group + n, chance.randrange(3), message=message(which, chance))
            for n in range(many)
        ]
        assert send(store, which, *reports) == model.commit(which, reports, 1 << 40)

    cells = [Cell(0, 0), Cell(2, 0)]
    assert counts(store, which, *cells) == model.counters(which, cells)
    assert store.report_counts(which) == model.report_counts(which)


@pytest.mark.parametrize("what", ["several", "plane", "distribution"])
def test_many_groups_are_counted_as_one_would_be(store: Store, what: str) -> None:
    """However an engine keeps them meanwhile, and after their epoch was dropped."""
    which, chance, model, cell = series(what), random.Random(what), Model(), Cell(0, 0)
    for group in range(70):
        reports = [report(10 * group + n, 0, None, message(which, chance)) for n in (0, 1)]
        send(store, which, *reports)
        model.commit(which, reports, 1 << 40)
    before = counts(store, which, cell)
    drop_and_delete(store, which, 1)

    assert before == counts(store, which, cell) == model.counters(which, [cell])
    assert store.report_counts(which) == {cell: 140}


def test_segments_and_periods_have_tallies_of_their_own(store: Store) -> None:
    """Any of them can be summed; those that hold nothing are zeros."""
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
    """Any bytes under any key; read all together, by key, or as keys alone."""
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
    assert (store.record_count("key"), store.record_count("none")) == (2, 0)
    assert store.records("none") == {}
    assert store.record_keys("none") == set()


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


def test_whoever_opens_a_store_finds_the_same_incarnation(url: str, store: Store) -> None:
    before = store.incarnation()
    other = open_store(url)
    other.change_records(other.generation(), [Record("kind", "key", b"value")])
    found = other.incarnation()
    other.close()

    assert before == found == store.incarnation()


def test_concurrent_writers_of_records_lose_nothing(url: str, store: Store) -> None:
    """Each adds one to a number, again until nobody else was faster."""

    def add() -> None:
        own = open_store(url)
        for _ in range(10):
            done = False
            while not done:
                generation = own.generation()
                number = int(own.records("n").get("n", b"0"))
                done = own.change_records(generation, [Record("n", "n", b"%d" % (number + 1))])
        own.close()

    with ThreadPoolExecutor(4) as threads:
        for done in [threads.submit(add) for _ in range(4)]:
            done.result()

    assert store.records("n") == {"n": b"40"}
    assert store.generation() == 40


# -- many at once ---------------------------------------------------------------------------------


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
        verdicts = [each.result() for each in replays]

    assert all(Counter(each) == {COUNTED: 1, DUPLICATE: 7} for each in zip(*verdicts, strict=True))
    assert sum(store.report_counts(LINKED).values()) == 50
    assert histograms(store, LINKED)[0][0] == 50


def replay(url: str, seed: int, into: multiprocessing.Queue[int]) -> None:
    """Send the same reports as every other process, in another order."""
    store = open_store(url)
    reports = [report(n, n % 5, message=n % 3) for n in range(200)]
    random.Random(seed).shuffle(reports)
    groups = (reports[first : first + 7] for first in range(0, 200, 7))
    into.put(sum(send(store, LINKED, *group).count(COUNTED) for group in groups))
    store.close()


def test_two_processes_that_replay_one_batch_count_it_once(url: str, store: Store) -> None:
    spawn = multiprocessing.get_context("spawn")
    counted: multiprocessing.Queue[int] = spawn.Queue()
    processes = [spawn.Process(target=replay, args=(url, seed, counted)) for seed in range(2)]
    for process in processes:
        process.start()
    total = sum(counted.get(timeout=60) for _ in processes)
    for process in processes:
        process.join()

    assert total == 200
    assert counts(store, LINKED, *(Cell(period, 0) for period in range(5))) == [67, 67, 66]
    assert histograms(store, LINKED)[0][0] == 200


def test_reading_goes_on_while_others_write(store: Store) -> None:
    """What is read is one state: never more counted than there are reports."""
    which = series("plane")
    done = threading.Event()

    def write() -> None:
        for n in range(60):
            send(store, which, report(n, 0, message=n))
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
    """Not in another process either; it is read as ever, until it is made writable."""
    fill(store)
    health = store.health()
    other = open_store(url)
    store.set_read_only(on=True)
    before = digest(store)

    assert (health.durable, health.read_only) == (DurabilityState.YES, False)
    assert health.engine
    assert health.why
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
    """Also where the target has counted something of its own meanwhile."""
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


def test_counting_goes_on_where_it_was_taken_over(store: Store, target: Store) -> None:
    """Small counters and large ones, as if nothing had been moved."""
    kinds: Sequence[Series] = [DAILY, series("wide"), series("plane")]
    model, chance = Model(), random.Random(1)
    for first, where in ((0, store), (100, target)):
        if where is target:
            target.import_pieces(list(store.export_pieces()))
        for which in kinds:
            messages = [message(which, chance) for _ in range(60)]
            reports = [report(first + n, 1, None, x) for n, x in enumerate(messages)]
            send(where, which, *reports)
            model.commit(which, reports, 1 << 40)

    for which in kinds:
        assert counts(target, which, Cell(1, 0)) == model.counters(which, [Cell(1, 0)])
