"""States of a deployment in which alerts fire, one for each alert of `deploy/alerts.yml`.

Each function brings a real deployment into its state and returns what Prometheus would have read on
the way: real expositions, at times that are made up, so that a week takes no week. An alert without
a state here fails its test. What needs a process or a real delay runs `veilcount serve`; the rest
asks the same application without a socket.
"""

from __future__ import annotations

import os
import re
import resource
import secrets
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from threading import Thread
from typing import Any
from unittest.mock import patch

import requests

from tests.aggregator.api.deployment_fixtures import FILE, Deployment, deployment
from tests.redis_cluster import RedisCluster
from tests.redis_server import RedisServer
from tests.system.deploy.files import unit
from tests.system.deploy.promql import Sample, Scrape, read
from tests.system.faults.campaign import Campaign
from tests.system.server import Server, wait_until
from veilcount_aggregator.auth.api_keys import Role, create_key
from veilcount_aggregator.central.store_confirmation import RegisteredJournal
from veilcount_aggregator.retention.retention_guard import DROPPED, confirm_day
from veilcount_aggregator.store import open_store
from veilcount_aggregator.store.records import update_records
from veilcount_aggregator.store.redis import shard_health
from veilcount_aggregator.store.redis.identity import RECORDS_BASE
from veilcount_aggregator.store.redis.store import RedisStore
from veilcount_aggregator.store.restore_lock import lock_releases
from veilcount_client.testing import SeededRandomSource
from veilcount_shared.report import Batch
from veilcount_shared.wire import BINARY_TYPE, encode_binary

MINUTE, HOUR, DAY = 60, 3600, 86_400
STALL_SECONDS = 1.5
UP = "up"  # Prometheus' own, for each place that it reads


@dataclass
class Timeline:
    """Scrapes of one deployment, and the instants at which an alert is to be silent and to fire."""

    scrapes: list[Scrape] = field(default_factory=list)
    quiet: float = 0.0
    fired: float = 0.0

    def add(self, at: float, samples: list[Sample]) -> None:
        """Add a scrape; the first is the quiet one unless another is set."""
        self.scrapes.append(Scrape(at, samples))
        self.fired = at


State = Callable[[Path], Timeline]
STATES: dict[str, State] = {}
#: alerts whose states take seconds; what they watch has cheaper tests too
SLOW: set[str] = set()


def state(alert: str, *, slow: bool = False) -> Callable[[State], State]:
    """Register the state of an alert."""

    def register(function: State) -> State:
        STATES[alert] = function
        if slow:
            SLOW.add(alert)
        return function

    return register


# -- the application without a socket --------------------------------------------------------------


@dataclass
class Scraped:
    """An application, and a key that opens its metrics."""

    deployment: Deployment
    key: str
    timeline: Timeline = field(default_factory=Timeline)

    def scrape(self, at: float) -> None:
        """Read its metrics, as if at an instant."""
        reply = self.deployment.ask("GET", "/metrics", key=self.key)
        assert reply.status == 200
        up = Sample(UP, {"job": "veilcount"}, 1)
        self.timeline.add(at, [up, *read(reply.body.decode())])


@contextmanager
def scraped(folder: Path, **settings: Any) -> Iterator[Scraped]:
    """Yield an application with definitions, read once."""
    with deployment(folder, FILE, **settings) as deployed:
        yield Scraped(deployed, deployed.key(Role.ANALYST))


def repeated(folder: Path, act: Callable[[Deployment], object], **settings: Any) -> Timeline:
    """Return what is read around an act that comes twice: a rate takes two readings."""
    with scraped(folder, **settings) as found:
        found.deployment.verdicts(found.deployment.report("theme"))
        act(found.deployment)
        found.scrape(0)
        found.deployment.clocks.passed += MINUTE
        act(found.deployment)
        found.scrape(10 * MINUTE)
    return found.timeline


