"""A worker is killed at every write of a hand-over, and of the end of an unfinished batch.

Whatever was answered is there, nothing counts twice, and half a batch is never read. With Redis its
server is killed as well.
"""

from __future__ import annotations

import random
import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from veilcount_aggregator.records.shuffled_batches.batch_entry import BatchEntry
from veilcount_aggregator.records.shuffled_batches.record_store import batch_records
from veilcount_aggregator.store import BatchChange, Cell
from veilcount_aggregator.store.redis.store import RedisStore
from veilcount_aggregator.store.sql.store import SqlStore
from veilcount_shared.shuffling import part as parts_module
from veilcount_shared.shuffling.batch_record import BatchRecord, BatchState
from veilcount_shared.shuffling.part import BatchPart

from ....redis_cluster import RedisCluster
from ....redis_server import RedisServer
from ...web.api.deployment_fixtures import Deployment, open_worker
from .batch_fixtures import AFTER_GRACE, FILE, TestShuffler
from .ending_workers import (
    ByteEnding,
    CallEnding,
    EndedWorker,
    Ending,
    Reply,
    StatementEnding,
    ended_worker,
)

MESSAGES = (0, 1, 1, 0, 1)
ACCEPTED, COUNTERS, NOTHING = [2, 2, 1], [2, 3], [0, 0]
RECORD = len(ACCEPTED)  # by which the answer to the record is called
UNFINISHED = AFTER_GRACE + timedelta(days=40)
SAMPLE, SEED = 4, 1


# -- engines ---------------------------------------------------------------------------------------


@dataclass
class Engine:
    """Where a store is, how a worker ends there, and who is killed with it."""

    url: str
    ending: Ending
    server: RedisServer | None = None

    def kill_server(self) -> None:
        """End the server, which has promised that what it answered is durable."""
        if self.server is not None:
            self.server.kill()
            self.server.start()


@contextmanager
def sqlite(folder: Path, *, torn: bool) -> Iterator[Callable[[], Engine]]:
    numbers = iter(range(1 << 20))

    def empty() -> Engine:
        file = folder / f"{next(numbers)}.db"
        ending = ByteEnding(file.with_name(f"{file.name}-wal")) if torn else StatementEnding()
        return Engine(f"sqlite:///{file}?durability=relaxed", ending)

    yield empty


@contextmanager
def redis(folder: Path) -> Iterator[Callable[[], Engine]]:
    server = RedisServer(folder)

    def empty() -> Engine:
        server.ask("FLUSHALL")
        return Engine(server.url, CallEnding(), server)

    yield empty
    server.kill()


@contextmanager
def redis_cluster(folder: Path) -> Iterator[Callable[[], Engine]]:
    cluster = RedisCluster(folder)

    def empty() -> Engine:
        for node in cluster.nodes:
            node.ask("FLUSHALL")
        cluster.wait()
        return Engine(cluster.url, CallEnding())

    yield empty
    cluster.close()


ENGINES: dict[str, Callable[[Path], AbstractContextManager[Callable[[], Engine]]]] = {
    "statements": partial(sqlite, torn=False),
    "torn-writes": partial(sqlite, torn=True),
    "redis": redis,
    "redis-cluster": redis_cluster,
}
BY_DEFAULT = [
    pytest.param(name, marks=[pytest.mark.full] if name == "redis-cluster" else [])
    for name in ENGINES
]


# -- what is done and what is true of it -----------------------------------------------------------


