"""Checks of Redis servers, on real ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from veilcount_aggregator.operate.doctor import Finding, Severity, examine_store, worst
from veilcount_aggregator.settings import Settings
from veilcount_aggregator.store import open_store

from ....processes import HOST
from ....redis_cluster import RedisCluster
from ....redis_server import RedisServer
from ....system.server import free_port, wait_until
from ...web.api.deployment_fixtures import FILE, deployment
from .doctor_fixtures import by_check, wall_clock


@contextmanager
def redis(folder: Path, **settings: str) -> Iterator[RedisServer]:
    folder.mkdir(exist_ok=True)
    server = RedisServer(folder, port=free_port(), **settings)
    try:
        yield server
    finally:
        server.kill()


def findings(url: str, clock: Callable[[], datetime] = wall_clock) -> list[Finding]:
    return list(examine_store(Settings(url), clock, deep=True))


def examine(url: str, clock: Callable[[], datetime] = wall_clock) -> dict[str, Finding]:
    """Return the worst finding of each check."""
    return by_check(findings(url, clock))


def test_a_healthy_redis_passes(tmp_path: Path) -> None:
    with (
        redis(tmp_path, maxmemory="256mb") as server,
        deployment(tmp_path, FILE, url=server.url) as made,
    ):
        made.verdicts(made.report("theme"))
        found = examine(server.url)

    checks = ("version", "settings", "memory", "disk", "role", "clock", "opened", "consistency")
    assert {found[check].state for check in checks} == {Severity.OK}


def test_each_setting_that_a_store_refuses_is_wrong_and_its_fix_is_the_command(
    tmp_path: Path,
) -> None:
    weak = {
        "appendonly": "no",
        "appendfsync": "everysec",
        "no-appendfsync-on-rewrite": "yes",
        "maxmemory-policy": "volatile-lru",
        "hash-max-listpack-entries": "16",
        "hash-max-listpack-value": "16",
    }
    with redis(tmp_path, **weak) as server:
        found = [finding for finding in findings(server.url) if finding.check == "settings"]

    assert {each.state for each in found} == {Severity.WRONG}
    assert {each.what.partition(":")[0] for each in found} == {
        f"{name} {value}" for name, value in weak.items()
    }
    assert all(f"CONFIG SET {each.what.split()[0]} " in each.fix for each in found)


def test_a_full_redis_and_a_wrong_clock_are_wrong(tmp_path: Path) -> None:
    with redis(tmp_path) as server:
        open_store(server.url, make=True).close()
        used = int(dict(server.connection().info("memory"))["used_memory"])
        server.ask("CONFIG", "SET", "maxmemory", str(round(used * 1.05)))
        found = examine(server.url, lambda: wall_clock() + timedelta(hours=1))

    assert found["memory"].state is Severity.WRONG
    assert "of maxmemory is used" in found["memory"].what
    assert found["clock"].state is Severity.WRONG


def test_a_replica_as_store_is_wrong(tmp_path: Path) -> None:
    with (
        redis(tmp_path / "master") as master,
        redis(tmp_path / "replica", replicaof=f"{HOST} {master.port}") as replica,
    ):
        found = examine(replica.url)["role"]

    assert found.state is Severity.WRONG
    assert "master" in found.fix


def test_an_unavailable_redis_is_one_finding() -> None:
    (found,) = findings(f"redis://{HOST}:{free_port()}/0")

    assert found.state is Severity.WRONG
    assert "check that it runs" in found.fix


@pytest.mark.full
def test_a_cluster_without_one_master_is_wrong(tmp_path: Path) -> None:
    cluster = RedisCluster(tmp_path, cluster_require_full_coverage="yes")
    try:
        open_store(cluster.url, make=True).close()
        whole = examine(cluster.url)
        cluster.nodes[2].kill()
        wait_until(lambda: "cluster_state:fail" in str(cluster.nodes[0].ask("CLUSTER", "INFO")))
        found = findings(cluster.url)
    finally:
        for node in cluster.nodes:
            node.kill()

    assert whole["cluster"].state is Severity.OK
    assert whole["coverage"].state is Severity.WARN
    assert worst(found) is Severity.WRONG