@state("IntakeDrop")
def intake_drop(folder: Path) -> Timeline:
    """Ten reports an hour a week ago, and as many now; an hour later three."""
    with scraped(folder) as found:
        for at, reports in ((0, 1), (HOUR, 10), (2 * HOUR, 10), (7 * DAY, 1), (7 * DAY + HOUR, 10)):
            found.deployment.verdicts(*(found.deployment.report("theme") for _ in range(reports)))
            found.scrape(at)
        found.timeline.quiet = 7 * DAY + HOUR
        found.deployment.verdicts(*(found.deployment.report("theme") for _ in range(3)))
        found.scrape(7 * DAY + 2 * HOUR)
    return found.timeline


@state("StoreUnavailable")
def store_unavailable(folder: Path) -> Timeline:
    """Redis is set so that no report would be kept safely: devices hear 503."""
    redis = RedisServer(folder)
    try:
        with scraped(folder, url=redis.url) as found:
            redis.ask("CONFIG", "SET", "appendfsync", "everysec")
            for at in (0, 10 * MINUTE):
                assert (
                    found.deployment.send(Batch((found.deployment.report("theme"),))).status == 503
                )
                found.deployment.clocks.passed += MINUTE
                found.scrape(at)
    finally:
        redis.kill()
    return found.timeline


@state("ReadOnly")
def read_only(folder: Path) -> Timeline:
    """As `store copy` leaves its source."""
    with scraped(folder) as found:
        found.scrape(0)
        found.deployment.aggregator.store.set_read_only(on=True)
        found.scrape(MINUTE)
        found.deployment.aggregator.store.set_read_only(on=False)
    return found.timeline


@state("ShardDown", slow=True)
def shard_down(folder: Path) -> Timeline:
    """One of three masters is killed, not that of the records."""
    cluster = RedisCluster(folder)
    try:
        with scraped(folder, url=cluster.url) as found:
            store = found.deployment.aggregator.store
            assert isinstance(store, RedisStore)
            found.scrape(0)
            masters = {cluster.master_of(base) for base in store.identity.bases}
            next(iter(masters - {cluster.master_of(RECORDS_BASE)})).kill()
            found.scrape(MINUTE)
    finally:
        cluster.close()
    return found.timeline


@state("StoreMemory")
def store_memory(folder: Path) -> Timeline:
    """A Redis that is half full, and then nearly full."""
    redis = RedisServer(folder)
    try:
        with scraped(folder, url=redis.url) as found, redis.connection() as connection:
            used = int(connection.info("memory")["used_memory"])
            for at, limit in ((0, 2 * used), (MINUTE, used + (1 << 18))):
                redis.ask("CONFIG", "SET", "maxmemory", str(limit))
                found.scrape(at)
    finally:
        redis.kill()
    return found.timeline


@state("NotWritable")
def not_writable(folder: Path) -> Timeline:
    """A Redis that may hold no more refuses writes, and answers reads."""
    redis = RedisServer(folder)
    try:
        with (
            patch.object(shard_health, "PROBE_SECONDS", 0.0),  # each scrape writes
            scraped(folder, url=redis.url) as found,
        ):
            for at, limit in ((0, "0"), (MINUTE, "1")):
                redis.ask("CONFIG", "SET", "maxmemory", limit)
                found.scrape(at)
            redis.ask("CONFIG", "SET", "maxmemory", "0")
    finally:
        redis.kill()
    return found.timeline


@state("AofFailing")
def aof_failing(folder: Path) -> Timeline:
    """No file of Redis may be longer than a megabyte, and its content is three."""
    redis = RedisServer(folder)
    try:
        with scraped(folder, url=redis.url) as found, redis.connection() as connection:
            connection.set("large", secrets.token_bytes(3 << 20))
            found.scrape(0)
            pid = connection.info("server")["process_id"]
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (1 << 20,) * 2)
            connection.bgrewriteaof()
            wait_until(lambda: connection.info("persistence")["aof_last_bgrewrite_status"] == "err")
            found.scrape(MINUTE)
    finally:
        redis.kill()
    return found.timeline


@state("ClockSkew")
def clock_skew(folder: Path) -> Timeline:
    """The host's clock jumps by 40 days while it serves."""
    with scraped(folder) as found:
        found.deployment.aggregator.look_at_clock()
        found.scrape(0)
        found.deployment.clocks.now += timedelta(days=40)
        found.deployment.aggregator.look_at_clock()
        found.scrape(MINUTE)
    return found.timeline


