"""Dropping in two steps, on every engine: what is marked can be restored until it is deleted."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest

from veilcount_aggregator.errors import RetentionTooEarly, StoreUnavailable
from veilcount_aggregator.store import Store, open_store
from veilcount_aggregator.store.redis.lua_library import call
from veilcount_aggregator.store.redis.store import RedisStore, open_redis
from veilcount_aggregator.store.retention.clock_guard import TOLERANCE
from veilcount_shared.verdict import Verdict

from ...redis_cluster import RedisCluster
from ...redis_server import RedisServer
from .redis.simulated_rows import count, rows
from .series_fixtures import DAILY, LINKED, LONG_AGO, digest, drop, drop_and_delete, report, send

COUNTED, DUPLICATE, STALE = Verdict.COUNTED, Verdict.DUPLICATE, Verdict.STALE
FOUR = [report(1, period) for period in range(4)]


def test_what_was_deleted_is_never_restored(store: Store, target: Store) -> None:
    """Its slots would be free again. Later drops are still restored, but not in a copy."""
    send(store, DAILY, *FOUR)
    drop_and_delete(store, DAILY, 2)
    drop(store, DAILY, 3)
    target.import_pieces(list(store.export_pieces()))

    assert store.restore_dropped(DAILY) == 1
    assert store.restore_dropped(DAILY) == 0
    assert send(store, DAILY, *FOUR) == [STALE, STALE, DUPLICATE, DUPLICATE]
    assert target.restore_dropped(DAILY) == 0
    assert send(target, DAILY, *FOUR) == [STALE, STALE, STALE, DUPLICATE]


def test_a_caller_with_a_wrong_clock_drops_nothing(store: Store) -> None:
    """A store that has clocks shows them and goes by them; one that has none by its caller's."""
    send(store, DAILY, report(1, 0))
    now = datetime.now(UTC)
    times = store.server_times()
    assert all(abs(time - now) < TOLERANCE for time in times)

    due, ahead = now + timedelta(hours=1), now + timedelta(days=40)
    before = digest(store)
    with pytest.raises(RetentionTooEarly):
        store.mark_dropped(DAILY, 1, due, ahead if times else now)
    assert digest(store) == before
    assert store.mark_dropped(DAILY, 1, now - timedelta(hours=1), now) == 1


def test_a_drop_outlives_its_process_and_a_day(url: str, store: Store) -> None:
    """Another process restores it, unless it is older than what is to be kept."""
    send(store, LINKED, report(1))
    drop(store, LINKED, 1)
    store.finalize_dropped(LINKED, timedelta(days=1), LONG_AGO)
    assert not store.delete_rows(LINKED)
    store.close()
    again = open_store(url)

    assert send(again, LINKED, report(1)) == [STALE]
    assert again.restore_dropped(LINKED) == 1
    assert send(again, LINKED, report(1), report(2)) == [DUPLICATE, COUNTED]
    again.close()


# -- Redis: by the servers' own clocks -------------------------------------------------------------


HOUR = timedelta(hours=1)


def test_the_server_itself_refuses_an_early_drop(server: RedisServer) -> None:
    """Whoever asks, an older library too: its own time is compared, inside the function."""
    due = datetime.now(UTC) + HOUR
    with closing(open_redis(server.url, make=True)) as store:
        count(store, rows(100, 1))
        base, name = store.identity.bases[0], store.identity.store
        life = server.ask("HGET", base + b":height", "life")
        words = call("mark_dropped", base, name, life, LINKED.fingerprint, 1, int(due.timestamp()))
        with server.connection() as connection, pytest.raises(Exception, match="TOOEARLY"):
            connection.execute_command(*words)

        assert count(store, rows(1, 2)) == 1
        with pytest.raises(RetentionTooEarly, match="veilcount doctor"):
            store.mark_dropped(LINKED, 1, due, due + timedelta(days=40))


def test_a_master_that_is_away_keeps_no_other_from_dropping_and_sweeping(
    cluster: RedisCluster,
) -> None:
    """Whichever it is: the first shard is on the master that is killed."""
    store = open_redis(cluster.url, make=True)
    count(store, rows(300, 1))
    first = store._servers.owner(store.identity.bases[0]).host[1]
    (master,) = (node for node in cluster.nodes if node.port == first)
    bases = [base for base in store.identity.bases if store._servers.owner(base).host[1] != first]
    before, times = _rows_of(store, bases), [len(store.server_times())]
    master.kill()
    with pytest.raises(StoreUnavailable):
        store.mark_dropped(LINKED, 1, LONG_AGO, datetime.now(UTC))
    with pytest.raises(StoreUnavailable):
        store.finalize_dropped(LINKED, timedelta(0), LONG_AGO)
    with pytest.raises(StoreUnavailable):
        store.delete_rows(LINKED)
    after = _rows_of(store, bases)
    times.append(len(store.server_times()))
    master.start()
    cluster.wait()
    store.close()

    assert (before > 0, after, times) == (True, 0, [3, 2])


def _rows_of(store: RedisStore, bases: list[bytes]) -> int:
    keys = [store._servers.owner(base).ask("KEYS", f"{base.decode()}:[0-9]*") for base in bases]
    return sum(map(len, keys))
