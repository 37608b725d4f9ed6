"""Keys that cannot be read again may be revoked by now: they open nothing for long."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.aggregator.api.deployment_fixtures import FILE, Deployment, deployment
from tests.aggregator.dashboard.page_fixtures import Visitor
from tests.redis_server import RedisServer
from tests.system.server import wait_until
from veilcount_aggregator.auth.api_keys import Role
from veilcount_aggregator.catalog.cache import DEVICE_KEYS_SECONDS, KEYS_SECONDS


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[RedisServer]:
    """The server of the records."""
    started = RedisServer(tmp_path)
    yield started
    started.kill()


@pytest.fixture
def deployed(tmp_path: Path, redis: RedisServer) -> Iterator[Deployment]:
    """A worker on it."""
    with deployment(tmp_path, FILE, url=redis.url) as made:
        yield made


def test_an_analysts_key_opens_nothing_once_it_is_old(
    deployed: Deployment, redis: RedisServer
) -> None:
    """503, which says nothing of the key, and not 401: the key may be as good as ever."""
    key = deployed.key(Role.ANALYST)
    redis.kill()
    deployed.clocks.passed += KEYS_SECONDS - 1
    young = deployed.ask("GET", "/v1/plan", key=key)
    deployed.clocks.passed += 2
    old = deployed.ask("GET", "/v1/plan", key=key)
    wrong = deployed.ask("GET", "/v1/plan", key="veilcount_analyst_none")
    redis.start()
    wait_until(lambda: _is_taken_again(deployed, key))

    assert young.status == 400  # a question is missing, and the key was taken
    assert (old.status, old.problem) == (wrong.status, wrong.problem) == (503, "unavailable")


def test_a_devices_key_goes_on_for_some_minutes(deployed: Deployment, redis: RedisServer) -> None:
    """It is no secret, and devices of shards that answer have to be served."""
    key = deployed.key(Role.DEVICE)
    redis.kill()
    seen = []
    for seconds in (DEVICE_KEYS_SECONDS - 1, 2):
        deployed.clocks.passed += seconds
        seen.append(deployed.ask("POST", "/v1/reports", b"{}", key=key).problem)

    assert seen == ["unknown-version", "unavailable"]


def test_a_session_opens_no_page_once_its_key_is_old(
    deployed: Deployment, redis: RedisServer
) -> None:
    visitor = Visitor(deployed)
    visitor.enter(Role.ANALYST)
    before = visitor.get("/plan").status
    redis.kill()
    deployed.clocks.passed += KEYS_SECONDS + 1

    assert (before, visitor.get("/plan").status) == (200, 503)


def test_metrics_show_the_shards_alone_while_keys_are_old(
    deployed: Deployment, redis: RedisServer
) -> None:
    """Whether a shard answers is no secret of anybody's; how many reports there are may be."""
    key = deployed.key(Role.ANALYST)
    whole = deployed.ask("GET", "/metrics", key=key).body.decode()
    redis.kill()
    deployed.clocks.passed += KEYS_SECONDS + 1
    some = deployed.ask("GET", "/metrics", key=key)
    deployed.clocks.passed += DEVICE_KEYS_SECONDS
    none = deployed.ask("GET", "/metrics", key=key)

    assert "veilcount_verdicts_total{" in whole
    assert some.status == 200
    assert 'veilcount_shard_up{shard="0"} 0' in some.body.decode()
    lines = [line for line in some.body.decode().splitlines() if not line.startswith("#")]
    shown = ("veilcount_shard_", "veilcount_analysis_up")
    assert all(line.startswith(shown) for line in lines)
    assert none.status == 503


def _is_taken_again(deployed: Deployment, key: str) -> bool:
    """Whether a key is looked at, a while later."""
    deployed.clocks.passed += 1
    return deployed.ask("GET", "/v1/plan", key=key).status == 400
