"""States of a store in which alerts fire: its health, retention, backups and releases."""

from __future__ import annotations

import re
import resource
import secrets
from datetime import timedelta
from pathlib import Path
from threading import Timer
from unittest.mock import patch

from veilcount_aggregator.records.clock_confirmation import confirm_day
from veilcount_aggregator.releases.store_confirmation import RegisteredJournal
from veilcount_aggregator.store.records import update_records
from veilcount_aggregator.store.redis import shard_health
from veilcount_aggregator.store.redis.identity import RECORDS_BASE
from veilcount_aggregator.store.redis.store import RedisStore
from veilcount_aggregator.store.restore_lock import lock_releases
from veilcount_aggregator.store.retention.retention_guard import DROPPED
from veilcount_aggregator.store.sqlite.store import SqliteStore
from veilcount_shared.report import Batch

from ...aggregator.web.api.deployment_fixtures import Deployment
from ...redis_cluster import RedisCluster
from ..server import wait_until
from .alert_timelines import HOUR, MINUTE, Timeline, acted, on_redis, scraped, state
from .files import unit
from .promtool import Sample, Scrape

STALL_SECONDS = 1.5
#: the unit that makes backups records their time
(BACKUP_METRIC,) = re.findall(
    r'echo "(\w+) ', "".join(unit("veilcount-backup.service")["ExecStartPost"])
)


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
