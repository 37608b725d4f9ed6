"""An operator's drill, with devices at work: back up while it serves, restore elsewhere, go on.

What was acknowledged before the backup is there, once; what devices send again is counted once; and
what was released after it is entered again from the journal before anything is.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import requests

from veilcount_aggregator.queries.checks.store_checks import examine_store
from veilcount_aggregator.records.api_keys import Role, create_key
from veilcount_aggregator.releases.privacy_filter import PrivacyFilter
from veilcount_aggregator.releases.release_journal import ReleaseJournal
from veilcount_aggregator.settings import Settings
from veilcount_aggregator.store import open_store
from veilcount_aggregator.store.backup import backup, restore
from veilcount_serving.findings import Severity

from ...client.device_fixtures import definitions_text
from ...redis_cluster import RedisCluster
from ..faults.campaign import Campaign
from ..faults.honest_devices import Population
from ..faults.store_verification import Bit, bits_of, spent
from ..server import Server, wait_until

NOW = datetime.now(UTC)
FILE = definitions_text(
    visits={
        "model": "central", "budget": 1, "late": 1,
        "from": NOW.date() - timedelta(10), "until": NOW.date() + timedelta(10),
    }
)  # fmt: skip
DAY = str(NOW.date() - timedelta(9))


def release(server: Server, key: str, epsilon: str) -> requests.Response:
    query = {"query": "count", "epsilon": epsilon, "from": DAY, "to": DAY}
    headers = {"Authorization": f"Bearer {key}"}
    return server.ask("POST", "/v1/collections/visits/releases", json=query, headers=headers)


def released(server: Server, key: str, epsilon: str) -> requests.Response:
    """Ask until it is released: a new journal waits for hosts that might object."""
    wait_until(lambda: release(server, key, epsilon).status_code == 200, 60)
    return release(server, key, epsilon)


def refusal(reply: requests.Response) -> str:
    return str(reply.json()["type"]).rpartition("#")[2]


@contextmanager
def stores(engine: str, folder: Path) -> Iterator[tuple[str, str]]:
    """Yield where a store is, and where it is restored to: another cluster is of another size."""
    if engine == "sqlite":
        yield f"sqlite:///{folder}/store.db", f"sqlite:///{folder}/back.db"
        return
    first, second = RedisCluster(folder / "first"), RedisCluster(folder / "second", nodes=4)
    try:
        yield first.url, second.url
    finally:
        first.close()
        second.close()


def held(url: str, campaign: Campaign) -> set[Bit]:
    """Return the bits that a store has, as many as its counters say."""
    with closing(open_store(url)) as store:
        bits = list(spent(store.export_pieces()))
        reports = sum(sum(store.report_counts(each).values()) for each in campaign.series)
    assert len(set(bits)) == len(bits) == reports
    return set(bits)


@pytest.mark.parametrize(
    "engine", ["sqlite", pytest.param("redis-cluster", marks=pytest.mark.full)]
)
def test_the_drill_under_load(engine: str, tmp_path: Path) -> None:
    """The budget of a day is one: 0.7 was spent after the backup, so 0.4 is never paid for."""
    campaign, journal, kept = Campaign.write(tmp_path), tmp_path / "journal", tmp_path / "kept"
    (tmp_path / "central.toml").write_text(FILE)
    flags = ("--collections", str(tmp_path / "central.toml"), "--journal", str(journal))
    with stores(engine, tmp_path) as (url, back):
        with closing(open_store(url, make=True)) as store:
            _, key = create_key(store, Role.ANALYST, "ann", NOW)
        with campaign.serve(url, *flags) as server:
            population = Population.create(campaign, server.port, seed=7)
            with population.living():
                released(server, key, "0.1")
                wait_until(lambda: len(population.acknowledged) > 300)
                before = population.acknowledged
                backup(url, kept)
                tried = population.tried
                made = released(server, key, "0.7")
                wait_until(lambda: set(population.acknowledged) - tried)
        population.close()
        restore(kept, back)
        with closing(open_store(back)) as store:
            store.accept_losses(NOW)  # this host has acknowledged reports in another store
        restored = held(back, campaign)
        with campaign.serve(back, *flags) as server:
            locked = refusal(release(server, key, "0.4"))
            with closing(open_store(back)) as store:
                journaled = PrivacyFilter(store, ReleaseJournal(journal))
                entered = journaled.restore_missing(NOW, "test")
            same, too_much = released(server, key, "0.7"), refusal(release(server, key, "0.4"))
            again = Population.create(campaign, server.port, seed=5, devices=1)
            waiting = [report for device in population.devices for report in device.waiting]
            again.devices[0].waiting = list(waiting)
            again.settle(60)
            again.close()
        findings = examine_store(Settings(back), lambda: datetime.now(UTC), deep=True)
        states = {each.check: each.state for each in findings}

        assert population.wrong == []
        assert bits_of(campaign, before) <= restored <= bits_of(campaign, tried)
        assert held(back, campaign) == restored | bits_of(campaign, waiting)
        assert states["consistency"] is Severity.OK
        assert (locked, len(entered), too_much) == ("releases-locked", 1, "insufficient-budget")
        assert same.json()["figures"] == made.json()["figures"]
