"""A store is copied to another while devices send: killed in the middle, gone on with, taken over.

While it is copied the old store takes nothing, and devices keep what they have.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import requests

from tests.redis_server import RedisServer
from tests.system.faults.campaign import Campaign
from tests.system.faults.deployments import Deployment, OnSqlite
from tests.system.faults.honest_devices import Population
from tests.system.faults.store_verification import assert_consistent
from tests.system.server import wait_until

#: what `veilcount store copy` does, but a step at a time: it goes on when it is told to
COPY = """
import sys
from veilcount_aggregator.store.factory import redact_url
from veilcount_aggregator.store import open_store
from veilcount_aggregator.store.migrate import copy_store

def step(progress):
    print(progress.pieces, flush=True)
    sys.stdin.readline()

source, target = open_store(sys.argv[1]), open_store(sys.argv[2], make=True)
copy_store(source, target, where=redact_url(sys.argv[2]), progress=step)
"""


ENVIRON = {"PYTHONPATH": os.pathsep.join(sys.path)}


def kill_in_the_middle(source: str, target: str) -> None:
    """Begin a copy; have one step carried and the next begun, and not the rest."""
    command = [sys.executable, "-c", COPY, source, target]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, env=ENVIRON) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline()
        process.stdin.write(b"\n")
        process.stdin.flush()
        assert process.stdout.readline()
        process.send_signal(signal.SIGKILL)


def go_on(source: str, target: str) -> None:
    """Type the command: all the rest is carried."""
    command = [sys.executable, "-m", "veilcount_aggregator", "store", "copy", source, target]
    done = subprocess.run(command, env=ENVIRON, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr


def ready(deployment: Deployment) -> requests.Response:
    """Ask whether it takes reports."""
    return deployment.server.ask("GET", "/readyz")


def test_devices_that_try_again_lose_nothing_when_their_store_moves(tmp_path: Path) -> None:
    campaign = Campaign.write(tmp_path)
    (tmp_path / "redis").mkdir()
    redis = RedisServer(tmp_path / "redis")
    deployment = OnSqlite(campaign, tmp_path)
    population = Population.create(campaign, deployment.way.port, seed=11)
    try:
        with population.living():
            wait_until(lambda: len(population.acknowledged) > 500)
            kill_in_the_middle(deployment.store, redis.url)
            ready_answer, before = ready(deployment), population.failed
            wait_until(lambda: population.failed > before)
            go_on(deployment.store, redis.url)
            deployment.move(redis.url)
            over = time.monotonic()
            wait_until(lambda: population.answered_since(over))
        population.settle(20)

        assert ready_answer.status_code == 503
        assert "read-only" in ready_answer.text
        assert population.wrong == []
        assert_consistent(redis.url, campaign, population.acknowledged)
    finally:
        population.close()
        deployment.close()
        redis.kill()