@dataclass
class Scenario:
    """A deployment on an empty store, and a batch of three parts with its record."""

    engine: Engine
    shuffler: TestShuffler
    parts: list[BatchPart]
    record: BatchRecord

    @classmethod
    def prepare(cls, engine: Engine) -> Scenario:
        """Make the store, and close it."""
        with open_worker(engine.url, AFTER_GRACE, make=True) as made:
            made.push(FILE)
            shuffler = TestShuffler(made)
            parts = shuffler.batch([shuffler.seal(message) for message in MESSAGES])
            head = parts[0].head
            record = BatchRecord(
                BatchState.HANDED_OVER, head.crowd_id, 0, head.reports, 0, head.digest
            )
            return cls(engine, shuffler, parts, shuffler.sign(record))

    @contextmanager
    def worker(self) -> Iterator[Deployment]:
        """Have another worker, which the shuffler sends to."""
        with open_worker(self.engine.url, AFTER_GRACE) as made:
            self.shuffler.deployed = made
            yield made

    def work(self, at: int, reply: Reply) -> int:
        """Do all of it in this process, or end at a write; return how many there were."""
        with self.worker() as made:
            self.engine.ending.arm(at)
            self.act(made, reply)
            return self.engine.ending.places()

    def act(self, made: Deployment, reply: Reply) -> None:
        """Hand over all parts, then the record."""
        self.send_parts(reply)
        assert self.shuffler.send_record(self.record).status == 200
        reply(RECORD)
        made.aggregator.flush()

    def send_parts(self, reply: Reply) -> None:
        """Send all parts in turn."""
        for part in self.parts:
            assert self.shuffler.send(part).status == 200
            reply(part.number)

    def killed(self, at: int) -> list[str]:
        """Kill a worker at one of its writes; return what is wrong then, and after a retry.

        A call to a cluster may be one more, or one less: a node says that it has nothing of a key.
        """
        worker = ended_worker(partial(self.work, at))
        assert worker.by in {signal.SIGKILL, signal.SIGXFSZ} or at > worker.places
        self.engine.kill_server()
        with self.worker() as made:
            return [*self.wrong_at_once(worker), *self.wrong_after_retry(made)]

    def entry(self) -> BatchEntry | None:
        """The entry of the batch, as it is stored."""
        return next(map(BatchEntry.decode, self.shuffler.entries().values()), None)

    def wrong_at_once(self, worker: EndedWorker) -> Iterator[str]:
        """Yield what another worker finds that cannot be."""
        entry = self.entry()
        parts = set(entry.totals) if entry else set()
        if not set(worker.answered) - {RECORD} <= parts:
            yield "a part was answered and is lost"
        if RECORD in worker.answered and self.records() != [self.record]:
            yield "a record was answered and is lost"
        if self.counts() != ((COUNTERS, 5) if len(parts) == len(self.parts) else (NOTHING, 0)):
            yield "counters are not those of the parts"

    def wrong_after_retry(self, _made: Deployment) -> Iterator[str]:
        """Send all of it twice; yield what cannot be then."""
        for _ in range(2):
            replies = [self.shuffler.send(part) for part in self.parts]
            if [reply.json.get("accepted") for reply in replies] != ACCEPTED:
                yield "a part is answered otherwise"
            if replies[-1].json.get("missing") != [] or self.counts() != (COUNTERS, 5):
                yield "the batch is not counted once"
            if self.shuffler.send_record(self.record).status != 200:
                yield "the record is refused"
        second = replace(self.parts[0].head, batch_id=bytes(16))
        part = self.shuffler.sign(replace(self.parts[0], head=second))
        if self.records() != [self.record] or self.shuffler.send(part).problem != "second-batch":
            yield "there is another record or batch"

    def counts(self) -> tuple[list[int], int]:
        """Return what an analyst reads: counters, and the number of reports."""
        store = self.shuffler.deployed.aggregator.store
        reports = store.report_counts(self.shuffler.series())
        return self.shuffler.counters(), reports.get(Cell(0, 0), 0)

    def records(self) -> list[BatchRecord]:
        """Return the records of the series."""
        store = self.shuffler.deployed.aggregator.store
        return batch_records(store, self.shuffler.series())


class PartsAlone(Scenario):
    """A hand-over that ends with its last part."""

    def act(self, _made: Deployment, reply: Reply) -> None:
        """Hand over all parts."""
        self.send_parts(reply)


