"""The write-ahead log of a serving SQLite store is removed: nothing acknowledged is lost."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.system.faults.campaign import Campaign
from tests.system.faults.honest_devices import Population
from tests.system.faults.store_verification import bit, spent
from tests.system.server import Server, wait_until
from veilcount_aggregator.errors import StoreUnfit
from veilcount_aggregator.store import open_store
from veilcount_shared.report import Report

MENDED = "write-ahead log restored"


def missing(url: str, campaign: Campaign, acknowledged: list[Report]) -> int:
    """Return how many acknowledged reports a store does not hold."""
    with closing(open_store(url)) as store:
        bits = set(spent(store.export_pieces()))
    series = {each.fingerprint: each for each in campaign.series}
    return sum(bit(series[each.fingerprint], each) not in bits for each in acknowledged)


def remove(folder: Path, *names: str) -> None:
    """Remove files of the store by name, as a careless operator does."""
    for name in names:
        (folder / name).unlink()


def truncate_over(folder: Path) -> None:
    """Put another, empty file in the log's place."""
    other = folder / "other"
    other.touch()
    other.replace(folder / "store.db-wal")


ATTACKS: dict[str, Callable[[Path], None]] = {
    "the log": lambda folder: remove(folder, "store.db-wal"),
    "log and index": lambda folder: remove(folder, "store.db-wal", "store.db-shm"),
    "all with a suffix": lambda folder: remove(
        folder, "store.db-wal", "store.db-shm", "store.db-lock"
    ),
    "another file": truncate_over,
}


def served_on(population: Population, seconds: float = 20.0) -> None:
    """Wait until every device was answered again."""
    now = time.monotonic()
    wait_until(lambda: population.answered_since(now), seconds)


#: every file at once; the others are variants of it
FIRST = {"all with a suffix"}


@pytest.mark.parametrize(
    "attack",
    [each if each in FIRST else pytest.param(each, marks=pytest.mark.full) for each in ATTACKS],
)
def test_a_removed_log_loses_nothing_when_all_processes_are_killed(
    attack: str, tmp_path: Path
) -> None:
    """Two workers under load; the files go, reports are acknowledged, kill -9 of everything."""
    campaign = Campaign.write(tmp_path)
    url = f"sqlite:///{tmp_path}/store.db"
    server = campaign.serve(url, "--workers", "2")
    population = Population.create(campaign, server.port, seed=1, devices=4)
    with population.living():
        served_on(population)
        ATTACKS[attack](tmp_path)
        for _ in range(5):
            served_on(population)
        server.kill()
    population.close()

    lost = missing(url, campaign, population.acknowledged)
    assert len(population.acknowledged) > 100
    assert lost == 0, f"{lost:,} of {len(population.acknowledged):,} acknowledged reports are lost"
    assert population.wrong == []
    assert MENDED in _events(server)


@pytest.mark.full
@pytest.mark.parametrize("moment", range(8))
def test_killed_at_any_moment_after_the_removal_nothing_is_lost(
    moment: int, tmp_path: Path
) -> None:
    """Before anyone could look, too: then the store names the file to move, and all is there."""
    campaign = Campaign.write(tmp_path)
    url = f"sqlite:///{tmp_path}/store.db"
    server = campaign.serve(url, "--workers", "2")
    population = Population.create(campaign, server.port, seed=moment, devices=4)
    with population.living():
        served_on(population)
        remove(tmp_path, "store.db-wal", "store.db-shm")
        time.sleep(0.004 * moment)
        server.kill()
    population.close()
    try:
        open_store(url).close()
    except StoreUnfit as error:
        words = str(error)
        assert "mv " in words, words
        source, target = words.partition("mv ")[2].split(". If")[0].split()
        Path(source).rename(target)

    assert missing(url, campaign, population.acknowledged) == 0
    assert population.wrong == []


def _events(server: Server) -> set[str]:
    return {json.loads(line)["event"] for line in server.log_text().splitlines()}
