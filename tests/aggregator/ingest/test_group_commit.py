"""Group commit: many requests, one transaction; one request's trouble is nobody else's."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, cast

import numpy as np
import pytest

from tests.aggregator.aggregator_fixtures import make_collection
from veilcount_aggregator.errors import Overloaded, StoreFull, StoreUnavailable
from veilcount_aggregator.ingest import group_commit
from veilcount_aggregator.ingest.group_commit import (
    GROUP,
    MAX_GROUP_REPORTS,
    MAX_STALLED_REQUESTS,
    SEVERAL,
    GroupCommitter,
)
from veilcount_aggregator.ingest.service_counters import ServiceCounters
from veilcount_aggregator.series.series import Series
from veilcount_aggregator.store import (
    COUNTED,
    UNDECIDED,
    Codes,
    SeriesReports,
    ServiceCounter,
    ServiceCounts,
    Store,
)

SERIES = Series(make_collection())
POISON, STOP = 77, 78
Answer = list[list[int]]


def spends(reports: int, slot: int = 0) -> SeriesReports:
    """Return so many reports; their slot tells them apart."""
    column, counted = np.zeros(reports, np.int64), np.full(reports, COUNTED)
    rows, messages = (np.zeros((reports, width), np.uint8) for width in (12, 1))
    return SeriesReports(SERIES, rows, column, column, column, column + slot, messages, counted, 1)


class Recording:
    """A store that counts everything, once it may go on, and remembers its groups; its queue."""

    def __init__(self, lanes: int = 1, **limits: Any) -> None:
        self.groups: list[list[SeriesReports]] = []
        self.notes: list[ServiceCounts] = []
        self.begun, self.go = threading.Event(), threading.Event()
        self.go.set()
        self.error: Exception | None = None
        self.lanes = lanes
        self.service_counters = ServiceCounters(iter(range(10**6)).__next__)  # written each time
        self.queue = GroupCommitter(cast("Store", self), self.service_counters, **limits)

    def lane(self, group: Sequence[SeriesReports]) -> int:
        return int(group[0].slots[0]) % self.lanes if group else 0

    def commit(self, group: Sequence[SeriesReports], notes: ServiceCounts) -> list[Codes]:
        """Answer each report with its slot, so that mixed-up answers would show."""
        self.begun.set()
        self.go.wait(60)
        slots = {int(slot) for each in group for slot in each.slots}
        if POISON in slots:
            raise ValueError("poison")
        if STOP in slots:
            raise SystemExit
        if self.error is not None:
            error, self.error = self.error, None
            raise error
        self.groups.append(list(group))
        self.notes.append(notes)
        return [each.slots.astype(np.uint8) for each in group]

    def answers(self, *wanted: SeriesReports) -> Answer:
        return [each.tolist() for each in self.queue.commit(wanted)]


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    """A thread for each request."""
    with ThreadPoolExecutor(40) as made:
        yield made


def waiting_for_one(
    pool: ThreadPoolExecutor, store: Recording, *wanted: SeriesReports
) -> list[Future[Answer]]:
    """Hold a first commit up, let these arrive meanwhile, then let go; the first one is first."""
    store.go.clear()
    requests = [pool.submit(store.answers, spends(1, 9))]
    assert store.begun.wait(60)
    for each in wanted:
        waiting = store.queue.waiting
        requests.append(pool.submit(store.answers, each))
        while store.queue.waiting == waiting and not requests[-1].done():
            time.sleep(0.001)
    store.go.set()
    return requests


def test_a_request_that_is_alone_leads_and_those_who_come_meanwhile_are_the_next_group(
    pool: ThreadPoolExecutor,
) -> None:
    """Each gets its own answers: there is no timer, and a slow store gets few large groups."""
    store = Recording()
    requests = waiting_for_one(pool, store, *(spends(place + 1, place) for place in range(8)))

    assert [each.result() for each in requests] == [[[9]], *([[p] * (p + 1)] for p in range(8))]
    assert [len(group) for group in store.groups] == [1, 8]
    assert store.answers(spends(2, 3), spends(1, 4)) == [[3, 3], [4]]


def test_lanes_commit_side_by_side(pool: ThreadPoolExecutor) -> None:
    """While one lane's transaction runs, another's begins: neither waits for the other."""
    store = Recording(lanes=2)
    store.go.clear()
    requests = [pool.submit(store.answers, spends(1, slot)) for slot in (0, 1)]
    while len(store.queue.queues()) < 2 or store.queue.waiting < 2:
        time.sleep(0.001)
    store.go.set()

    assert [each.result() for each in requests] == [[[0]], [[1]]]
    assert [len(group) for group in store.groups] == [1, 1]


def test_a_group_has_a_largest_size(pool: ThreadPoolExecutor) -> None:
    store = Recording()
    for each in waiting_for_one(pool, store, *(spends(900, place) for place in range(5))):
        each.result()

    assert [sum(map(len, group)) for group in store.groups] == [1, 1800, 1800, 900]
    assert MAX_GROUP_REPORTS == 2000


def test_a_store_that_fails_fails_the_whole_group_and_not_the_next(
    pool: ThreadPoolExecutor,
) -> None:
    """Nothing was written: all of them may ask again. Notes are written with the next group."""
    store, note = Recording(), ServiceCounter("x", "", -1, "y")
    store.service_counters.count(note, 3)
    store.error = StoreFull("full")
    failed, following = waiting_for_one(pool, store, spends(1))

    assert isinstance(failed.exception(), StoreFull)
    assert following.result() == [[0]]
    assert store.notes[0][note] == 3
    assert store.notes[0][ServiceCounter(GROUP, "", -1, "1")] >= 1


def test_one_poisoned_request_spoils_nobody_elses(pool: ThreadPoolExecutor) -> None:
    wanted = spends(1, 1), spends(1, POISON), spends(1, 2)
    first, one, poisoned, two = waiting_for_one(pool, Recording(), *wanted)

    assert [each.result() for each in (first, one, two)] == [[[9]], [[1]], [[2]]]
    assert isinstance(poisoned.exception(), ValueError)


def test_a_leader_that_is_stopped_leaves_nobody_waiting(pool: ThreadPoolExecutor) -> None:
    """Its followers retry, none of them counted; the next request leads."""
    store = Recording()
    _, *stopped = waiting_for_one(pool, store, spends(1, 1), spends(1, STOP), spends(1, 2))

    assert [type(each.exception()) for each in stopped] == [SystemExit, *[StoreUnavailable] * 2]
    assert store.answers(spends(1, 6)) == [[6]]


def test_what_waits_is_bounded(pool: ThreadPoolExecutor) -> None:
    """A request beyond it gets Retry-After; an empty queue accepts any request."""
    store = Recording(most_waiting=10)
    _, fits, over = waiting_for_one(pool, store, spends(9), spends(1))
    error = over.exception()

    assert fits.result() == [[0] * 9]
    assert isinstance(error, Overloaded)
    assert error.seconds > 0
    assert store.answers(spends(50)) == [[0] * 50]


def test_a_lane_that_hangs_keeps_few_requests(
    pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The threads of a process are few, and the other lanes need them: the rest may ask again."""
    monkeypatch.setattr(group_commit, "STALL_SECONDS", 0.2)
    store = Recording(lanes=2)
    store.answers(spends(1, 1))
    store.go.clear()
    requests = [pool.submit(store.answers, spends(1, 2)) for _ in range(32)]
    while sum(not each.done() for each in requests) > MAX_STALLED_REQUESTS:
        time.sleep(0.01)
    left = [each for each in requests if each.done()]
    left.append(pool.submit(store.answers, spends(1, 2)))
    late = left[-1].exception()
    store.go.set()

    assert len(left) == 32 - MAX_STALLED_REQUESTS + 1
    assert isinstance(late, StoreUnavailable)
    assert all(isinstance(each.exception(), StoreUnavailable) for each in left)
    assert all(each.result() == [[2]] for each in requests if each not in left)
    assert store.queue.waiting == 0
    assert store.answers(spends(1, 4)) == [[4]]


def test_where_there_is_one_lane_everybody_waits_for_it(
    pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slow disk is no reason to turn anybody away: nothing else could be served instead."""
    monkeypatch.setattr(group_commit, "STALL_SECONDS", 0.05)
    store = Recording()
    store.go.clear()
    requests = [pool.submit(store.answers, spends(1, 2)) for _ in range(16)]
    while store.queue.waiting < len(requests):
        time.sleep(0.001)
    time.sleep(0.3)
    store.go.set()

    assert all(each.result() == [[2]] for each in requests)


def test_a_request_fails_where_all_its_shards_do_and_no_other() -> None:
    """In a group of several lanes counted reports get their verdict if others fail."""
    store: Any = Recording()
    store.lane = lambda _: SEVERAL
    store.commit = lambda group, _: [  # slot 1 is away
        np.where(each.slots == 1, UNDECIDED, each.slots.astype(np.uint8)) for each in group
    ]

    with pytest.raises(StoreUnavailable, match="all shards"):
        store.answers(spends(2, 1))
    assert store.answers(spends(1, 1), spends(1, 3)) == [[255], [3]]
