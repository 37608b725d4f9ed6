"""The write-ahead log of a serving SQLite store is removed: nothing acknowledged is lost."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from tests.system.faults.campaign import Campaign
from tests.system.faults.honest_devices import Population
from tests.system.faults.store_verification import bits_of, spent
from tests.system.server import Server, wait_until
from veilcount_aggregator.errors import StoreUnfit
from veilcount_aggregator.store import open_store
from veilcount_shared.report import Report

MENDED = "write-ahead log restored"


def missing(url: str, campaign: Campaign, acknowledged: list[Report]) -> int:
    """Return how many acknowledged reports a store does not hold."""
    with closing(open_store(url)) as store:
        return len(bits_of(campaign, acknowledged) - {*spent(store.export_pieces())})


def remove(folder: Path, *suffixes: str) -> None:
    """Remove files of the store by name, as a careless operator does."""
    for suffix in suffixes:
        (folder / f"store.db-{suffix}").unlink()


def replace_log(folder: Path) -> None:
    """Put another, empty file in the log's place."""
    other = folder / "other"
    other.touch()
    other.replace(folder / "store.db-wal")


ATTACKS: dict[str, Callable[[Path], None]] = {
    "the log": lambda folder: remove(folder, "wal"),
    "log and index": lambda folder: remove(folder, "wal", "shm"),
    "all with a suffix": lambda folder: remove(folder, "wal", "shm", "lock"),
    "another file": replace_log,
}
#: every file at once; the others are variants of it
FIRST = "all with a suffix"


def served_on(population: Population) -> None:
    """Wait until every device was answered again."""
    now = time.monotonic()
    wait_until(lambda: population.answered_since(now))


@contextmanager
def attacked(attack: str, folder: Path, seed: int) -> Iterator[tuple[Campaign, Population, Server]]:
    """Remove files under load; kill -9 of everything at the end."""
    campaign = Campaign.write(folder)
    server = campaign.serve(f"sqlite:///{folder}/store.db", "--workers", "2")
    population = Population.create(campaign, server.port, seed, devices=4)
    with population.living():
        served_on(population)
        ATTACKS[attack](folder)
        yield campaign, population, server
        server.kill()
    population.close()


@pytest.mark.parametrize(
    "attack",
    [each if each == FIRST else pytest.param(each, marks=pytest.mark.full) for each in ATTACKS],
)
def test_a_removed_log_loses_nothing_when_all_processes_are_killed(
    attack: str, tmp_path: Path
) -> None:
    """The files go, and reports are acknowledged."""
    with attacked(attack, tmp_path, seed=1) as (campaign, population, server):
        for _ in range(5):
            served_on(population)
    acknowledged = population.acknowledged
    events = {json.loads(line)["event"] for line in server.log_text().splitlines()}

    assert len(acknowledged) > 100
    assert missing(f"sqlite:///{tmp_path}/store.db", campaign, acknowledged) == 0
    assert population.wrong == []
    assert MENDED in events


@pytest.mark.full
@pytest.mark.parametrize("moment", range(8))
def test_killed_at_any_moment_after_the_removal_nothing_is_lost(
    moment: int, tmp_path: Path
) -> None:
    """Before anyone could look, too: then the store names the file to move, and all is there."""
    url = f"sqlite:///{tmp_path}/store.db"
    with attacked("log and index", tmp_path, seed=moment) as (campaign, population, _):
        time.sleep(0.004 * moment)
    try:
        open_store(url).close()
    except StoreUnfit as error:
        words = str(error)
        assert "mv " in words, words
        source, target = words.partition("mv ")[2].split(". If")[0].split()
        Path(source).rename(target)

    assert missing(url, campaign, population.acknowledged) == 0
    assert population.wrong == []
