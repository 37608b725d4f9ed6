"""No definition and no request takes all of Redis's memory; what counters take is accounted."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.aggregator.store.redis.simulated_rows import million, random_reports, recounted
from tests.aggregator.store.series_fixtures import ARMS, DAILY, message, report, send, series
from tests.redis_cluster import RedisCluster
from tests.redis_server import RedisServer
from tests.system.server import wait_until
from veilcount_aggregator.errors import StoreError
from veilcount_aggregator.series.series import Series
from veilcount_aggregator.store import COUNTED, Cell, MemoryLimits
from veilcount_aggregator.store.memory_limit import PAGE, SPARSE, UNLIMITED, tally_bytes, worst_case
from veilcount_aggregator.store.redis.memory_limit import RedisMemoryLimits
from veilcount_aggregator.store.redis.store import RedisStore, open_redis
from veilcount_aggregator.store.series_reports import MEMORY_FULL
from veilcount_shared.verdict import Verdict

FULL = MEMORY_FULL
MEGABYTE = 1 << 20
ANY = MemoryLimits(1 << 50, 1 << 50)


@pytest.fixture
def own(tmp_path: Path) -> Iterator[RedisServer]:
    server = RedisServer(tmp_path, maxmemory="32mb")
    yield server
    server.kill()


def used(server: RedisServer) -> int:
    with server.connection() as connection:
        return int(connection.info("memory")["used_memory"])


def usage(server: RedisServer) -> int:
    """Return what Redis says that all keys of tallies take."""
    with server.connection() as connection:
        keys = [
            key
            for kind in ("tally", "pages", "reports")
            for key in connection.scan_iter(f"*:{kind}:*", count=1000)
        ]
        return sum(connection.memory_usage(key, samples=0) or 0 for key in keys)


# -- one request ----------------------------------------------------------------------------------


def test_a_report_in_each_tally_takes_a_kilobyte_each(own: RedisServer) -> None:
    """Of 992 tallies of 7.5 MB, were they whole; other collections count, before and after."""
    which, many = million(32), 992
    store = open_redis(own.url, make=True)
    assert send(store, DAILY, report(1)) == [Verdict.COUNTED]
    before = used(own)

    codes = store.commit([random_reports(which, many, 1, cells=many)], {})[0]

    assert (codes == COUNTED).all()
    assert tally_bytes(which.counters) > 7_500_000
    assert used(own) - before < 1_500 * many
    assert send(store, DAILY, report(2), report(2, 1)) == [Verdict.COUNTED] * 2
    own.kill()
    own.start()
    assert send(store, DAILY, report(3)) == [Verdict.COUNTED]
    assert sum(store.report_counts(which).values()) == many
    store.close()


def test_one_series_takes_half_of_what_all_may_take_of_maxmemory(own: RedisServer) -> None:
    """Reports that each touch another page are refused in the end; other collections count."""
    own.ask("CONFIG", "SET", "maxmemory", "6mb")
    which, limit = million(32), 6 * MEGABYTE * 6 // 10
    with closing(open_redis(own.url, make=True)) as store:
        groups = (random_reports(which, 2_000, seed, cells=1_000) for seed in range(4))
        refused = [FULL in store.commit([each], {})[0] for each in groups]
        use = store.memory_use()

        assert refused[-1]
        assert use.limit == limit
        assert 0.95 * limit / 2 < use.series[which.fingerprint] <= limit / 2
        assert recounted(store, which.fingerprint) == use.total
        assert send(store, DAILY, report(1)) == [Verdict.COUNTED]


def test_each_shard_has_its_share_of_the_limits(cluster: RedisCluster) -> None:
    """Together they take no more than a series, and then a store, may."""
    which = series("plane")
    store = open_redis(f"{cluster.url}?shards=3", make=True)
    limits = MemoryLimits(60_000)

    codes = store.commit([random_reports(which, 3_000, 1, cells=20, memory=limits)], {})[0]

    assert FULL in codes
    assert 50_000 < store.memory_use().total <= 60_000
    assert store.memory_use().shards == 3
    assert recounted(store, which.fingerprint) == store.memory_use().total
    assert sum(store.report_counts(which).values()) == (codes == COUNTED).sum()
    store.close()


# -- pages ----------------------------------------------------------------------------------------


def kinds(server: RedisServer, store: RedisStore, which: Series) -> dict[int, str]:
    """Return how each page of a cell is kept."""
    with server.connection() as connection:
        keys = connection.keys(f"*:tally:{which.fingerprint}:0/0:*")
        return {
            int(key.rpartition(b":")[2]): connection.object("encoding", key).decode()
            for key in keys
        }


def test_a_page_is_packed_until_it_has_128_counters(server: RedisServer, store: RedisStore) -> None:
    which = series("plane")
    many_reports = [report(n, message=PAGE + n) for n in range(SPARSE + 1)]
    send(store, which, *many_reports[:SPARSE])
    packed = store.memory_use().total
    send(store, which, *(report(1000 + n, message=PAGE + n) for n in range(SPARSE)))
    assert kinds(server, store, which) == {1: "listpack"}
    assert store.memory_use().total == packed

    send(store, which, many_reports[-1], report(5000, message=0))

    assert kinds(server, store, which) == {0: "listpack", 1: "raw"}
    counters = store.counters(which, [Cell(0, 0)])
    assert counters[PAGE : PAGE + SPARSE + 1].tolist() == [2] * SPARSE + [1]
    assert counters.sum() == 2 * SPARSE + 2
    assert recounted(store, which.fingerprint) == store.memory_use().total


@pytest.mark.parametrize("many", [1, 300, 6_000])
def test_the_account_is_what_redis_says(server: RedisServer, store: RedisStore, many: int) -> None:
    """At most 0.7 above it (Valkey packs pages more tightly), and never a tenth below, however full
    the pages are.
    """
    which = million(32)
    for first in range(0, many, 2_000):
        size = min(2_000, many - first)
        store.commit([random_reports(which, size, first, cells=3, memory=ANY)], {})

    taken = store.memory_use().total
    assert recounted(store, which.fingerprint) == taken
    assert usage(server) / 1.1 < taken < 1.7 * usage(server)


def test_the_account_of_small_tallies_is_what_redis_says(
    server: RedisServer, store: RedisStore
) -> None:
    """Within a factor of two: the least of them is a key and little more."""
    for which in (DAILY, ARMS, series("wide"), series("distribution")):
        chance = random.Random(1)
        for period in range(40):
            some = [report(n, period, message=message(which, chance)) for n in range(3)]
            assert send(store, which, *some) == [Verdict.COUNTED] * 3

    assert usage(server) / 1.1 < store.memory_use().total < 2 * usage(server)


def test_a_page_that_fills_while_it_is_read_is_read_whole(
    server: RedisServer, store: RedisStore
) -> None:
    """A reader meets packed pages and whole ones, and what was counted before it began."""
    which, stop, wrong = million(32), threading.Event(), []

    def count_on() -> None:
        for seed in range(15):
            store.commit([random_reports(which, 2_000, seed, memory=ANY)], {})
        stop.set()

    writer = threading.Thread(target=count_on)
    writer.start()
    reader = open_redis(server.url, make=False)
    while not stop.is_set():
        before = sum(reader.report_counts(which).values())
        held = int(reader.counters(which, [Cell(0, 0)]).sum())
        wrong += [(before, held)] if held < before else []
    writer.join()

    assert not wrong
    assert int(reader.counters(which, [Cell(0, 0)]).sum()) == 30_000
    reader.close()


# -- a server that hangs -------------------------------------------------------------------------


def _answers(store: RedisStore) -> bool:
    try:
        store.memory_use()
    except StoreError:
        return False
    return True


# -- the formula ----------------------------------------------------------------------------------


def test_the_worst_case_is_every_counter_of_every_cell() -> None:
    """In every shard; of a million counters and 32 cells over 63 days, 15 GB."""
    which = million(32)
    collection = which.collection

    assert worst_case(collection) == 63 * 32 * tally_bytes(which.counters)
    assert worst_case(collection, shards=3) == 3 * worst_case(collection)
    assert 15e9 < worst_case(collection) < 16e9
    assert worst_case(DAILY.collection) < 30_000


def test_a_server_that_hangs_when_a_worker_starts_has_its_limit_soon_after(
    own: RedisServer,
) -> None:
    """Not a minute later: a flood that comes as it is back must not find it without one."""
    now = [100.0]
    store = open_redis(own.url, make=True)
    limits = RedisMemoryLimits(store._servers, store.identity, lambda: now[0])
    own.freeze()
    hung = limits.by_shard(None)[0].total
    own.thaw()
    now[0] += 5
    wait_until(lambda: _answers(store))
    back = limits.by_shard(None)[0].total
    store.close()

    assert (hung, back) == (UNLIMITED, 32 * MEGABYTE * 6 // 10)
