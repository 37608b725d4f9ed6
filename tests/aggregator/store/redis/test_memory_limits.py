"""No definition and no request takes all of Redis's memory: what is admitted can be filled."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass
from datetime import date
from typing import Any

import numpy as np
import pytest

from veilcount_aggregator.errors import CounterMemoryExceeded, StoreFull
from veilcount_aggregator.records import counter_admission
from veilcount_aggregator.records.counter_admission import AdmittedMemory, require_memory
from veilcount_aggregator.store import COUNTED, UNDECIDED, Cell, Store
from veilcount_aggregator.store.redis.memory_limit import SHARE
from veilcount_aggregator.store.redis.row_permutation import RowPermutation
from veilcount_aggregator.store.redis.shard_client import Command
from veilcount_aggregator.store.redis.store import RedisStore, open_redis
from veilcount_aggregator.store.tally_size import (
    COUNTER_BYTES,
    HASH_BYTES,
    HASH_PAGES,
    PAGE,
    SPARSE,
    period_bytes,
    tally_bytes,
    touched_bytes,
    worst_case,
)
from veilcount_analysis.series.series import Series
from veilcount_shared.verdict import Verdict

from ....redis_cluster import RedisCluster
from ....redis_server import RedisServer
from ..series_fixtures import ARMS, DAILY, message, report, send, series
from .simulated_rows import million, random_reports, wide

GROUP = 2_000
TODAY = date(2026, 1, 1)  # the first of every definition here


def used(server: RedisServer) -> int:
    with server.connection() as connection:
        return int(connection.info("memory")["used_memory"])


def usage(*servers: RedisServer) -> int:
    """Return what Redis says that all keys of tallies take."""
    return sum(map(_usage, servers))


def _usage(server: RedisServer) -> int:
    with server.connection() as connection:
        keys = [
            key
            for kind in ("tally", "pages", "hashes", "reports")
            for key in connection.scan_iter(f"*:{kind}:*", count=1000)
        ]
        return sum(connection.memory_usage(key, samples=0) or 0 for key in keys)


def commits(store: RedisStore) -> int:
    """Return how many calls have committed, or refused to: each raises its shard's height."""
    commands = [
        Command(base, ("HGET", base + b":height", "height")) for base in store.identity.bases
    ]
    return sum(int(height or 0) for height in store._servers.execute_all(commands))


def set_maxmemory(servers: Sequence[RedisServer], size: int) -> None:
    for server in servers:
        server.ask("CONFIG", "SET", "maxmemory", str(size))


# -- a definition that is filled to its worst case ------------------------------------------------


