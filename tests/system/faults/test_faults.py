"""Every acknowledged report is counted once, whatever breaks in between; and service comes back.

Honest devices live while faults strike in a random order, drawn by a seed that is the test's name.
After each fault every device must be answered again; in the end the store's books are held against
what was acknowledged, bit by bit.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ..server import wait_until
from .campaign import Campaign
from .deployments import DEPLOYMENTS, LASTS, Deployment, filled, small_file_system
from .honest_devices import Population
from .store_verification import assert_consistent, groups_of_several

DISK = 16 << 20
DEVICES = 12
MANY_GROUPS = 2

#: what a short walk does on each store: those that strike where this store keeps its promise
STRIKES = {
    "sqlite": {
        *("worker killed", "worker stopped", "server killed", "server stopped", "disk full"),
        *("requests dropped", "requests cut", "replies lost", "network silent", "lock held"),
    },
    "redis": {
        *("Redis killed", "both killed", "Redis stopped", "Redis out of reach"),
        *("Redis out of memory", "answers of Redis lost", "worker killed"),
    },
    "redis-cluster": {"master killed", "both killed", "master stopped", "master out of memory"},
}
#: these leave devices waiting, who then go on: nothing need fail
GENTLE = {
    *("worker killed", "worker stopped", "Redis stopped", "master stopped"),
    *("network silent", "Redis out of reach", "lock held"),
}


#: all others leave whoever asks for a worker's health with an answer, while they last
ENDS_A_SERVER = {"worker killed", "worker stopped", "server killed", "server stopped"}
ENDS_A_SERVER |= {"both killed"}


@contextmanager
def deployed(
    engine: str, folder: Path, seed: int, disk: Path | None = None
) -> Iterator[tuple[Deployment, Population]]:
    """Start a deployment with devices, and end both: nothing was lost or counted twice.

    Faults meet groups of several requests: else they would prove nothing of these.
    """
    deployment = DEPLOYMENTS[engine](Campaign.write(folder), disk or folder)
    population = Population.create(deployment.campaign, deployment.way.port, seed, DEVICES)
    try:
        with population.living():
            population.await_answers()
            wait_until(lambda: in_groups(deployment), 60)
            yield deployment, population
        population.settle(60)

        assert population.wrong == []
        assert population.acknowledged
        assert_consistent(deployment.store, deployment.campaign, population.acknowledged)
    finally:
        population.close()
        deployment.close()


def in_groups(deployment: Deployment) -> bool:
    """Hold up the store for a moment; whether it has counted some groups of several requests."""
    with deployment.slow_store():
        time.sleep(LASTS)
    return groups_of_several(deployment.store) > MANY_GROUPS


def walk(
    engine: str, folder: Path, steps: list[str] | None, seed: int, lasts: float = LASTS
) -> None:
    """Have faults strike one after the other, by default 25 of all that there are.

    Print how long the last device waited after each.
    """
    with deployed(engine, folder, seed) as (deployment, population):
        for step in steps or random.Random(seed).choices(sorted(deployment.faults), k=25):
            with deployment.slow_store():  # the fault meets a group, whatever the machine's speed
                time.sleep(LASTS / 2)
            print(f"{step}: {strike(deployment, step, population, lasts):.2f} s")


def strike(deployment: Deployment, step: str, population: Population, lasts: float) -> float:
    """Have one fault strike; return how long afterwards the last device was answered again."""
    before = population.failed
    with deployment.faults[step]():
        time.sleep(lasts)
        if step not in GENTLE:  # on a busy machine it takes longer until it strikes somebody
            wait_until(lambda: population.failed > before)
        assert step in ENDS_A_SERVER or deployment.alive(), f"{step}: it is not alive"
    try:
        return population.await_answers()
    except AssertionError:
        raise AssertionError(f"{step}: no answer: {deployment.server.log_text()}") from None


@pytest.mark.parametrize("engine", DEPLOYMENTS)
@pytest.mark.parametrize("seed", [1])
def test_a_walk_through_faults_loses_and_doubles_nothing(
    engine: str, seed: int, tmp_path: Path
) -> None:
    steps = sorted(STRIKES[engine])
    random.Random(seed).shuffle(steps)
    walk(engine, tmp_path, steps, seed)


def test_a_full_disk_is_waited_for(small_disk: Path, tmp_path: Path) -> None:
    """A file system of its own, filled to the last byte; then there is room again."""
    with deployed("sqlite", tmp_path, 9, small_disk) as (_, population):
        with filled(small_disk / "ballast"):
            before = population.failed
            wait_until(lambda: population.failed > before + len(population.devices))
        population.await_answers()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of some megabytes in memory; where none may be mounted, files are limited
    instead, in the walk above.
    """
    with small_file_system(tmp_path / "disk", DISK) as mounted:
        if not mounted:
            pytest.skip("this user may mount nothing")
        yield tmp_path / "disk"


@pytest.mark.full
@pytest.mark.timeout(900)
@pytest.mark.parametrize("engine", DEPLOYMENTS)
@pytest.mark.parametrize("seed", range(2, 7))
def test_a_long_walk_loses_and_doubles_nothing(engine: str, seed: int, tmp_path: Path) -> None:
    walk(engine, tmp_path, None, seed)


@pytest.mark.full
@pytest.mark.parametrize(
    ("engine", "step", "lasts"),
    [
        ("redis", "Redis out of reach", 7.0),  # longer than an answer is waited for
        ("redis", "Redis stopped", 7.0),
        ("redis-cluster", "master stopped", 4.0),  # longer than the others believe in it
        ("redis-cluster", "master killed", 4.0),
        ("sqlite", "worker stopped", 12.0),  # longer than another worker waits for its lock
        ("sqlite", "lock held", 12.0),
    ],
)
def test_a_long_silence_loses_and_doubles_nothing(
    engine: str, step: str, lasts: float, tmp_path: Path
) -> None:
    walk(engine, tmp_path, [step, step], 1, lasts)
