"""An operator's drill, with devices at work: back up while it serves, restore elsewhere, check.

Nothing that was acknowledged before the backup began is missing from it, and no budget is anew.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from tests.system.faults.campaign import Campaign
from tests.system.faults.honest_devices import Population
from tests.system.faults.store_verification import bit, spent
from tests.system.faults.test_restoring import FILE, NOW, release
from tests.system.server import wait_until
from veilcount_aggregator.auth.api_keys import Role, create_key
from veilcount_aggregator.store import open_store


def veilcount(*words: str) -> subprocess.CompletedProcess[str]:
    """Type a command, beside the server."""
    return subprocess.run(
        [sys.executable, "-m", "veilcount_aggregator", *words],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.full
def test_the_drill_under_load(tmp_path: Path) -> None:
    campaign, journal = Campaign.write(tmp_path), tmp_path / "journal"
    central = tmp_path / "central.toml"
    central.write_text(FILE)
    url, back = f"sqlite:///{tmp_path}/store.db", f"sqlite:///{tmp_path}/back.db"
    flags = ("--collections", str(central), "--journal", str(journal))
    with closing(open_store(url, make=True)) as store:
        _, key = create_key(store, Role.ANALYST, "ann", NOW)
    with campaign.serve(url, *flags) as server:
        population = Population.create(campaign, server.port, seed=7)
        with population.living():
            wait_until(lambda: len(population.acknowledged) > 300)
            made = release(server, key, "0.7")
            before = population.acknowledged
            kept = veilcount("store", "backup", str(tmp_path / "kept.db"), "--store", url)
            since = len(population.acknowledged)
            wait_until(lambda: len(population.acknowledged) > since)
        population.close()
    restored = veilcount("store", "restore", str(tmp_path / "kept.db"), "--store", back)
    checked = veilcount("store", "check", "--store", back, "--json")
    with closing(open_store(back)) as store:
        bits = set(spent(store.export_pieces()))
        counted = sum(n for series in campaign.series for n in store.report_counts(series).values())
    with campaign.serve(back, *flags) as server:
        locked = release(server, key, "0.4")
        unlocked = veilcount("store", "unlock", "--store", back, "--journal", str(journal))
        same, too_much = release(server, key, "0.7"), release(server, key, "0.4")

    named = {series.fingerprint: series for series in campaign.series}
    expected = {bit(named[report.fingerprint], report) for report in before}
    assert (kept.returncode, restored.returncode, checked.returncode) == (0, 0, 0), kept.stderr
    assert json.loads(checked.stdout)["releases_locked"]
    assert expected - bits == set()
    assert counted == len(bits)
    assert population.wrong == []
    assert (made.status_code, locked.status_code) == (200, 409)
    assert unlocked.returncode == 0
    assert same.json()["figures"] == made.json()["figures"]
    assert too_much.status_code == 409
