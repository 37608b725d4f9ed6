"""The audit that all tests in here end with finds what it is for."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.system.faults.campaign import Campaign
from tests.system.faults.honest_devices import Population
from tests.system.faults.store_verification import assert_consistent
from tests.system.server import Server
from veilcount_aggregator.store.backup import backup
from veilcount_shared.report import Report


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the store is that all tests copy."""
    return tmp_path_factory.mktemp("books")


@pytest.fixture(scope="module")
def campaign(folder: Path) -> Campaign:
    """What is asked."""
    return Campaign.write(folder)


@pytest.fixture(scope="module")
def acknowledged(folder: Path, campaign: Campaign) -> list[Report]:
    """What was acknowledged while the store was filled through a server."""
    with campaign.serve(f"sqlite:///{folder}/filled.db") as server:
        return fill(server, campaign)


@pytest.fixture
def kept(folder: Path, tmp_path: Path, acknowledged: list[Report]) -> tuple[str, list[Report]]:
    """A copy of the store, and what was acknowledged."""
    url, copy = f"sqlite:///{folder}/filled.db", tmp_path / "store.db"
    backup(url, copy)
    return f"sqlite:///{copy}", acknowledged


def fill(server: Server, campaign: Campaign) -> list[Report]:
    """Have some persons send everything."""
    population = Population.create(campaign, server.port, seed=3, devices=1)
    for device in population.devices:
        device.waiting += [
            report for _ in range(5) for report in campaign.person(device._randomness)
        ]
    population.settle(10)
    population.close()
    return population.acknowledged


def test_a_correct_store_passes(campaign: Campaign, kept: tuple[str, list[Report]]) -> None:
    assert_consistent(kept[0], campaign, kept[1])


@pytest.mark.parametrize(
    "harm",
    [
        "delete from ledger where row = (select min(row) from ledger)",
        "update tally set n = n + 1 where rowid = 1",
        "update tally set counters = zeroblob(length(counters)) where rowid = 1",
        "update spent_rows set rows = zeroblob(8)",
    ],
)
def test_a_changed_store_does_not(
    campaign: Campaign, kept: tuple[str, list[Report]], tmp_path: Path, harm: str
) -> None:
    with closing(sqlite3.connect(tmp_path / "store.db")) as database:
        changed = database.execute(harm).rowcount
        database.commit()

    assert changed
    with pytest.raises(AssertionError):
        assert_consistent(kept[0], campaign, kept[1])


def test_an_acknowledgement_that_nothing_stands_for_is_noticed(
    campaign: Campaign, kept: tuple[str, list[Report]]
) -> None:
    with pytest.raises(AssertionError, match="never acknowledged"):
        assert_consistent(kept[0], campaign, kept[1][1:])
