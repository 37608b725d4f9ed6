"""Every acknowledged report is counted once, whatever breaks in between; and service comes back.

Honest devices live while faults strike in a random order, drawn by a seed that is the test's name.
After each fault every device must be answered again within a stated time; in the end the store's
books are held against what was acknowledged, bit by bit.
"""

from __future__ import annotations

import random
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.system.faults.campaign import Campaign
from tests.system.faults.deployments import DEPLOYMENTS, LASTS, Deployment, OnSqlite
from tests.system.faults.honest_devices import Population
from tests.system.faults.store_verification import assert_consistent
from tests.system.server import wait_until

COMES_BACK = 5.0  # seconds after a fault within which every device is answered; mostly 0.1
SETTLES = 20.0
DISK = 16 << 20

#: what a short walk does on each store: those that strike where this store keeps its promise
STRIKES = {
    "sqlite": {"worker killed", "worker stopped", "server killed", "disk full", "replies lost"},
    "redis": {
        *("Redis killed", "both killed", "Redis stopped", "Redis out of reach"),
        *("Redis out of memory", "answers of Redis lost", "worker killed"),
    },
    "redis-cluster": {"master killed", "both killed", "master stopped", "master out of memory"},
}
#: these leave devices waiting, who then go on: nothing need fail
GENTLE = {
    *("worker killed", "worker stopped", "Redis stopped", "master stopped"),
    *("network silent", "Redis out of reach"),
}
EASY = ("requests dropped", "requests cut", "replies lost", "network silent")


@contextmanager
def deployed(engine: str, folder: Path) -> Iterator[Deployment]:
    """Start a deployment, and end it."""
    deployment = DEPLOYMENTS[engine](Campaign.write(folder), folder)
    try:
        yield deployment
    finally:
        deployment.close()


def walk(
    deployment: Deployment, steps: list[str], seed: int, lasts: float = LASTS
) -> dict[str, float]:
    """Have faults strike one after the other; return how long the last device waited after each."""
    population = Population.create(deployment.campaign, deployment.way.port, seed)
    waited: dict[str, float] = {}
    with population.living():
        wait_until(lambda: population.answered_since(0))
        for step in steps:
            time.sleep(LASTS / 2)
            waited[step] = max(waited.get(step, 0), strike(deployment, step, population, lasts))
    population.settle(SETTLES)
    population.close()

    assert population.wrong == []
    assert population.acknowledged
    assert_consistent(deployment.store, deployment.campaign, population.acknowledged)
    return waited


def strike(deployment: Deployment, step: str, population: Population, lasts: float) -> float:
    """Have one fault strike; return how long afterwards the last device was answered again."""
    before = population.failed
    with deployment.faults[step]():
        time.sleep(lasts)
    assert step in GENTLE or population.failed > before, f"{step}: it struck nobody"
    over = time.monotonic()
    try:
        return wait_until(lambda: population.answered_since(over), COMES_BACK)
    except AssertionError:
        raise AssertionError(f"{step}: no answer: {deployment.server.log_text()}") from None


@pytest.mark.parametrize("engine", DEPLOYMENTS)
@pytest.mark.parametrize("seed", [1])
def test_a_walk_through_faults_loses_and_doubles_nothing(
    engine: str, seed: int, tmp_path: Path
) -> None:
    steps = sorted(STRIKES[engine])
    random.Random(seed).shuffle(steps)
    with deployed(engine, tmp_path) as deployment:
        print(walk(deployment, steps, seed))


def test_a_bad_network_loses_and_doubles_nothing(tmp_path: Path) -> None:
    with deployed("sqlite", tmp_path) as deployment:
        print(walk(deployment, [*EASY, "server stopped"], seed=7))


def test_a_full_disk_is_waited_for(small_disk: Path, tmp_path: Path) -> None:
    """A file system of its own, filled to the last byte; then there is room again."""
    campaign, ballast = Campaign.write(tmp_path), small_disk / "ballast"
    deployment = OnSqlite(campaign, small_disk)
    population = Population.create(campaign, deployment.way.port, seed=9)
    try:
        with population.living():
            wait_until(lambda: population.answered_since(0))
            fill(ballast)
            before = population.failed
            wait_until(lambda: population.failed > before + len(population.devices))
            ballast.unlink()
            over = time.monotonic()
            wait_until(lambda: population.answered_since(over), COMES_BACK)
        population.settle(SETTLES)

        assert population.wrong == []
        assert_consistent(deployment.store, campaign, population.acknowledged)
    finally:
        population.close()
        deployment.close()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of some megabytes in memory; where none may be mounted, files are limited
    instead, in the walk above.
    """
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", str(place)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("this user may mount nothing")
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


def fill(ballast: Path) -> None:
    """Take what is left of a disk."""
    with ballast.open("wb", buffering=0) as file:
        for block in (1 << 16, 1):
            with suppress(OSError):
                while True:
                    file.write(bytes(block))


@pytest.mark.full
@pytest.mark.timeout(900)
@pytest.mark.parametrize("engine", DEPLOYMENTS)
@pytest.mark.parametrize("seed", range(2, 7))
def test_a_long_walk_loses_and_doubles_nothing(engine: str, seed: int, tmp_path: Path) -> None:
    with deployed(engine, tmp_path) as deployment:
        steps = random.Random(seed).choices(sorted(deployment.faults), k=25)
        print(engine, seed, steps)
        print(walk(deployment, steps, seed))


@pytest.mark.full
@pytest.mark.parametrize(
    ("engine", "step", "lasts"),
    [
        ("redis", "Redis out of reach", 7.0),  # longer than an answer is waited for
        ("redis", "Redis stopped", 7.0),
        ("redis-cluster", "master stopped", 4.0),  # longer than the others believe in it
        ("redis-cluster", "master killed", 4.0),
        ("sqlite", "worker stopped", 12.0),  # longer than another worker waits for its lock
    ],
)
def test_a_long_silence_loses_and_doubles_nothing(
    engine: str, step: str, lasts: float, tmp_path: Path
) -> None:
    with deployed(engine, tmp_path) as deployment:
        print(walk(deployment, [step, step], 1, lasts))