def require_maxmemory(servers: Sequence[RedisServer], store: Store, new: Series) -> None:
    """Set the least `maxmemory` with which a definition is admitted next to `DAILY`.

    A server has one shard here, which is why a share of the needs is set for each.
    """
    needs = AdmittedMemory.from_store(store, [DAILY, new], TODAY, None).needs
    least = int((needs / len(servers) + 1) / SHARE) + 1
    known = {DAILY.fingerprint: DAILY}
    set_maxmemory(servers, least - least // 100)
    with pytest.raises(CounterMemoryExceeded, match="theme: its counters can need"):
        require_memory(store, known, [new], TODAY, None)
    set_maxmemory(servers, least)
    require_memory(store, known, [new], TODAY, None)


def fill(store: Store, which: Series, reports_a_tally: int) -> int:
    """Send random reports to every cell of every period, as a hostile client would."""
    collection = which.collection
    places = np.repeat(np.arange(collection.periods * collection.cells), reports_a_tally)
    groups = [places[first : first + GROUP] for first in range(0, len(places), GROUP)]
    for seed, group in enumerate(groups):
        reports = random_reports(which, len(group), seed, places=group)
        (codes,) = store.commit([reports], {})
        if UNDECIDED in codes:
            raise StoreFull("some shards are full")

        assert (codes == COUNTED).all()
    return len(groups)


@dataclass(frozen=True)
class Filling:
    """A definition, and how many reports fill one of its tallies."""

    series: Series
    reports: int


#: a tally of one string, made by the first report, and one of two pages that 129 reports fill each:
#: ten random reports, and twice two hundred, are nearly surely enough
STRINGS = Filling(wide(1_500, periods=120), 10)
PAGES = Filling(wide(4_000, periods=45), 400)


def fill_after_admission(servers: Sequence[RedisServer], url: str, filling: Filling) -> None:
    """Admit a definition where there is just enough memory, and fill it to its worst case."""
    which = filling.series
    with closing(open_redis(url, make=True)) as store:
        shards = store.shard_count()
        assert send(store, DAILY, report(1)) == [Verdict.COUNTED]
        require_maxmemory(servers, store, which)
        before = commits(store)
        groups = fill(store, which, filling.reports * shards)
        calls = commits(store) - before
        set_maxmemory(servers, 0)

        assert calls == groups * shards
        assert 0.85 < usage(*servers) / worst_case(which.collection, shards) < 1.05
        assert send(store, DAILY, report(1), report(2)) == [Verdict.DUPLICATE, Verdict.COUNTED]
        assert store.counters(DAILY, [Cell(0, 0)]).sum() == 2


#: by what an admission errs if it forgets cells or shards: planted, Redis is full before the worst
FORGETTING_CELLS = {"period_bytes": lambda each, n=1: period_bytes(each, n) // each.cells}
FORGETTING_SHARDS = {"period_bytes": lambda each, _=1: period_bytes(each, 1)}


def check_admission(
    servers: Sequence[RedisServer], url: str, filling: Filling, planted: dict[str, Any]
) -> None:
    """Fill an admitted definition; with a planted error, Redis must be full before it is."""
    with pytest.MonkeyPatch.context() as patch:
        for name, error in planted.items():
            patch.setattr(counter_admission, name, error)
        with pytest.raises(StoreFull) if planted else nullcontext():
            fill_after_admission(servers, url, filling)
    set_maxmemory(servers, 0)


@pytest.mark.parametrize("planted", [{}, FORGETTING_CELLS], ids=["", "planted"])
@pytest.mark.parametrize("filling", [STRINGS, PAGES], ids=["strings", "pages"])
def test_every_report_of_an_admitted_definition_is_counted_up_to_its_worst_case(
    own: RedisServer, filling: Filling, planted: dict[str, Any]
) -> None:
    """In one call a group; a Redis with 1 % less memory refuses the definition."""
    check_admission([own], own.url, filling, planted)


@pytest.mark.parametrize("planted", [{}, FORGETTING_SHARDS], ids=["", "planted"])
def test_the_worst_case_is_one_of_each_shard(
    cluster: RedisCluster, planted: dict[str, Any]
) -> None:
    """As above, in three shards: one call of each a group."""
    check_admission(cluster.nodes, f"{cluster.url}?shards=3", STRINGS, planted)


def test_the_tightest_server_sets_the_limit_of_all_shards(cluster: RedisCluster) -> None:
    """A device may report to any of them; a server without a limit of its own sets none."""
    with closing(open_redis(f"{cluster.url}?shards=3", make=True)) as store:
        unlimited = store.counter_limit()
        sizes = [100 << 20, 50 << 20, 0]
        for node, size in zip(cluster.nodes, sizes, strict=False):
            node.ask("CONFIG", "SET", "maxmemory", str(size))
        owners = Counter(cluster.master_of(base).port for base in store.identity.bases)
        limits = [
            int(SHARE * size) // owners[node.port]
            for node, size in zip(cluster.nodes, sizes, strict=False)
            if size and owners[node.port]
        ]
        limited = store.counter_limit()
        set_maxmemory(cluster.nodes, 0)

    assert (unlimited, limited) == (None, 3 * min(limits))


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
    send(store, which, *(report(1000 + n, message=PAGE + n) for n in range(SPARSE)))
    assert kinds(server, store, which) == {1: "listpack"}

    send(store, which, many_reports[-1], report(5000, message=0))

    assert kinds(server, store, which) == {0: "listpack", 1: "raw"}
    counters = store.counters(which, [Cell(0, 0)])
    assert counters[PAGE : PAGE + SPARSE + 1].tolist() == [2] * SPARSE + [1]
    assert counters.sum() == 2 * SPARSE + 2


@pytest.mark.parametrize("many", [1, 300, 6_000])
def test_what_reports_touched_takes_what_is_reckoned(
    server: RedisServer, store: RedisStore, many: int
) -> None:
    """Never a tenth below it, however full the pages are; at most 0.8 above a few in each (Valkey
    packs them more tightly).
    """
    which = million(32)
    for first in range(0, many, 2_000):
        size = min(2_000, many - first)
        store.commit([random_reports(which, size, first, cells=3)], {})

    counts = store.report_counts(which).values()
    reckoned = sum(touched_bytes(which.counters, number) for number in counts)
    assert usage(server) / 1.1 < reckoned
    assert many > 300 or reckoned < 1.8 * usage(server)


@pytest.mark.parametrize("many", [1, 300, 6_000])
@pytest.mark.parametrize("permuted", [True, False], ids=["", "planted"])
def test_hashes_take_no_more_than_is_reckoned_for_a_report(
    server: RedisServer,
    store: RedisStore,
    monkeypatch: pytest.MonkeyPatch,
    *,
    many: int,
    permuted: bool,
) -> None:
    """Whatever a hostile client sends: a counter comes with a report, whose row is new. Hashes of
    its choice share no page; without the permutation (planted) one has them all."""
    if not permuted:
        monkeypatch.setattr(RowPermutation, "_factors", lambda _: (1, 1))
    which = series("hashes")
    for first in range(0, many, 2_000):
        numbers = range(first, min(first + 2_000, many))
        send(store, which, *(report(n, message=n) for n in numbers))
    encodings = kinds(server, store, which)

    assert store.counters(which, [Cell(0, 0)]).tolist() == [list(range(many)), [1] * many]
    assert usage(server) < touched_bytes(which.counters, many)
    assert touched_bytes(which.counters, many) <= (
        period_bytes(which.collection) + many * HASH_BYTES
    )
    if permuted:
        assert set(encodings.values()) == {"listpack"}
        assert len(encodings) > 0.4 * min(many, HASH_PAGES)
    else:
        assert list(encodings) == [0]
        assert usage(server) < 1_600 + many * HASH_BYTES


def test_small_tallies_take_what_is_reckoned(server: RedisServer, store: RedisStore) -> None:
    """Within a factor of two: the least of them is a key and little more."""
    kinds = (DAILY, ARMS, series("wide"), series("distribution"))
    for which in kinds:
        chance = random.Random(1)
        for period in range(40):
            some = [report(n, period, message=message(which, chance)) for n in range(3)]
            assert send(store, which, *some) == [Verdict.COUNTED] * 3

    reckoned = 40 * sum(tally_bytes(which.counters) for which in kinds)
    assert usage(server) / 1.1 < reckoned < 2 * usage(server)


def test_a_small_tally_is_made_at_its_full_length(server: RedisServer, store: RedisStore) -> None:
    """One that grew counter by counter would be given twice what it needs."""
    assert send(store, DAILY, report(1, message=0)) == [Verdict.COUNTED]

    with server.connection() as connection:
        (key,) = connection.scan_iter("*:tally:*")
        assert connection.strlen(key) == COUNTER_BYTES * DAILY.counters
    assert store.counters(DAILY, [Cell(0, 0)]).tolist() == [1, 0, 0]


def test_a_page_that_fills_while_it_is_read_is_read_whole(
    server: RedisServer, store: RedisStore
) -> None:
    """A reader meets packed pages and whole ones, and what was counted before it began."""
    which, stop, wrong = million(32), threading.Event(), []

    def count_on() -> None:
        for seed in range(15):
            store.commit([random_reports(which, 2_000, seed)], {})
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
