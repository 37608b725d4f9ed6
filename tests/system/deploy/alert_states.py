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
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Timer
from typing import Any
from unittest.mock import patch

from veilcount_aggregator.errors import StoreError
from veilcount_aggregator.records.api_keys import Role, create_key
from veilcount_aggregator.records.clock_confirmation import confirm_day
from veilcount_aggregator.releases.store_confirmation import RegisteredJournal
from veilcount_aggregator.server.analysis_pool.places import ALIVE_SECONDS
from veilcount_aggregator.store import open_store
from veilcount_aggregator.store.records import update_records
from veilcount_aggregator.store.redis import shard_health
from veilcount_aggregator.store.redis.identity import RECORDS_BASE
from veilcount_aggregator.store.redis.store import RedisStore
from veilcount_aggregator.store.restore_lock import lock_releases
from veilcount_aggregator.store.retention.retention_guard import DROPPED
from veilcount_aggregator.store.sqlite.store import SqliteStore
from veilcount_aggregator.web.api.request_metrics import RequestMetrics
from veilcount_issuer.issuance_metrics import IssuanceMetrics
from veilcount_shared.oblivious_http.encapsulation import REQUEST_TYPE, seal_request
from veilcount_shared.oblivious_http.key_config import KEY_PROBLEM, KeyConfig
from veilcount_shared.report import Batch

from ...aggregator.web.api.deployment_fixtures import FILE, Deployment, deployment
from ...redis_cluster import RedisCluster
from ...redis_server import RedisServer
from ..server import Server, wait_until
from .files import unit
from .promtool import Sample, Scrape, read

MINUTE, HOUR, DAY = 60, 3600, 86_400
STALL_SECONDS = 1.5
FINGERPRINT = "a" * 64  # of a collection with tokens
UP = "up"  # Prometheus' own, for each place that it reads
#: the unit that makes backups records their time
(BACKUP_METRIC,) = re.findall(
    r'echo "(\w+) ', "".join(unit("veilcount-backup.service")["ExecStartPost"])
)


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
        """Read its metrics, as if at an instant, right after a tick."""
        with suppress(StoreError):
            self.deployment.aggregator.flush()
        reply = self.deployment.ask("GET", "/metrics", key=self.key)
        assert reply.status == 200
        up = Sample(UP, {"job": "veilcount"}, 1)
        self.timeline.add(at, [up, *read(reply.body.decode())])


@contextmanager
def scraped(folder: Path, **settings: Any) -> Iterator[Scraped]:
    with deployment(folder, FILE, **settings) as deployed:
        yield Scraped(deployed, deployed.key(Role.ANALYST))


@contextmanager
def on_redis(folder: Path) -> Iterator[tuple[Scraped, RedisServer]]:
    """Yield the same on a Redis, and that."""
    redis = RedisServer(folder)
    try:
        with scraped(folder, url=redis.url) as found:
            yield found, redis
    finally:
        redis.kill()


Act = Callable[[Deployment], object]


def acted(alert: str, *, twice: bool = False, **settings: Any) -> Callable[[Act], Act]:
    """Register an act that leads to the state of an alert: figures are read before and after.

    Where the alert is on a rate the act comes twice: a series that has just appeared has none.
    """

    def register(act: Act) -> Act:
        def timeline(folder: Path) -> Timeline:
            with scraped(folder, **settings) as found:
                if twice:
                    found.deployment.verdicts(found.deployment.report("theme"))
                    act(found.deployment)
                found.scrape(0)
                found.deployment.clocks.passed += MINUTE
                act(found.deployment)
                found.scrape(10 * MINUTE)
            return found.timeline

        STATES[alert] = timeline
        return act

    return register


@state("IntakeDrop")
def intake_drop(folder: Path) -> Timeline:
    """Ten reports an hour a week ago, and as many now; an hour later three."""
    before = ((0, 1), (HOUR, 10), (2 * HOUR, 10), (3 * HOUR, 10), (7 * DAY, 1))
    with scraped(folder) as found:
        made = found.deployment
        for at, reports in (*before, (7 * DAY + HOUR, 10)):
            made.verdicts(*(made.report("theme") for _ in range(reports)))
            found.scrape(at)
        found.timeline.quiet = 7 * DAY + HOUR
        made.verdicts(*(made.report("theme") for _ in range(3)))
        found.scrape(7 * DAY + 2 * HOUR)
    return found.timeline


