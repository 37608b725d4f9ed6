"""Keys that cannot be read again may be revoked by now: they open nothing for long."""

from __future__ import annotations

from pathlib import Path

from veilcount_aggregator.records.api_keys import Role
from veilcount_aggregator.records.cache import DEVICE_KEYS_SECONDS, KEYS_SECONDS

from ..aggregator.web.api.deployment_fixtures import FILE, Deployment, deployment
from ..aggregator.web.dashboard.page_fixtures import logged_in
from ..redis_server import RedisServer
from ..system.server import wait_until


def test_keys_and_sessions_open_nothing_once_they_are_old(tmp_path: Path) -> None:
    """503, which says nothing of a key, and not 401: the key may be as good as ever.

    A device's key goes on for some minutes: it is no secret, and devices of shards that answer
    have to be served. Metrics go on as long, but show the shards alone: whether a shard answers is
    no secret of anybody's; how many reports there are may be.
    """
    redis = RedisServer(tmp_path)
    try:
        with deployment(tmp_path, FILE, url=redis.url) as made:
            _check(made, redis)
    finally:
        redis.kill()


def _check(made: Deployment, redis: RedisServer) -> None:
    device, analyst = made.key(Role.DEVICE), made.key(Role.ANALYST)
    visitor = logged_in(made)
    page = visitor.get("/plan").status
    whole = made.ask("GET", "/metrics", key=analyst).body.decode()
    redis.kill()
    made.clocks.passed += KEYS_SECONDS - 1
    young = made.ask("GET", "/v1/plan", key=analyst)
    made.clocks.passed += 2
    old, wrong = (made.ask("GET", "/v1/plan", key=key) for key in (analyst, "veilcount_none"))
    old_page = visitor.get("/plan").status
    some = made.ask("GET", "/metrics", key=analyst)
    made.clocks.passed += DEVICE_KEYS_SECONDS - KEYS_SECONDS - 2
    sending = made.ask("POST", "/v1/reports", b"{}", key=device).problem
    made.clocks.passed += 2
    no_longer = made.ask("POST", "/v1/reports", b"{}", key=device).problem
    none = made.ask("GET", "/metrics", key=analyst)
    redis.start()
    wait_until(lambda: _is_taken_again(made, analyst))
    lines = [line for line in some.body.decode().splitlines() if not line.startswith("#")]

    assert young.status == 400  # a question is missing, and the key was taken
    assert (old.status, old.problem) == (wrong.status, wrong.problem) == (503, "unavailable")
    assert (page, old_page) == (200, 503)
    assert (sending, no_longer) == ("unsupported", "unavailable")
    assert "veilcount_verdicts_total{" in whole
    assert (some.status, none.status) == (200, 503)
    assert 'veilcount_shard_up{shard="0"} 0' in lines
    assert all(line.startswith(("veilcount_shard_", "veilcount_analysis_up")) for line in lines)


def _is_taken_again(made: Deployment, key: str) -> bool:
    made.clocks.passed += 1
    return made.ask("GET", "/v1/plan", key=key).status == 400