@state("RetentionWaiting")
def retention_waiting(folder: Path) -> Timeline:
    """The day on record is nine days ago."""
    with scraped(folder) as found:
        store, now = found.deployment.aggregator.store, found.deployment.clocks.now
        for at, day in ((0, now), (MINUTE, now - timedelta(days=9))):
            confirm_day(store, day, "test")
            found.deployment.aggregator.look_at_clock()
            found.scrape(at)
    return found.timeline


@state("ManyDropped")
def many_dropped(folder: Path) -> Timeline:
    """A hundred epochs are dropped within an hour."""
    with scraped(folder) as found:
        for at, dropped in ((0, 1), (30 * MINUTE, 100)):
            found.deployment.aggregator.store.commit([], {DROPPED: dropped})
            found.scrape(at)
    return found.timeline


@state("SeriesMemory")
def series_memory(folder: Path) -> Timeline:
    """A definition's counters take four fifths of what they may."""
    with scraped(folder, max_series_memory=400) as found:
        found.scrape(0)
        found.deployment.verdicts(found.deployment.report("theme"))
        found.scrape(MINUTE)
    return found.timeline


@state("CountersMemory")
def counters_memory(folder: Path) -> Timeline:
    """The counters of all definitions do."""
    with scraped(folder, max_store_memory=1200) as found:
        found.deployment.verdicts(found.deployment.report("theme"))
        found.scrape(0)
        found.deployment.verdicts(
            found.deployment.report("alone"), found.deployment.report("opened")
        )
        found.scrape(MINUTE)
    return found.timeline


@state("ReleasesWait")
def releases_wait(folder: Path) -> Timeline:
    """A registered journal has not confirmed the store as it is."""
    with scraped(folder) as found:
        found.scrape(0)
        gone = RegisteredJournal("0123", "gone", "of-a-store-before").record()
        update_records(found.deployment.aggregator.store, lambda: ([gone], None))
        found.scrape(MINUTE)
    return found.timeline


@state("UnknownCollection")
def unknown_collection(folder: Path) -> Timeline:
    """An app sends reports of a definition that was not pushed."""
    return repeated(folder, lambda made: made.verdicts(made.report("theme", fingerprint="0" * 64)))


@state("NoKey")
def no_key(folder: Path) -> Timeline:
    """The intake is keyed, and devices come without a key."""
    with scraped(folder) as found:
        key = found.deployment.key(Role.DEVICE)
        for at in (0, 10 * MINUTE):
            found.deployment.verdicts(found.deployment.report("theme"), key=key)
            found.deployment.send(Batch((found.deployment.report("theme"),)))
            found.deployment.clocks.passed += MINUTE
            found.scrape(at)
    return found.timeline


@state("Full")
def full(folder: Path) -> Timeline:
    """A period with room for one pseudonym has it, and others come."""
    return repeated(folder, lambda made: made.verdicts(made.report("theme")), max_new_pseudonyms=1)


@state("OverBudget")
def over_budget(folder: Path) -> Timeline:
    """A slot that the definition does not grant."""
    return repeated(folder, lambda made: made.verdicts(made.report("theme", slot=9)))


@state("MalformedStale")
def malformed(folder: Path) -> Timeline:
    """A segment that the definition does not have."""
    return repeated(folder, lambda made: made.verdicts(made.report("theme", segment=9)))


@state("PoisoningTestFailed")
def poisoning_test_failed(folder: Path) -> Timeline:
    """Three hundred devices that all say the same."""
    with scraped(folder) as found:
        made = found.deployment
        pack = made.series("theme").collection.pack
        honest = [made.report("theme", message=pack(number % 3)) for number in range(60)]
        made.verdicts(*honest)
        found.scrape(0)
        made.verdicts(*(made.report("theme", message=pack(0)) for _ in range(300)))
        found.scrape(MINUTE)
    return found.timeline