@state("RelayDrop")
def relay_drop(folder: Path) -> Timeline:
    """The same of requests through relays, and of yesterday: a week ago there were none."""
    before = ((0, 0), (HOUR, 0), (6 * DAY, 0), (6 * DAY + HOUR, 10), (6 * DAY + 3 * HOUR, 20))
    with scraped(folder) as found:
        counted = RequestMetrics(found.deployment.aggregator.service_counters)
        for at, requests in (*before, (7 * DAY, 200), (7 * DAY + HOUR, 10)):
            for _ in range(requests):
                counted.relayed()
            found.scrape(at)
        found.timeline.quiet = 7 * DAY + HOUR
        for _ in range(3):
            counted.relayed()
        found.scrape(7 * DAY + 2 * HOUR)
    return found.timeline


@state("StoreUnavailable")
def store_unavailable(folder: Path) -> Timeline:
    """Redis is set so that no report would be kept safely: devices hear 503."""
    with on_redis(folder) as (found, redis):
        made = found.deployment
        redis.ask("CONFIG", "SET", "appendfsync", "everysec")
        for at in (0, 10 * MINUTE):
            assert made.send(Batch((made.report("theme"),))).status == 503
            made.clocks.passed += MINUTE
            found.scrape(at)
    return found.timeline


@state("NotDurable")
def not_durable(folder: Path) -> Timeline:
    """A setting of Redis is changed while everything runs; the figures go on, and say so."""
    with on_redis(folder) as (found, redis):
        made = found.deployment
        found.scrape(0)
        redis.ask("CONFIG", "SET", "appendfsync", "everysec")
        assert made.send(Batch((made.report("theme"),))).status == 503
        found.scrape(10 * MINUTE)
    return found.timeline


@state("Slow", slow=True)
def slow(folder: Path) -> Timeline:
    """Redis answers a request after a second and more: as if its disk did."""
    with on_redis(folder) as (found, redis):
        made = found.deployment
        made.verdicts(made.report("theme"))
        made.aggregator.flush()
        found.scrape(0)

        def thaw() -> None:
            made.clocks.passed += STALL_SECONDS
            redis.thaw()

        redis.freeze()
        Timer(STALL_SECONDS, thaw).start()
        made.verdicts(made.report("theme"))
        made.aggregator.flush()
        found.scrape(10 * MINUTE)
    return found.timeline


@acted("WentBack")
def went_back(made: Deployment) -> None:
    """The file is put back to a state that has fewer commits."""
    store = made.aggregator.store
    assert isinstance(store, SqliteStore)
    made.verdicts(made.report("theme"))
    with store.file.writing() as database:
        database.execute("update state set height = 0")


@acted("ReadOnly")
def read_only(made: Deployment) -> None:
    """As `store copy` leaves its source."""
    made.aggregator.store.set_read_only(on=True)


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
    with on_redis(folder) as (found, redis), redis.connection() as connection:
        used = int(connection.info("memory")["used_memory"])
        for at, limit in ((0, 2 * used), (MINUTE, used + (1 << 18))):
            redis.ask("CONFIG", "SET", "maxmemory", str(limit))
            found.scrape(at)
    return found.timeline


@state("NotWritable")
def not_writable(folder: Path) -> Timeline:
    """A Redis that may hold no more refuses writes, and answers reads."""
    with (
        patch.object(shard_health, "PROBE_SECONDS", 0.0),  # each scrape writes
        on_redis(folder) as (found, redis),
    ):
        for at, limit in ((0, "0"), (MINUTE, "1")):
            redis.ask("CONFIG", "SET", "maxmemory", limit)
            found.scrape(at)
        redis.ask("CONFIG", "SET", "maxmemory", "0")
    return found.timeline


