"""The drill: a cluster is backed up while it serves, lost with everything, and restored elsewhere.

What was acknowledged before the backup is there, once; what came later is gone, and nothing is
counted twice when devices send again; releases wait for the journal.
"""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.redis_cluster import RedisCluster
from tests.system.faults.campaign import Campaign
from tests.system.faults.honest_devices import Population
from tests.system.faults.store_verification import bit, spent
from tests.system.faults.test_growing_cluster import answered
from veilcount_aggregator.doctor.finding import Severity
from veilcount_aggregator.doctor.store_checks import examine_store
from veilcount_aggregator.settings import Settings
from veilcount_aggregator.store import open_store
from veilcount_aggregator.store.backup import backup, restore
from veilcount_aggregator.store.restore_lock import release_lock_reason
from veilcount_shared.report import Report


@pytest.mark.full
def test_a_lost_cluster_is_restored_to_another_one(tmp_path: Path) -> None:
    campaign, kept = Campaign.write(tmp_path), tmp_path / "backup.db"
    lost = RedisCluster(tmp_path / "lost")
    server = campaign.serve(lost.url, "--workers", "2")
    population = Population.create(campaign, server.port, seed=4)
    with population.living():
        answered(population)
        before = set(population.acknowledged)
        backup(lost.url, kept)
        backed_up = {report for device in population.devices for report in device.tried}
        answered(population)
        answered(population)
    after = set(population.acknowledged)
    server.kill()
    lost.close()
    found = RedisCluster(tmp_path / "found", nodes=4)
    try:
        restore(kept, found.url)
        held = _held(found.url, campaign)
        with closing(open_store(found.url)) as store:
            why = release_lock_reason(store)
        findings = {
            each.check: each
            for each in examine_store(Settings(found.url), lambda: datetime.now(UTC), deep=True)
        }
        assert _bits(campaign, before) <= held <= _bits(campaign, backed_up)
        assert _bits(campaign, after) - held, "nothing came after the backup"
        assert "journal" in (why or "")
        assert findings["books"].state is Severity.OK
        _go_on(campaign, found, population, held)
    finally:
        found.close()
        population.close()


def _go_on(
    campaign: Campaign,
    found: RedisCluster,
    population: Population,
    held: set[tuple[str, int, bytes, int]],
) -> None:
    """Have devices retry unacknowledged reports; each is counted once."""
    waiting = [report for device in population.devices for report in device.waiting]
    with campaign.serve(found.url) as server:
        again = Population.create(campaign, server.port, seed=5, devices=1)
        again.devices[0].waiting = list(waiting)
        again.settle(60)
        again.close()

    now = _held(found.url, campaign)
    assert now == held | _bits(campaign, set(waiting))
    with closing(open_store(found.url)) as store:
        assert sum(sum(store.report_counts(each).values()) for each in campaign.series) == len(now)


def _held(url: str, campaign: Campaign) -> set[tuple[str, int, bytes, int]]:
    """Return the bits that a store has, as many as its counters say."""
    with closing(open_store(url)) as store:
        bits = list(spent(store.export_pieces()))
        reports = sum(sum(store.report_counts(each).values()) for each in campaign.series)
    assert len(set(bits)) == len(bits) == reports
    return set(bits)


def _bits(campaign: Campaign, reports: set[Report]) -> set[tuple[str, int, bytes, int]]:
    series = {each.fingerprint: each for each in campaign.series}
    return {bit(series[each.fingerprint], each) for each in reports}