@state("BackupOld")
def backup_old(folder: Path) -> Timeline:
    """A backup is made, and none for 27 hours; the unit that makes it records its time."""
    (metric,) = re.findall(
        r'echo "(\w+) ', "".join(unit("veilcount-backup.service")["ExecStartPost"])
    )
    with scraped(folder) as found:
        found.scrape(0)
        (first,) = found.timeline.scrapes
        found.timeline.scrapes[0] = Scrape(0, [*first.samples, Sample(metric, {}, 0.0)])
    found.timeline.fired = 27 * HOUR
    return found.timeline


@state("ReleasesLocked")
def releases_locked(folder: Path) -> Timeline:
    """As `store restore` leaves them."""
    with scraped(folder) as found:
        found.scrape(0)
        lock_releases(found.deployment.aggregator.store, "restored")
        found.scrape(MINUTE)
    return found.timeline


# -- a server --------------------------------------------------------------------------------------


@dataclass
class Served:
    """A real server on a real Redis."""

    server: Server
    redis: RedisServer
    campaign: Campaign
    key: str
    timeline: Timeline = field(default_factory=Timeline)
    randomness: SeededRandomSource = field(default_factory=lambda: SeededRandomSource(1))

    def scrape(self, at: float) -> None:
        """Read its metrics, as if at an instant; a place that cannot be read is down."""
        try:
            reply = self.server.ask("GET", "/metrics", headers=self._keyed)
            samples = list(read(reply.text)) if reply.ok else []
        except requests.ConnectionError:
            samples = []
        up = Sample(UP, {"job": "veilcount"}, float(bool(samples)))
        self.timeline.add(at, [up, *samples])

    def post(self) -> int:
        """Send a person's report; return the status."""
        body = encode_binary(Batch((self.campaign.person(self.randomness)[0],)))
        headers = {"Content-Type": BINARY_TYPE}
        return self.server.ask("POST", "/v1/reports", data=body, headers=headers).status_code

    @property
    def _keyed(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.key}"}


@contextmanager
def served(folder: Path) -> Iterator[Served]:
    """Yield a server that has taken a report."""
    (folder / "redis").mkdir()
    redis, campaign = RedisServer(folder / "redis"), Campaign.write(folder)
    try:
        store = open_store(redis.url, make=True)
        _, key = create_key(store, Role.ANALYST, "prometheus", campaign.now())
        store.close()
        journal = str(folder / "releases.jsonl")
        flags = ("--collections", str(campaign.file), "--journal", journal)
        with Server(redis.url, folder, *flags) as server:
            made = Served(server, redis, campaign, key)
            assert made.post() == 200
            yield made
    finally:
        redis.kill()


@state("Down", slow=True)
def down(folder: Path) -> Timeline:
    """The server and its workers are killed."""
    with served(folder) as found:
        found.scrape(0)
        found.server.kill()
        found.scrape(MINUTE)
    return found.timeline


@state("Slow", slow=True)
def slow(folder: Path) -> Timeline:
    """Redis answers a request after a second and more: as if its disk did."""
    with served(folder) as found:
        found.scrape(0)
        sender = Thread(target=found.post)
        found.redis.freeze()
        sender.start()
        time.sleep(STALL_SECONDS)
        found.redis.thaw()
        sender.join()
        time.sleep(1.1)  # figures of the service are written each second
        found.scrape(10 * MINUTE)
    return found.timeline


@state("NotDurable", slow=True)
def not_durable(folder: Path) -> Timeline:
    """A setting of Redis is changed while everything runs; the figures go on, and say so."""
    with served(folder) as found:
        found.scrape(0)
        found.redis.ask("CONFIG", "SET", "appendfsync", "everysec")
        wait_until(lambda: found.post() == 503)
        found.scrape(MINUTE)
    return found.timeline


@state("NoAnalysis", slow=True)
def no_analysis(folder: Path) -> Timeline:
    """The analysis process hangs: it is not replaced, and analysts hear 503."""
    with served(folder) as found:
        found.scrape(0)
        (pid,) = found.server.analysis()
        os.kill(pid, signal.SIGSTOP)
        try:
            found.scrape(MINUTE)
        finally:
            os.kill(pid, signal.SIGCONT)
    return found.timeline