@state("AofFailing")
def aof_failing(folder: Path) -> Timeline:
    """No file of Redis may be longer than a megabyte, and its content is three."""
    with on_redis(folder) as (found, redis), redis.connection() as connection:
        connection.set("large", secrets.token_bytes(3 << 20))
        found.scrape(0)
        pid = connection.info("server")["process_id"]
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (1 << 20,) * 2)
        connection.bgrewriteaof()
        wait_until(lambda: connection.info("persistence")["aof_last_bgrewrite_status"] == "err")
        found.scrape(MINUTE)
    return found.timeline


@acted("ClockSkew")
def clock_skew(made: Deployment) -> None:
    """The host's clock jumps by 40 days while it serves."""
    made.aggregator.look_at_clock()
    made.clocks.now += timedelta(days=40)
    made.aggregator.look_at_clock()


@acted("RetentionWaiting")
def retention_waiting(made: Deployment) -> None:
    """The day on record is nine days ago."""
    confirm_day(made.aggregator.store, made.clocks.now - timedelta(days=9), "test")
    made.aggregator.look_at_clock()


@acted("ManyDropped", twice=True)
def many_dropped(made: Deployment) -> None:
    """A hundred epochs are dropped within a minute."""
    made.aggregator.store.commit([], {DROPPED: 100})


@state("CountersMemory")
def counters_memory(folder: Path) -> Timeline:
    """The definitions were admitted, and then `maxmemory` is lowered."""
    with on_redis(folder) as (found, redis):
        for at, limit in ((0, "1gb"), (MINUTE, "1kb")):
            redis.ask("CONFIG", "SET", "maxmemory", limit)
            found.scrape(at)
        redis.ask("CONFIG", "SET", "maxmemory", "0")
    return found.timeline


@acted("ReleasesWait")
def releases_wait(made: Deployment) -> None:
    """A registered journal has not confirmed the store as it is."""
    gone = RegisteredJournal("0123", "gone", "of-a-store-before").record()
    update_records(made.aggregator.store, lambda: ([gone], None))


@acted("UnknownCollection", twice=True)
def unknown_collection(made: Deployment) -> None:
    """An app sends reports of a definition that was not pushed."""
    made.verdicts(made.report("theme", fingerprint="0" * 64))


@acted("NoKey", twice=True)
def no_key(made: Deployment) -> None:
    """The intake is keyed, and devices come without a key."""
    made.verdicts(made.report("theme"), key=made.key(Role.DEVICE))
    made.send(Batch((made.report("theme"),)))


@acted("GatewayRefuses", twice=True)
def gateway_refuses(made: Deployment) -> None:
    """What comes through a relay does not open."""
    assert made.ask("POST", "/v1/ohttp", bytes(99), kind=REQUEST_TYPE).status == 400


@acted("Full", twice=True, max_new_pseudonyms=1)
def full(made: Deployment) -> None:
    """A period with room for one pseudonym has it, and others come."""
    made.verdicts(made.report("theme"))


@acted("GatewayKey", twice=True)
def gateway_key(made: Deployment) -> None:
    """A device encrypts to a key that was retired."""
    sealed, _ = seal_request(KeyConfig(7, bytes([9]) + bytes(31)), b"sealed")
    assert made.ask("POST", "/v1/ohttp", sealed, kind=REQUEST_TYPE).json["type"] == KEY_PROBLEM


@acted("WorkersDie", twice=True)
def workers_die(made: Deployment) -> None:
    """Five workers were replaced within ten minutes, as each counts when it starts."""
    for _ in range(5):
        RequestMetrics(made.aggregator.service_counters).replaced()


@state("LogRemoved")
def log_removed(folder: Path) -> Timeline:
    """A script removes what it takes for temporary files."""
    with scraped(folder) as found:
        made = found.deployment
        made.verdicts(made.report("theme"))
        found.scrape(0)
        (folder / "store.db-wal").unlink()
        made.verdicts(made.report("theme"))
        made.verdicts(made.report("theme"))
        found.scrape(10 * MINUTE)
    return found.timeline


@acted("OverBudget", twice=True)
def over_budget(made: Deployment) -> None:
    """A slot that the definition does not grant."""
    made.verdicts(made.report("theme", slot=9))


@acted("MalformedStale", twice=True)
def malformed(made: Deployment) -> None:
    """A segment that the definition does not have."""
    made.verdicts(made.report("theme", segment=9))


