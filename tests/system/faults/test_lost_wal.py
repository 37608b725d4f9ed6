"""The write-ahead log of a serving SQLite store is removed: nothing acknowledged is lost."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from veilcount_aggregator.store import open_store

from .campaign import Campaign
from .honest_devices import Population
from .store_verification import bits_of, spent

MENDED = "write-ahead log restored"


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


@pytest.mark.parametrize(
    "attack",
    [each if each == FIRST else pytest.param(each, marks=pytest.mark.full) for each in ATTACKS],
)
def test_a_removed_log_loses_nothing_when_all_processes_are_killed(
    attack: str, tmp_path: Path
) -> None:
    """Two workers under load; the files go, reports are acknowledged, kill -9 of everything."""
    campaign, url = Campaign.write(tmp_path), f"sqlite:///{tmp_path}/store.db"
    server = campaign.serve(url, "--workers", "2")
    population = Population.create(campaign, server.port, seed=1, devices=4)
    with population.living():
        population.await_answers()
        ATTACKS[attack](tmp_path)
        for _ in range(5):
            population.await_answers()
        server.kill()
    population.close()
    events = {json.loads(line)["event"] for line in server.log_text().splitlines()}
    with closing(open_store(url)) as store:
        lost = bits_of(campaign, population.acknowledged) - {*spent(store.export_pieces())}

    assert len(population.acknowledged) > 100
    assert lost == set()
    assert population.wrong == []
    assert MENDED in events
