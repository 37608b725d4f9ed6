"""nginx, two aggregators, one Redis Cluster: one of the two is killed while real clients send.

No acknowledged report is lost or counted twice, and clients continue by themselves.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import count
from pathlib import Path

import pytest

from veilcount_aggregator.store import open_store
from veilcount_client import Client
from veilcount_client.testing import SettableClock

from ...redis_cluster import RedisCluster
from ..faults.campaign import Campaign
from ..faults.store_verification import spent
from ..server import free_port, wait_until
from .nginx import in_front_of

PERSONS = 4
PATIENCE = 60.0  # seconds, on a machine that is busy


@dataclass
class App:
    """An app that acts for some persons, with the client that people install."""

    client: Client
    clock: SettableClock
    campaign: Campaign
    recorded: int = 0
    left: int = 0  # what the client says has left
    heard_at: float = 0.0  # when something left last, by the monotonic clock
    stopping: threading.Event = field(default_factory=threading.Event)

    def live(self) -> None:
        """Have new persons answer yesterday's questions, and flush, until stopped."""
        for number in count():
            if self.stopping.is_set():
                return
            self.recorded += self.campaign.answer(self.client, f"round {number}", PERSONS)
            self.settle(1)

    def settle(self, tries: int) -> bool:
        """Have everything leave; the clock of a device that was turned away goes on by hours."""
        for _ in range(tries):
            if self.client.flush(timeout=3):
                self.left, self.heard_at = self.recorded, time.monotonic()
                return True
            self.clock.advance(minutes=30)
        return False


@contextmanager
def apps(campaign: Campaign, folder: Path, url: str, number: int) -> Iterator[list[App]]:
    """Have several apps live, each on a machine of its own."""
    made = []
    for place in range(number):
        clock = SettableClock(campaign.now() - timedelta(hours=12))
        client = campaign.client(url, folder / f"state {place}", clock)
        made.append(App(client, clock, campaign))
    threads = [threading.Thread(target=each.live) for each in made]
    for thread in threads:
        thread.start()
    try:
        yield made
    finally:
        for each in made:
            each.stopping.set()
        for thread in threads:
            thread.join()
        done = [each.settle(20) for each in made]
        for each in made:
            each.client.close()
    assert all(done)


@pytest.mark.full
def test_one_of_two_dies_nothing_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    campaign, cluster = Campaign.write(tmp_path), RedisCluster(tmp_path / "cluster")
    ports = [free_port(), free_port()]
    servers = [campaign.serve(cluster.url, "--workers", "2", port=port) for port in ports]
    try:
        # All apps have one address here.
        more = {"rate=1r/s": "rate=10000r/s"}
        with in_front_of(tmp_path / "nginx", *ports, more=more) as nginx:
            monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(nginx.certificate))
            with apps(campaign, tmp_path, nginx.url, 3) as living:
                wait_until(lambda: all(each.left > 40 for each in living), PATIENCE)
                servers[0].kill()
                killed = time.monotonic()
                wait_until(lambda: all(each.heard_at > killed for each in living), PATIENCE)
                servers.append(campaign.serve(cluster.url, "--workers", "2", port=ports[0]))
                back = time.monotonic()
                wait_until(lambda: all(each.heard_at > back + 0.5 for each in living), PATIENCE)
            recorded = sum(each.recorded for each in living)
        assert [server.stop() for server in servers[1:]] == [0, 0]
        with closing(open_store(cluster.url)) as store:
            counted = sum(
                n for series in campaign.series for n in store.report_counts(series).values()
            )
            assert counted == len(list(spent(store.export_pieces()))) == recorded
    finally:
        for server in servers:
            if server.process.poll() is None:
                server.kill()
        cluster.close()
