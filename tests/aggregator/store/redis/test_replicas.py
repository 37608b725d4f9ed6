"""With `replicas=1` an acknowledged report outlives its master; without, a promotion may lose it.

The replica is frozen while reports come, the master killed, and the replica promoted. What is on
its way to a frozen process waits in the kernel's buffers and is read once it runs again: so a value
that is larger than those goes first, and what comes behind it never leaves the master.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from veilcount_aggregator.errors import StoreError, StoreUnavailable, StoreUnfit
from veilcount_aggregator.store import COUNTED
from veilcount_aggregator.store.redis import durable_writes
from veilcount_aggregator.store.redis.lua_library import LIBRARY
from veilcount_aggregator.store.redis.store import RedisStore, open_redis
from veilcount_aggregator.store.series_reports import Bytes

from ....redis_server import RedisServer
from ....system.server import wait_until
from ..conftest import PROGRAMS
from ..series_fixtures import LINKED
from .conftest import two_servers
from .simulated_rows import count, is_taken, row_reports, rows

SENT = 30
FILLER = 24 << 20  # bytes: more than a connection of the loopback buffers


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A frozen replica never answers: it is waited for more briefly."""
    monkeypatch.setattr(durable_writes, "WAIT_MILLISECONDS", 600)


@pytest.fixture(params=PROGRAMS)
def pair(
    request: pytest.FixtureRequest, tmp_path: Path
) -> Iterator[tuple[RedisServer, RedisServer]]:
    with two_servers(tmp_path, request.param) as (master, replica):
        replica.follow(master)
        wait_until(lambda: not replica.rewriting)  # which a synchronization starts
        yield master, replica


def hold_back(master: RedisServer, replica: RedisServer, tag: str = "") -> None:
    """Freeze a replica so that what the master writes from now on does not reach it."""
    replica.freeze()
    with master.connection() as connection:
        connection.set(f"{tag}filler", b"x" * FILLER)


def acknowledged(store: RedisStore, who: Bytes) -> Bytes:
    """Send one report after the other; return the rows that were acknowledged."""
    heard = []
    for row in who:
        try:
            store.commit([row_reports(row[np.newaxis])], {})
        except StoreUnavailable:
            continue
        heard.append(row)
    return np.array(heard, np.uint8).reshape(-1, who.shape[1])


def lost(store: RedisStore, heard: Bytes) -> int:
    """Send what was acknowledged again; return how much of it is not known."""
    return int((store.commit([row_reports(heard)], {})[0] == COUNTED).sum()) if len(heard) else 0


@pytest.mark.parametrize("replicas", [0, 1])
def test_what_a_promotion_loses(pair: tuple[RedisServer, RedisServer], replicas: int) -> None:
    master, replica = pair
    mode = f"?replicas={replicas}" if replicas else ""
    with closing(open_redis(master.url + mode, make=True)) as store:
        heard = [acknowledged(store, rows(SENT, 1))]
        hold_back(master, replica)
        heard.append(acknowledged(store, rows(SENT if not replicas else 3, 2)))
        master.kill()
    replica.thaw()
    replica.promote()
    with closing(open_redis(replica.url, make=False)) as promoted:
        lost_of = [lost(promoted, each) for each in heard]

    assert len(heard[0]) == SENT
    assert lost_of == ([0, 0] if replicas else [0, SENT])
    assert len(heard[1]) == (0 if replicas else SENT)


def test_a_write_that_is_tried_again_is_waited_for_on_the_second_try(
    pair: tuple[RedisServer, RedisServer],
) -> None:
    """A server without its functions gets them, and the call again: WAIT must follow that one."""
    master, replica = pair
    with closing(open_redis(f"{master.url}?replicas=1", make=True)) as store:
        master.ask("FUNCTION", "DELETE", LIBRARY)
        master.ask("WAIT", "1", "5000")
        replica.freeze()

        with pytest.raises(StoreUnavailable, match="0 of 1 replicas"):
            count(store, rows(10, 1))


def test_a_master_without_its_replica_is_waited_for_once(
    pair: tuple[RedisServer, RedisServer],
) -> None:
    """One that was promoted: the shard has a new life there, so that it is sent again."""
    master, replica = pair
    with closing(open_redis(f"{master.url}?replicas=1", make=True)) as store:
        assert count(store, rows(40, 1)) == 40
        replica.kill()
        master.kill()
        master.start()
        wait_until(lambda: not master.rewriting)
        with pytest.raises(StoreError):
            count(store, rows(40, 2))

    assert [master.calls_of(name) <= 1 for name in ("wait", "waitaof")] == [True] * 2


def test_without_enough_replicas_nothing_is_written_until_there_are(
    pair: tuple[RedisServer, RedisServer],
) -> None:
    """The store opens; it is not ready, says why, and goes on by itself."""
    master, replica = pair
    replica.promote()
    wait_until(lambda: master.replicas() == 0)
    with closing(open_redis(f"{master.url}?replicas=1", make=True)) as store:
        with pytest.raises(StoreUnfit, match="0 of 1 replicas are connected"):
            count(store, rows(10, 1))

        assert store.health().blocked
        assert store.health().why == "0 of 1 replicas are connected to a master"
        assert store.report_counts(LINKED) == {}
        replica.follow(master)
        wait_until(lambda: is_taken(store))


def test_a_replica_with_weaker_settings_is_found(pair: tuple[RedisServer, RedisServer]) -> None:
    """It is reported; where its word is waited for, it is a reason to refuse the store."""
    master, replica = pair
    replica.ask("CONFIG", "SET", "appendfsync", "everysec")
    with closing(open_redis(master.url, make=True)) as store:
        (found,) = store.health().weaknesses

        assert not store.health().blocked
        assert found.what.startswith("a replica has appendfsync everysec")
        assert f"-p {replica.port} CONFIG SET appendfsync always" in found.fix
    with pytest.raises(StoreUnfit, match="a replica has appendfsync everysec"):
        open_redis(f"{master.url}?replicas=1", make=False)


def test_every_call_that_is_acknowledged_writes_something(server: RedisServer) -> None:
    """WAIT looks at the last write of a connection: without one it would answer at once."""
    store = open_redis(server.url, make=True)
    offsets = []
    for period in (0, 0, 9):  # counted, duplicate, and again: of a row that has spent something
        count(store, rows(5, 1), period % 5)
        with server.connection() as connection:
            offsets.append(connection.info("persistence")["aof_current_size"])
    store.close()

    assert offsets == sorted(set(offsets))
