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
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Timer
from unittest.mock import patch

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

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
from veilcount_shared.shuffling import part
from veilcount_shared.shuffling.batch_record import BatchRecord, BatchState

from ...aggregator.intake.shuffled_batches.batch_fixtures import AFTER_GRACE, TestShuffler
from ...aggregator.intake.shuffled_batches.batch_fixtures import FILE as BATCHES
from ...aggregator.web.api.deployment_fixtures import Deployment
from ...redis_cluster import RedisCluster
from ..server import Server, wait_until
from .alert_timelines import DAY, HOUR, MINUTE, UP, Timeline, acted, on_redis, scraped, state
from .files import unit
from .promtool import Sample, Scrape, read

STALL_SECONDS = 1.5
FINGERPRINT = "a" * 64  # of a collection with tokens
#: the unit that makes backups records their time
(BACKUP_METRIC,) = re.findall(
    r'echo "(\w+) ', "".join(unit("veilcount-backup.service")["ExecStartPost"])
)


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


def unsafe(alert: str, since: float) -> None:
    """Register a Redis that is set so that no report would be kept safely: devices hear 503."""

    @state(alert)
    def timeline(folder: Path) -> Timeline:
        with on_redis(folder) as (found, redis):
            made = found.deployment
            for at in (0, 10 * MINUTE):
                if at >= since:
                    redis.ask("CONFIG", "SET", "appendfsync", "everysec")
                    assert made.send(Batch((made.report("theme"),))).status == 503
                    made.clocks.passed += MINUTE
                found.scrape(at)
        return found.timeline


unsafe("StoreUnavailable", since=0)
unsafe("NotDurable", since=10 * MINUTE)  # while everything runs: the figures go on, and say so


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


def limited(alert: str, *limits: str) -> None:
    """Register the state of a Redis whose `maxmemory` is lowered."""

    @state(alert)
    def timeline(folder: Path) -> Timeline:
        with (
            patch.object(shard_health, "PROBE_SECONDS", 0.0),  # each scrape writes
            on_redis(folder) as (found, redis),
        ):
            for at, limit in zip((0, MINUTE), limits, strict=True):
                redis.ask("CONFIG", "SET", "maxmemory", limit)
                found.scrape(at)
            redis.ask("CONFIG", "SET", "maxmemory", "0")
        return found.timeline


limited("NotWritable", "0", "1")  # it may hold no more: it refuses writes, and answers reads
limited("CountersMemory", "1gb", "1kb")  # the definitions were admitted before


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


@acted("SecondBatch", twice=True)
def second_batch(made: Deployment) -> None:
    """A shuffler that was restored hands over what it has handed over before."""
    shuffler = _shuffler(made)
    reports = [shuffler.seal(0), shuffler.seal(1)]
    (first,), (second,) = (
        shuffler.batch(reports, batch_id=bytes([number]) * 16) for number in (1, 2)
    )
    assert [shuffler.send(part).status for part in (first, second)] == [200, 409]


@acted("RecordDiffers", twice=True)
def record_differs(made: Deployment) -> None:
    """A shuffler signs another number of reports than its parts have."""
    shuffler = _shuffler(made)
    (part,) = shuffler.batch([shuffler.seal(0), shuffler.seal(1)])
    head = part.head
    numbers = (head.reports + 1, head.covers, head.digest)
    record = BatchRecord(BatchState.HANDED_OVER, head.crowd_id, head.period, *numbers)
    shuffler.send(part)
    assert shuffler.send_record(shuffler.sign(record)).problem == "record-differs"


@state("BatchIncomplete")
def batch_incomplete(folder: Path) -> Timeline:
    """The second of two parts does not come."""
    with scraped(folder) as found, patch.object(part, "PART_REPORTS", 2):
        shuffler = _shuffler(found.deployment)
        parts = shuffler.batch([shuffler.seal(number % 2) for number in range(3)])
        found.scrape(0)
        assert shuffler.send(parts[0]).status == 200
        found.scrape(HOUR)
        found.scrape(2 * DAY)
    return found.timeline


_SIGNER = Ed25519PrivateKey.generate()


def _shuffler(made: Deployment) -> TestShuffler:
    made.push(BATCHES)
    made.clocks.now = AFTER_GRACE
    return TestShuffler(made, _SIGNER)


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
        for _ in range(2):
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


def gone(alert: str, *left: Sample) -> None:
    """Register the state in which only this is left of all figures."""

    @state(alert)
    def timeline(folder: Path) -> Timeline:
        with scraped(folder) as found:
            found.scrape(0)
        found.timeline.add(10 * MINUTE, [*left])
        return found.timeline


gone("Down", Sample(UP, {"job": "veilcount"}, 0))  # nobody answers: Prometheus has its own figure
gone("NotScraped")  # Prometheus has lost its targets, and has not even that


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
    timeline = Timeline([Scrape(0, [ISSUER_UP])])
    timeline.add(10 * MINUTE, [ISSUER_UP._replace(value=0)])
    return timeline


def issuer_after(alert: str, *problems: str, unpublished: int = 0) -> None:
    """Register an issuer that refuses for these reasons, and has then so much to publish."""

    @state(alert)
    def timeline(folder: Path) -> Timeline:
        timeline = Timeline()
        for at, count in ((0, 0), (10 * MINUTE, unpublished)):
            timeline.add(at, issuer_figures(folder, *problems, unpublished=count))
        return timeline


issuer_after("IssuerUnavailable", "unavailable")  # its store is away: each account hears 503
issuer_after("IssuerUnpublished", unpublished=1)


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
