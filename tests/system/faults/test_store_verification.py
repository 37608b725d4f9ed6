"""The audit that all tests in here end with finds what it is for."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from veilcount_client.testing import SeededRandomSource
from veilcount_shared.report import Report
from veilcount_shared.verdict import Verdict

from ...aggregator.web.api.deployment_fixtures import open_worker
from .campaign import Campaign
from .store_verification import assert_consistent


@pytest.fixture
def acknowledged(tmp_path: Path) -> list[Report]:
    campaign, randomness = Campaign.write(tmp_path), SeededRandomSource(3)
    reports = [report for _ in range(5) for report in campaign.person(randomness)]
    with open_worker(f"sqlite:///{tmp_path}/store.db", campaign.now(), make=True) as worker:
        worker.push(campaign.file.read_text(encoding="utf-8"))
        assert set(worker.verdicts(*reports)) == {Verdict.COUNTED}
    return reports


def verify(folder: Path, acknowledged: list[Report]) -> None:
    assert_consistent(f"sqlite:///{folder}/store.db", Campaign.write(folder), acknowledged)


def test_a_correct_store_passes_and_what_it_does_not_hold_is_noticed(
    tmp_path: Path, acknowledged: list[Report]
) -> None:
    verify(tmp_path, acknowledged)
    with pytest.raises(AssertionError, match="never acknowledged"):
        verify(tmp_path, acknowledged[1:])


@pytest.mark.parametrize(
    "harm",
    [
        "delete from ledger where row = (select min(row) from ledger)",
        "update tally set n = n + 1 where rowid = 1",
        "update tally set counters = zeroblob(length(counters)) where rowid = 1",
        "update spent_rows set rows = zeroblob(8)",
    ],
)
def test_a_changed_store_does_not(tmp_path: Path, acknowledged: list[Report], harm: str) -> None:
    with closing(sqlite3.connect(tmp_path / "store.db")) as database:
        changed = database.execute(harm).rowcount
        database.commit()

    assert changed
    with pytest.raises(AssertionError):
        verify(tmp_path, acknowledged)
