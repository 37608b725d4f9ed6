"""One dead or hung master of a cluster stops its own shards and nothing else, on real processes."""

from __future__ import annotations

import json
import os
import signal
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from veilcount_aggregator.records.api_keys import Role, create_key
from veilcount_aggregator.store.redis.records import copy_bases
from veilcount_aggregator.store.redis.store import RedisStore, open_redis
from veilcount_analysis.series.series import Series

from ...redis_cluster import RedisCluster
from ..server import Server, wait_until
from .load import load, post, pseudonyms, push_definition, report

SENDERS = 48  # more than a worker has threads
PATIENCE = 40.0
NOTICED = 4  # seconds after which a group has waited for a hung master, for two


def shard_at(store: RedisStore, masters: RedisCluster, master: int) -> int:
    """Return the shard that a master has."""
    ports = [store._servers.owner(base).host[1] for base in store.identity.bases]
    return ports.index(masters.nodes[master].port)


def statuses(server: Server, series: Series, rows: list[list[bytes]], at: int) -> list[int]:
    """Return what each shard's report is answered with."""
    return [post(server.port, report(series, shard[at]))[0] for shard in rows]


def copied(store: RedisStore) -> bool:
    """Whether each master has the records of now."""
    now, owner = b"%d" % store.generation(), store._servers.owner
    found = [owner(base).ask("HGET", base, "generation") for base in copy_bases()]
    return found.count(now) >= 3


def test_a_dead_master_stops_its_own_shard_alone(
    masters: RedisCluster, store: RedisStore, records: int, tmp_path: Path
) -> None:
    """The worst of them, which has definitions and keys: also a worker and a server that start
    while it is away serve the other shards. A body of several shards is counted where it can be.
    """
    series = push_definition(store)
    _, key = create_key(store, Role.ANALYST, "", datetime.now(UTC))
    rows = pseudonyms(store, 20)
    dead = shard_at(store, masters, records)
    expected = [503 if shard == dead else 200 for shard in range(3)]
    with Server(masters.url, tmp_path) as server:
        assert statuses(server, series, rows, 0) == [200] * 3
        wait_until(lambda: copied(store), PATIENCE)
        masters.nodes[records].kill()
        try:
            wait_until(lambda: statuses(server, series, rows, 1) == expected, PATIENCE)
            ready = server.ask("GET", "/readyz")
            mixed, verdicts = post(server.port, *(report(series, shard[2]) for shard in rows))
            metrics = server.ask("GET", "/metrics", headers={"Authorization": f"Bearer {key}"})
            for pid in server.workers():
                os.kill(pid, signal.SIGKILL)
            wait_until(lambda: _alive(server), PATIENCE)
            wait_until(lambda: statuses(server, series, rows, 3) == expected, PATIENCE)
            with Server(masters.url, tmp_path) as late:
                wait_until(lambda: statuses(late, series, rows, 4) == expected, PATIENCE)
        finally:
            masters.nodes[records].start()
            masters.wait()
        wait_until(lambda: statuses(server, series, rows, 5) == [200] * 3, PATIENCE)
        again = post(server.port, *(report(series, shard[2]) for shard in rows))[1]

    assert (ready.status_code, ready.json()["serving"], ready.json()["shards"]) == (200, 2, 3)
    assert (mixed, sorted(_words(verdicts))) == (200, ["counted", "counted", "early"])
    assert sorted(_words(again)) == ["counted", "duplicate", "duplicate"]
    assert metrics.status_code == 200
    assert "veilcount_figures_complete{} 0" in metrics.text.splitlines()
    assert "\nveilcount_verdicts_total{" not in metrics.text  # of some: a counter that falls
    for shard in range(3):
        line = f'veilcount_shard_up{{shard="{shard}"}} {int(shard != dead)}'
        assert line in metrics.text.splitlines()


@pytest.mark.parametrize("seconds", [9, pytest.param(15, marks=pytest.mark.full)])
def test_a_hung_master_does_not_stop_the_other_shards(
    masters: RedisCluster, store: RedisStore, tmp_path: Path, seconds: int
) -> None:
    """The first of the URL stands still for some seconds, with more senders than a worker has
    threads. Once a group has waited for it, the others are counted each second, but for one on a
    busy machine; and it comes back by itself.
    """
    series = push_definition(store)
    rows = pseudonyms(store, 300)
    hung = shard_at(store, masters, 0)
    others = [shard for shard in range(3) if shard != hung]
    with Server(masters.url, tmp_path) as server, load(server.port, series, rows, SENDERS) as sent:
        wait_until(lambda: sent.shards() == {0, 1, 2}, PATIENCE)
        time.sleep(2)
        froze = sent.now()
        masters.nodes[0].freeze()
        time.sleep(seconds)
        status, _ = post(server.port, report(series, rows[hung][0]))
        alive = server.ask("GET", "/healthz").status_code
        thawed = sent.now()
        masters.nodes[0].thaw()
        wait_until(lambda: sent.ok[hung, int(sent.now())] > 0, PATIENCE)

    during = range(int(froze) + NOTICED, int(thawed))
    quiet = [second for second in during for shard in others if not sent.ok[shard, second]]
    assert (status, alive) == (503, 200)
    assert len(quiet) <= 1, quiet
    assert sent.rate(hung, froze + 1, thawed) == 0


def test_a_store_opens_while_the_first_seed_hangs(masters: RedisCluster, store: RedisStore) -> None:
    """Nodes are asked side by side: one that hangs costs a moment."""
    push_definition(store)
    store.replicate(("source",))
    masters.nodes[0].freeze()
    try:
        other = open_redis(masters.url, make=False)
        health = other.health()
    finally:
        masters.nodes[0].thaw()

    assert other.identity == store.identity
    assert (health.serving, health.shards) == (2, 3)
    other.close()


def _alive(server: Server) -> bool:
    try:
        return server.ask("GET", "/healthz").status_code == 200
    except OSError:
        return False


def _words(body: bytes) -> list[str]:
    words: list[str] = json.loads(body)["verdicts"]
    return words


pytestmark = pytest.mark.timeout(200)
