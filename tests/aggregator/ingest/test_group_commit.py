"""Group commit: many requests, one transaction; one request's trouble is nobody else's."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
import pytest

from tests.aggregator.aggregator_fixtures import make_collection
from veilcount_aggregator.errors import Overloaded, StoreFull, StoreUnavailable
from veilcount_aggregator.ingest import group_commit as commit
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
POISON = 77


def spends(reports: int, slot: int = 0) -> SeriesReports:
    """Return so many reports; their slot tells them apart."""
    column = np.zeros(reports, np.int64)
    return SeriesReports(
        SERIES,
        np.zeros((reports, 12), np.uint8),
        column,
        column,
        column,
        column + slot,
        np.zeros((reports, 1), np.uint8),
        np.full(reports, COUNTED),
        1,
    )


class Recording:
    """A store that counts everything, once it may go on, and remembers its groups."""

    def __init__(self) -> None:
        self.groups: list[list[SeriesReports]] = []
        self.notes: list[ServiceCounts] = []
        self.begun, self.go = threading.Event(), threading.Event()
        self.go.set()
        self.error: BaseException | None = None
        self.lanes = 1
        self.stopped = False

    def lane(self, group: Sequence[SeriesReports]) -> int:
        return int(group[0].slots[0]) % self.lanes if group else 0

    def commit(self, group: Sequence[SeriesReports], notes: ServiceCounts) -> list[Codes]:
        """Answer each report with its slot, so that mixed-up answers would show."""
        self.begun.set()
        self.go.wait(20)
        if any((each.slots == POISON).any() for each in group):
            raise ValueError("poison")
        if self.stopped and len(group) > 1:
            raise SystemExit
        if self.error is not None:
            error, self.error = self.error, None
            raise error
        self.groups.append(list(group))
        self.notes.append(notes)
        return [each.slots.astype(np.uint8) for each in group]


def committer(store: Recording, **named: Any) -> GroupCommitter:
    return GroupCommitter(
        cast("Store", store), ServiceCounters(iter(range(10**6)).__next__), **named
    )


def answers(queue: GroupCommitter, *wanted: SeriesReports) -> list[list[int]]:
    return [each.tolist() for each in queue.commit(wanted)]


class Request(threading.Thread):
    def __init__(self, ask: Callable[[], list[Codes]]) -> None:
        super().__init__(daemon=True)
        self._ask = ask
        self.codes: list[list[int]] = []
        self.error: BaseException | None = None
        self.start()

    def run(self) -> None:
        try:
            self.codes = [each.tolist() for each in self._ask()]
        except BaseException as error:  # noqa: BLE001 - looked at by the test
            self.error = error

    def done(self) -> Request:
        self.join(20)
        assert not self.is_alive()
        return self


def waiting_for_one(
    queue: GroupCommitter, store: Recording, wanted: Sequence[SeriesReports]
) -> list[Request]:
    """Hold a first commit up, let these arrive meanwhile, then let go; the first one is first."""
    store.begun.clear()
    store.go.clear()
    requests = [Request(lambda: queue.commit([spends(1, 9)]))]
    assert store.begun.wait(20)
    for each in wanted:
        waiting = queue.waiting
        requests.append(Request(lambda each=each: queue.commit([each])))  # type: ignore[misc] # bound
        while queue.waiting == waiting and requests[-1].is_alive():
            time.sleep(0.001)
    store.go.set()
    return [each.done() for each in requests]


def test_a_request_that_is_alone_leads_and_those_who_come_meanwhile_are_the_next_group() -> None:
    """Each gets its own answers: there is no timer, and a slow store gets few large groups."""
    store = Recording()
    queue = committer(store)
    requests = waiting_for_one(queue, store, [spends(place + 1, place) for place in range(8)])

    assert [len(group) for group in store.groups] == [1, 8]
    assert [each.codes for each in requests] == [[[9]], *([[p] * (p + 1)] for p in range(8))]
    assert answers(queue, spends(2, 3), spends(1, 4)) == [[3, 3], [4]]


def test_lanes_commit_side_by_side() -> None:
    """While one lane's transaction runs, another's begins: neither waits for the other."""
    store = Recording()
    store.lanes = 2
    queue = committer(store)
    store.go.clear()
    requests = [Request(lambda slot=slot: queue.commit([spends(1, slot)])) for slot in (0, 1)]  # type: ignore[misc] # bound
    while queue.waiting < 2 or len(queue._lanes) < 2:
        time.sleep(0.001)
    store.go.set()

    assert [each.done().codes for each in requests] == [[[0]], [[1]]]
    assert [len(group) for group in store.groups] == [1, 1]


def test_a_group_has_a_largest_size() -> None:
    store = Recording()
    waiting_for_one(committer(store), store, [spends(900, place) for place in range(5)])

    assert [sum(map(len, group)) for group in store.groups] == [1, 1800, 1800, 900]
    assert MAX_GROUP_REPORTS == 2000


def test_a_store_that_fails_fails_the_whole_group_and_not_the_next() -> None:
    """Nothing was written: all of them may ask again. Notes are written with the next group."""
    store, service_counters = Recording(), ServiceCounters(iter(range(10**6)).__next__)
    queue = GroupCommitter(cast("Store", store), service_counters)
    note = ServiceCounter("x", "", -1, "y")
    service_counters.count(note, 3)
    store.error = StoreFull("full")
    failed, following = waiting_for_one(queue, store, [spends(1)])

    assert isinstance(failed.error, StoreFull)
    assert following.codes == [[0]]
    assert store.notes[0][note] == 3
    assert store.notes[0][ServiceCounter(GROUP, "", -1, "1")] >= 1


def test_one_poisoned_request_spoils_nobody_elses() -> None:
    store = Recording()
    wanted = [spends(1, 1), spends(1, POISON), spends(1, 2)]
    first, one, poisoned, two = waiting_for_one(committer(store), store, wanted)

    assert (first.codes, one.codes, two.codes) == ([[9]], [[1]], [[2]])
    assert isinstance(poisoned.error, ValueError)


def test_a_leader_that_is_stopped_leaves_nobody_waiting() -> None:
    """Its followers retry, none of them counted; the next request leads."""
    store = Recording()
    queue = committer(store)
    store.stopped = True
    _, leader, *followers = waiting_for_one(queue, store, [spends(1, place) for place in range(3)])

    assert isinstance(leader.error, SystemExit)
    assert [type(each.error) for each in followers] == [StoreUnavailable] * 2
    assert answers(queue, spends(1, 6)) == [[6]]


def test_what_waits_is_bounded() -> None:
    """A request beyond it gets Retry-After; an empty queue accepts any request."""
    store = Recording()
    queue = committer(store, most_waiting=10)
    _, fits, over = waiting_for_one(queue, store, [spends(9), spends(1)])

    assert fits.codes == [[0] * 9]
    assert isinstance(over.error, Overloaded)
    assert over.error.seconds > 0
    assert len(queue.commit([spends(50)])[0]) == 50


def test_a_lane_that_hangs_keeps_few_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    """The threads of a process are few, and the other lanes need them: the rest may ask again."""
    monkeypatch.setattr(commit, "STALL_SECONDS", 0.2)
    store = Recording()
    store.lanes = 2
    queue = committer(store)
    queue.commit([spends(1, 1)])
    store.go.clear()
    requests = [Request(lambda: queue.commit([spends(1, 2)])) for _ in range(32)]
    while sum(each.is_alive() for each in requests) > MAX_STALLED_REQUESTS:
        time.sleep(0.01)
    left = [each for each in requests if not each.is_alive()]
    late = Request(lambda: queue.commit([spends(1, 2)])).done()
    store.go.set()
    stayed = [each.done() for each in requests if each not in left]

    assert len(left) == 32 - MAX_STALLED_REQUESTS
    assert all(isinstance(each.error, StoreUnavailable) for each in (*left, late))
    assert all(each.codes == [[2]] for each in stayed)
    assert queue.waiting == 0
    assert answers(queue, spends(1, 4)) == [[4]]


def test_where_there_is_one_lane_everybody_waits_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A slow disk is no reason to turn anybody away: nothing else could be served instead."""
    monkeypatch.setattr(commit, "STALL_SECONDS", 0.05)
    store = Recording()
    queue = committer(store)
    store.go.clear()
    requests = [Request(lambda: queue.commit([spends(1, 2)])) for _ in range(16)]
    while queue.waiting < len(requests):
        time.sleep(0.001)
    time.sleep(0.3)
    store.go.set()

    assert all(each.done().codes == [[2]] for each in requests)


def test_a_request_fails_where_all_its_shards_do_and_no_other() -> None:
    """In a group of several lanes counted reports get their verdict if others fail."""
    store = Recording()
    store.lane = lambda group: SEVERAL  # type: ignore[method-assign] # every group of several
    store.commit = lambda group, notes: [  # type: ignore[method-assign] # slot 1 is away
        np.where(each.slots == 1, UNDECIDED, each.slots.astype(np.uint8)) for each in group
    ]
    queue = committer(store)

    with pytest.raises(StoreUnavailable, match="all shards"):
        queue.commit([spends(2, 1)])
    assert answers(queue, spends(1, 1), spends(1, 3)) == [[255], [3]]
