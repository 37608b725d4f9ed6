"""What goes wrong between a server and its Redis: nothing is lost, doubled or half written."""

from __future__ import annotations

import threading
import time
from contextlib import ExitStack, closing
from queue import SimpleQueue

import pytest

from veilcount_aggregator.errors import StoreFull, StoreUnavailable, StoreUnfit
from veilcount_aggregator.store import Cell, ServiceCounter
from veilcount_aggregator.store.redis import circuit_breaker, connections
from veilcount_aggregator.store.redis.circuit_breaker import (
    LONGEST_PAUSE,
    MOST_STALLED,
    PAUSE_SECONDS,
    STALL_SECONDS,
    BreakerState,
    CircuitBreaker,
)
from veilcount_aggregator.store.redis.connections import Timeout, Wait
from veilcount_aggregator.store.redis.store import RedisStore, open_redis
from veilcount_aggregator.store.transfer_format import content_digest

from ....redis_server import RedisServer
from ....system.server import wait_until
from ...aggregator_fixtures import SteppedClock
from ..series_fixtures import LINKED, drop_and_delete, drop_finally
from .simulated_rows import count, is_taken, row_reports, rows

SLOT = Cell(0, 0)


def consistent(store: RedisStore) -> int:
    """Return how many reports there are, the same by every figure."""
    (reports,) = store.report_counts(LINKED).values()

    assert store.counters(LINKED, [SLOT]).sum() == reports
    assert store.spend_histograms(LINKED)[0].tolist()[0] == reports
    assert sum(store.new_pseudonyms(LINKED).values()) == reports
    ledger = sum(
        len(export_piece.body) // 20
        for export_piece in store.export_pieces()
        if export_piece.kind == "rows"
    )
    assert ledger == reports
    return reports


def test_a_redis_that_stands_still_for_a_moment_is_slow_and_not_away(own: RedisServer) -> None:
    """As one does whose disk takes most of a second for an fsync: its reports are counted."""
    store = open_redis(own.url, make=True)
    count(store, rows(10, 1))
    breaker = store._servers.owner(store.identity.bases[0]).breaker
    own.freeze()
    thawing = threading.Timer(0.7, own.thaw)
    thawing.start()

    assert count(store, rows(10, 2)) == 10
    assert breaker.state is BreakerState.CLOSED
    thawing.join()
    store.close()


def test_a_redis_that_hangs_times_out_is_sent_no_more_calls_and_comes_back(
    own: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once it is known to be away, a call fails without needing any time."""
    monkeypatch.setitem(connections.TIMEOUTS, Wait.COMMIT, Timeout(2.0, 2.0))
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
    own.thaw()
    wait_until(lambda: is_taken(store), 60)
    count(store, rows(10, 2))

    assert consistent(store) == 20
    store.close()


def test_a_connection_that_is_closed_while_it_is_read_is_unavailable(own: RedisServer) -> None:
    """As by the end of a store: redis-py raises what it happens on, a closed buffer or file."""
    store = open_redis(own.url, make=True)
    node, heard = store._servers.owner(store.identity.bases[0]), SimpleQueue[object]()

    def ask() -> None:
        try:
            heard.put(node.ask("PING", wait=Wait.PROBE))
        except StoreUnavailable as error:
            heard.put(error)

    with own.frozen():
        for _ in range(20):
            reader = threading.Thread(target=ask)
            reader.start()
            time.sleep(0.01)
            node.disconnect(idle=False)
            reader.join()
    store.close()

    outcomes = [heard.get_nowait() for _ in range(20)]
    assert all(isinstance(outcome, StoreUnavailable) for outcome in outcomes)


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
    drop_finally(store, LINKED, 1)

    assert set(store.commit([row_reports(rows(5, 1))], {})[0].tolist()) == {3}
    whole = server.ask("DBSIZE")
    assert store.delete_rows(LINKED)
    kept = server.ask("DBSIZE")
    drop_and_delete(store, LINKED, 1)
    assert isinstance(whole, int)
    assert (kept, server.ask("DBSIZE")) == (whole - 10, whole - 50)
    assert store.spend_histograms(LINKED)[0].tolist()[0] == 2_000


def _stopped(*_: object) -> None:
    raise StoreUnavailable("killed here")


# -- the circuit breaker by itself: when it opens, who may probe, how many may wait ----------------


@pytest.fixture
def breaker(clock: SteppedClock) -> CircuitBreaker:
    return CircuitBreaker("server:1", clock)


def test_after_a_time_out_calls_fail_at_once(breaker: CircuitBreaker) -> None:
    breaker.failed("no answer within 2 s")

    with pytest.raises(StoreUnavailable, match="server:1 does not answer: no answer within 2 s"):
        breaker.call().__enter__()
    assert breaker.state is BreakerState.OPEN


def test_one_caller_at_a_time_probes_after_a_pause(
    breaker: CircuitBreaker, clock: SteppedClock
) -> None:
    for _ in range(10):  # calls that were under way together do not make the pause longer
        breaker.failed("")
    too_early = breaker.begin_probe()
    is_due = breaker.probe_is_due()
    clock.now += PAUSE_SECONDS
    assert (is_due, breaker.probe_is_due()) == (False, True)
    first, second = breaker.begin_probe(), breaker.begin_probe()

    assert (too_early, first, second) == (False, True, False)
    with pytest.raises(StoreUnavailable):
        breaker.call().__enter__()
    breaker.succeeded()
    with breaker.call():
        assert breaker.state is BreakerState.CLOSED


def test_the_pause_doubles_with_each_failed_probe_up_to_a_limit(
    breaker: CircuitBreaker, clock: SteppedClock
) -> None:
    breaker.failed("")
    pauses = []
    for _ in range(6):
        pause = 0.0
        while not breaker.begin_probe():
            clock.now += 0.25
            pause += 0.25
        pauses.append(pause)
        breaker.failed("")

    assert pauses == [0.5, 1.0, 2.0, 4.0, LONGEST_PAUSE, LONGEST_PAUSE]


def test_few_calls_wait_for_a_server_that_stands_still(
    breaker: CircuitBreaker, clock: SteppedClock
) -> None:
    """Any number while it answers soon, as a slow disk does; a few once one has waited long."""
    with ExitStack() as waiting:
        for _ in range(3 * MOST_STALLED):
            waiting.enter_context(breaker.call())
        clock.now += STALL_SECONDS + 0.1

        with pytest.raises(StoreUnavailable, match="24 calls wait"):
            breaker.call().__enter__()
    with breaker.call():
        assert breaker.state is BreakerState.CLOSED
