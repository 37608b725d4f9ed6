"""What goes wrong between a server and its Redis: nothing is lost, doubled or half written."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from tests.aggregator.store.redis.simulated_rows import count, recounted, row_reports, rows
from tests.aggregator.store.series_fixtures import LINKED, drop_and_delete
from tests.redis_server import RedisServer
from veilcount_aggregator.errors import StoreError, StoreFull, StoreUnavailable, StoreUnfit
from veilcount_aggregator.store import Cell, ServiceCounter
from veilcount_aggregator.store.redis import circuit_breaker, connections
from veilcount_aggregator.store.redis.connections import Timeout, Wait
from veilcount_aggregator.store.redis.store import RedisStore, open_redis
from veilcount_aggregator.store.transfer_format import content_digest

SLOT = Cell(0, 0)


@pytest.fixture
def own(tmp_path: Path) -> Iterator[RedisServer]:
    server = RedisServer(tmp_path)
    yield server
    server.kill()


def until_it_works(act: Callable[[], object], seconds: float = 20) -> None:
    ends = time.monotonic() + seconds
    while True:
        try:
            act()
        except StoreUnavailable:
            if time.monotonic() > ends:
                raise
            time.sleep(0.02)
        else:
            return


def consistent(store: RedisStore) -> int:
    """Return how many reports there are, the same by every figure."""
    (reports,) = store.report_counts(LINKED).values()

    assert store.counters(LINKED, [SLOT]).sum() == reports
    assert store.spend_histograms(LINKED)[0].tolist()[0] == reports
    assert sum(store.new_pseudonyms(LINKED).values()) == reports
    ledger = sum(len(each.body) // 20 for each in store.export_pieces() if each.kind == "rows")
    assert ledger == reports
    assert store.memory_use().total == recounted(store, LINKED.fingerprint)
    return reports


def test_a_redis_that_hangs_times_out_is_sent_no_more_calls_and_comes_back(
    own: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once it is known to be away, a call fails without needing any time."""
    monkeypatch.setitem(connections.TIMEOUTS, Wait.COMMIT, Timeout(1.0, 0.3))
    store = open_redis(own.url, make=True)
    count(store, rows(10, 1))
    own.freeze()
    with pytest.raises(StoreUnavailable, match="does not answer"):
        count(store, rows(10, 2))

    with monkeypatch.context() as away:
        away.setattr(connections.RedisNode, "pool", _stopped)
        away.setattr(circuit_breaker.CircuitBreaker, "begin_probe", lambda _: False)
        for _ in range(3):
            with pytest.raises(StoreUnavailable, match="does not answer: no answer within"):
                count(store, rows(10, 2))
            with pytest.raises(StoreUnavailable, match="does not answer: no answer within"):
                store.lane([row_reports(rows(10, 2))])
    own.thaw()
    until_it_works(lambda: store.commit([row_reports(rows(10, 2))], {}))

    assert consistent(store) == 20
    store.close()


def test_a_full_redis_takes_all_of_a_group_or_nothing(server: RedisServer) -> None:
    """It refuses, keeps what it has, lets go of what is dropped, and takes reports again."""
    store = open_redis(server.url, make=True)
    count(store, rows(2_000, 1))
    with server.connection() as connection:
        used = int(connection.info("memory")["used_memory"])
    server.ask("CONFIG", "SET", "maxmemory", str(used + (1 << 20)))
    groups = (count(store, rows(2_000, seed)) for seed in range(2, 1_000))
    counted: list[int] = []
    with pytest.raises(StoreFull, match="maxmemory"):
        counted.extend(groups)  # keeps those before the error

    assert consistent(store) == 2_000 + sum(counted)
    store.close_row(LINKED, [0], rows(1, 1).tobytes())
    store.set_read_only(on=True)
    store.set_read_only(on=False)
    drop_and_delete(store, LINKED, 1)
    server.ask("CONFIG", "SET", "maxmemory", "0")

    assert set(store.commit([row_reports(rows(5, 1))], {})[0].tolist()) == {3}
    store.close()


def test_an_emptied_redis_and_another_store_in_it_take_nothing_for_a_store_it_has_not(
    server: RedisServer, store: RedisStore
) -> None:
    count(store, rows(10, 1))
    server.ask("FLUSHALL")
    server.ask("FUNCTION", "FLUSH")

    with pytest.raises(StoreUnfit, match="emptied or replaced"):
        count(store, rows(10, 1))
    with pytest.raises(StoreUnfit, match="emptied or replaced"):
        store.change_records(0, [])
    with pytest.raises(StoreUnfit, match="gone"):
        store.health()
    assert server.ask("KEYS", "*") == []

    with closing(open_redis(server.url, make=True)) as other:
        with pytest.raises(StoreUnfit, match="emptied or replaced"):
            count(store, rows(10, 1))
        assert other.report_counts(LINKED) == {}


def test_a_group_that_is_contested_at_every_try_fails_whole(
    store: RedisStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    from veilcount_aggregator.store.redis import intake  # noqa: PLC0415

    count(store, rows(10, 1))
    monkeypatch.setattr(intake, "TRIES", 1)
    before = content_digest(store.export_pieces())
    with pytest.raises(StoreUnavailable, match="too many writers"):
        store.commit([row_reports(rows(10, 1))], {ServiceCounter("request", "", -1, "200"): 1})

    assert content_digest(store.export_pieces()) == before


def test_a_sweep_that_was_stopped_is_finished_by_the_next(
    server: RedisServer, store: RedisStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From its first step on, what comes is stale; the memory is freed later."""
    count(store, rows(2_000, 1))
    monkeypatch.setattr("veilcount_aggregator.store.redis.store.BUCKETS_AT_ONCE", 10)
    with monkeypatch.context() as broken, suppress(StoreError):
        broken.setattr(RedisStore, "_delete_rows", _stopped)
        drop_and_delete(store, LINKED, 1)

    assert set(store.commit([row_reports(rows(5, 1))], {})[0].tolist()) == {3}
    kept = server.ask("DBSIZE")
    drop_and_delete(store, LINKED, 1)
    assert isinstance(kept, int)
    assert server.ask("DBSIZE") == kept - 50
    assert store.spend_histograms(LINKED)[0].tolist()[0] == 2_000


def _stopped(*_: object) -> None:
    raise StoreUnavailable("killed here")
