"""A store is copied while devices send, and the copy taken over: they try again, and lose nothing.

While it is copied, and after, the old store takes nothing, and devices keep what they have.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from ...redis_server import RedisServer
from ..server import wait_until
from .campaign import Campaign
from .deployments import OnSqlite
from .honest_devices import Population
from .store_verification import assert_consistent


def test_devices_that_try_again_lose_nothing_when_their_store_moves(tmp_path: Path) -> None:
    campaign = Campaign.write(tmp_path)
    (tmp_path / "redis").mkdir()
    redis = RedisServer(tmp_path / "redis")
    deployment = OnSqlite(campaign, tmp_path)
    population = Population.create(campaign, deployment.way.port, seed=11)
    command = [sys.executable, "-m", "veilcount_aggregator", "store", "copy"]
    environ = {"PYTHONPATH": os.pathsep.join(sys.path)}
    try:
        with population.living():
            wait_until(lambda: len(population.acknowledged) > 200)
            subprocess.run([*command, deployment.store, redis.url], env=environ, check=True)
            ready, before = deployment.server.ask("GET", "/readyz"), population.failed
            wait_until(lambda: population.failed > before)
            deployment.move(redis.url)
            population.await_answers()
        population.settle(60)

        assert ready.status_code == 503
        assert "read-only" in ready.text
        assert population.wrong == []
        assert_consistent(redis.url, campaign, population.acknowledged)
    finally:
        population.close()
        deployment.close()
        redis.kill()