class UnfinishedBatch(Scenario):
    """Of a batch two parts have come; it is closed by a worker that may end there."""

    def act(self, made: Deployment, reply: Reply) -> None:
        """Close it, 40 days after its grace."""
        self.send_two()
        made.clocks.now = UNFINISHED
        made.aggregator._close_batches([self.shuffler.series()])
        reply(RECORD)
        made.aggregator.flush()

    def send_two(self) -> None:
        """Send all parts but the last."""
        assert {self.shuffler.send(part).status for part in self.parts[:-1]} == {200}

    def wrong_at_once(self, worker: EndedWorker) -> Iterator[str]:
        """Yield what another worker finds that cannot be."""
        entry = self.entry()
        if worker.answered and (entry is None or not entry.closed):
            yield "a batch was closed and is open"
        if entry is not None and entry.closed == bool(entry.counters):
            yield "a closed batch has counters, or an open one has none"
        if self.counts() != (NOTHING, 0):
            yield "half a batch is counted"

    def wrong_after_retry(self, made: Deployment) -> Iterator[str]:
        """Close it again; its last part comes too late."""
        if self.entry() is None or not self.entry().closed:  # type: ignore[union-attr] # just read
            self.send_two()
        made.clocks.now = UNFINISHED
        made.aggregator._close_batches([self.shuffler.series()])
        late = self.shuffler.send(self.parts[-1])
        if late.problem != "batch-late" or self.counts() != (NOTHING, 0):
            yield "a closed batch takes a part"
        entry = self.entry()
        if entry is None or not entry.closed or entry.counters:
            yield "it is not closed"


# -- the sweeps ------------------------------------------------------------------------------------


def places(kind: type[Scenario], empty: Callable[[], Engine]) -> range:
    """Return all writes of a scenario."""
    whole = kind.prepare(empty())
    worker = ended_worker(partial(whole.work, 0))
    assert worker.by == 0
    return range(1, worker.places + 1)


def sweep(kind: type[Scenario], empty: Callable[[], Engine], at: Iterable[int]) -> dict[int, Any]:
    """Kill at each of these writes; return those after which something is wrong."""
    wrong = {place: kind.prepare(empty()).killed(place) for place in at}
    return {place: problems for place, problems in wrong.items() if problems}


@pytest.fixture
def empty(
    request: pytest.FixtureRequest, memory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[], Engine]]:
    """An engine: called, it gives an empty store."""
    monkeypatch.setattr(parts_module, "PART_REPORTS", 2)
    with ENGINES[request.param](tmp_path) as served:
        yield served


SCENARIOS = [Scenario, UnfinishedBatch]


@pytest.mark.parametrize("empty", BY_DEFAULT, indirect=True)
@pytest.mark.parametrize("kind", SCENARIOS)
def test_a_worker_that_is_killed_at_some_writes_loses_nothing(
    empty: Callable[[], Engine], kind: type[Scenario]
) -> None:
    some = random.Random(SEED).sample(places(kind, empty), SAMPLE)

    assert not sweep(kind, empty, some)


@pytest.mark.full
@pytest.mark.parametrize("empty", ENGINES, indirect=True)
@pytest.mark.parametrize("kind", SCENARIOS)
def test_a_worker_that_is_killed_at_every_write_loses_nothing(
    empty: Callable[[], Engine], kind: type[Scenario]
) -> None:
    assert not sweep(kind, empty, places(kind, empty))


def apart(change_batch: Callable[..., bool]) -> Callable[..., bool]:
    """The planted fault: the digest of the last part is committed before the counters are."""

    def changed(store: object, series: object, change: BatchChange) -> bool:
        if change.counters is None:
            return change_batch(store, series, change)
        if not change_batch(store, series, change._replace(counters=None)):
            return False
        return change_batch(store, series, change._replace(expected=change.entry))

    return changed


@pytest.mark.parametrize("empty", BY_DEFAULT, indirect=True)
def test_a_digest_that_is_committed_apart_from_its_counters_is_found(
    empty: Callable[[], Engine], monkeypatch: pytest.MonkeyPatch
) -> None:
    for store in (SqlStore, RedisStore):
        monkeypatch.setattr(store, "change_batch", apart(store.change_batch))
    from_the_end = reversed(places(PartsAlone, empty))
    wrong = (sweep(PartsAlone, empty, [place]) for place in from_the_end)
    (problems,) = next(filter(None, wrong)).values()

    assert {"counters are not those of the parts", "the batch is not counted once"} <= set(problems)