@state("PoisoningTestFailed")
def poisoning_test_failed(folder: Path) -> Timeline:
    """Three hundred devices that all say the same."""
    with scraped(folder) as found:
        made = found.deployment
        pack = made.series("theme").collection.pack
        honest = [made.report("theme", message=pack(number % 3)) for number in range(60)]
        made.verdicts(*honest, made.report("alone"))
        found.scrape(0)
        made.verdicts(*(made.report("theme", message=pack(0)) for _ in range(300)))
        found.scrape(MINUTE)
    return found.timeline


@state("BackupOld")
def backup_old(folder: Path) -> Timeline:
    """A backup is made, and none for 27 hours."""
    with scraped(folder) as found:
        found.scrape(0)
    (first,) = found.timeline.scrapes
    backed_up = Scrape(0, [*first.samples, Sample(BACKUP_METRIC, {}, 0.0)])
    return Timeline([backed_up], fired=27 * HOUR)


@acted("ReleasesLocked")
def releases_locked(made: Deployment) -> None:
    """As `store restore` leaves them."""
    lock_releases(made.aggregator.store, "restored")


@state("Down")
def down(folder: Path) -> Timeline:
    """Nobody answers: then Prometheus has its own figure alone."""
    with scraped(folder) as found:
        found.scrape(0)
    found.timeline.add(10 * MINUTE, [Sample(UP, {"job": "veilcount"}, 0)])
    return found.timeline


@state("NotScraped")
def not_scraped(folder: Path) -> Timeline:
    """Prometheus has lost its targets: there is no figure at all, not even its own."""
    with scraped(folder) as found:
        found.scrape(0)
    found.timeline.add(10 * MINUTE, [])
    return found.timeline


# -- an issuer -------------------------------------------------------------------------------------


ISSUER_UP = Sample(UP, {"job": "veilcount-issuer"}, 1)


def issuer_figures(folder: Path, *problems: str, unpublished: int = 0) -> list[Sample]:
    """Return what an issuer exports after it has refused requests for these reasons."""
    with closing(open_store(f"sqlite:///{folder}/issuer.db", make=True)) as store:
        metrics = IssuanceMetrics(store)
        metrics.issued(FINGERPRINT, 4)
        for problem in problems:
            metrics.refused(problem)
        metrics.flush()
        exposition = "".join(metrics.exposition({FINGERPRINT: unpublished}))
    return [ISSUER_UP, *read(exposition)]


@state("IssuerDown")
def issuer_down(_: Path) -> Timeline:
    timeline = Timeline()
    timeline.add(0, [ISSUER_UP])
    timeline.add(10 * MINUTE, [ISSUER_UP._replace(value=0)])
    return timeline


@state("IssuerUnavailable")
def issuer_unavailable(folder: Path) -> Timeline:
    """Its store is away, and each account hears 503."""
    timeline = Timeline()
    for at in (0, 10 * MINUTE):
        timeline.add(at, issuer_figures(folder, "unavailable"))
    return timeline


@state("IssuerUnpublished")
def issuer_unpublished(folder: Path) -> Timeline:
    timeline = Timeline()
    timeline.add(0, issuer_figures(folder))
    timeline.add(10 * MINUTE, issuer_figures(folder, unpublished=1))
    return timeline


@state("NoAnalysis", slow=True)
def no_analysis(folder: Path) -> Timeline:
    """The processes that compute hang: analysts hear 503."""
    url, timeline = f"sqlite:///{folder}/store.db", Timeline()
    with closing(open_store(url, make=True)) as store:
        _, key = create_key(store, Role.ANALYST, "prometheus", datetime.now(UTC))
    with Server(url, folder) as server:
        for at, how in ((0, signal.SIGCONT), (10 * MINUTE, signal.SIGSTOP)):
            for pid in server.analysis():
                os.kill(pid, how)
            time.sleep(ALIVE_SECONDS + 1)
            reply = server.ask("GET", "/metrics", headers={"Authorization": f"Bearer {key}"})
            timeline.add(at, list(read(reply.text)))
        for pid in server.analysis():
            os.kill(pid, signal.SIGCONT)
    return timeline
