"""The alerts of Prometheus: each watches what is there, and rings when it should."""

from __future__ import annotations

import re
import resource
import secrets
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.aggregator.web.world import FILE, World, world
from tests.redis_cluster import RedisCluster
from tests.redis_server import RedisServer
from tests.system.deploy.files import DEPLOY, documents, unit
from tests.system.server import wait_until
from veilcount_aggregator.journal_registry import Registered
from veilcount_aggregator.keys import Role
from veilcount_aggregator.retention import DROPPED, confirm
from veilcount_aggregator.shelf import change
from veilcount_aggregator.store.lock import lock, unlock
from veilcount_aggregator.store.redis.engine import RedisStore
from veilcount_aggregator.store.redis.root import SHELF
from veilcount_shared.report import Report

GROUP = documents("alerts.yml")[0]["groups"][0]
RULES = {rule["alert"]: rule for rule in GROUP["rules"]}
SELECTOR = re.compile(r"\b(veilcount_\w+|up)\b(?:\{([^}]*)\})?")
CONDITION = re.compile(r'(\w+)(=~|!=|=)"([^"]*)"')
ROW = re.compile(r"^\| \*\*([^*]+)\*\* \| `([^`]+)` \|", re.MULTILINE)
VERDICTS = "veilcount_verdicts_total"
REWRITING = "veilcount_shard_aof_rewriting"
PROMETHEUS = 'up{job="veilcount"} 1'  # its own, for each place that it asks


class Series(NamedTuple):
    """One line of an exposition."""

    name: str
    labels: dict[str, str]
    value: float

    def meets(self, condition: tuple[str, str, str]) -> bool:
        """Whether a selector's condition chooses it."""
        label, how, asked = condition
        if how == "=~":
            return bool(re.fullmatch(asked, self.labels.get(label, "")))
        return label in self.labels and (self.labels[label] == asked) == (how == "=")


def read(exposition: str) -> Iterator[Series]:
    """Yield the lines of an exposition."""
    for line in exposition.splitlines():
        if match := re.fullmatch(r"(\w+)(?:\{(.*)\})? (\S+)", line):
            labels = re.findall(r'(\w+)="([^"]*)"', match[2] or "")
            yield Series(match[1], dict(labels), float(match[3]))


def metrics(deployed: World, key: str) -> list[Series]:
    """Return what Prometheus would read."""
    answer = deployed.ask("GET", "/metrics", key=key)
    assert answer.status == 200
    return list(read(answer.body.decode()))


def value(found: list[Series], name: str, **labels: str) -> float:
    """Return one figure."""
    (number,) = [each.value for each in found if (each.name, each.labels) == (name, labels)]
    return number


@pytest.fixture(scope="module")
def eventful(tmp_path_factory: pytest.TempPathFactory) -> list[Series]:
    """The figures of a deployment to which everything has happened, and of its backups."""
    folder = tmp_path_factory.mktemp("eventful")
    with world(folder, FILE, max_store_memory=1 << 30) as deployed:
        deployed.verdicts(deployed.report("theme"), deployed.report("theme", fingerprint="0" * 64))
        store = deployed.aggregator.store
        store.fence(on=True)
        deployed.ask("POST", "/v1/reports", b"{}")
        with pytest.raises(AssertionError, match="unavailable"):
            deployed.verdicts(deployed.report("theme"))
        store.fence(on=False)
        key = deployed.key(Role.ANALYST)
        deployed.key(Role.DEVICE)
        with pytest.raises(AssertionError, match="no-key"):
            deployed.verdicts(deployed.report("theme"))
        found = metrics(deployed, key)
    redis = RedisServer(tmp_path_factory.mktemp("redis"))
    with world(tmp_path_factory.mktemp("on-redis"), FILE, url=redis.url) as deployed:
        found += metrics(deployed, deployed.key(Role.ANALYST))
    redis.kill()
    (told,) = re.findall(
        r'echo "(\w+) ', "".join(unit("veilcount-backup.service")["ExecStartPost"])
    )
    return [*found, *read(f"{told} 1"), *read(PROMETHEUS)]


@pytest.mark.parametrize("name", RULES)
def test_each_alert_watches_what_is_there(name: str, eventful: list[Series]) -> None:
    """A name or a label that nobody exports would be silent for ever."""
    selectors = SELECTOR.findall(RULES[name]["expr"])
    for metric, conditions in selectors:
        chosen = [each for each in eventful if each.name == metric]
        for condition in CONDITION.findall(conditions):
            chosen = [each for each in chosen if each.meets(condition)]

        assert chosen, f"{metric}{{{conditions}}} chooses nothing"
    assert selectors


@pytest.mark.parametrize("name", RULES)
def test_each_alert_says_what_is_so_and_by_what_labels(name: str, eventful: list[Series]) -> None:
    rule = RULES[name]
    labels = {label for each in eventful for label in each.labels}

    assert rule["labels"]["severity"] in {"page", "ticket"}
    assert rule["annotations"]["summary"].endswith((".", "?"))
    assert set(re.findall(r"\$labels\.(\w+)", rule["annotations"]["summary"])) <= labels
    for grouped in re.findall(r"(?:by|on) \(([\w, ]+)\)", rule["expr"]):
        assert set(grouped.split(", ")) <= labels


def test_what_is_told_for_the_night_is_what_rings() -> None:
    """The table of docs/operating.md has the same names and the same expressions."""
    rows = ROW.findall((DEPLOY.parent / "docs" / "operating.md").read_text(encoding="utf-8"))
    told = {"".join(word.capitalize() for word in name.split()): expr for name, expr in rows}
    rings = {name: "".join(rule["expr"].split()) for name, rule in RULES.items()}
    ours = {name: "".join(expr.split()) for name, expr in told.items() if name in rings}

    assert {"Down", "IntakeDrop", "Slow", "NotDurable", "NoKey", "Full"} <= ours.keys()
    assert ours == {name: rings[name] for name in ours}


def test_a_store_that_is_fenced_and_releases_that_wait_are_told(tmp_path: Path) -> None:
    with world(tmp_path, FILE) as deployed:
        key, store = deployed.key(Role.ANALYST), deployed.aggregator.store
        before = metrics(deployed, key)
        lock(store, "why")
        store.fence(on=True)
        deployed.ask("GET", "/v1/plan", key=key)  # what is not written yet keeps nothing back
        during = metrics(deployed, key)
        store.fence(on=False)
        unlock(store)
        after = metrics(deployed, key)

    for name in ("veilcount_store_fenced", "veilcount_releases_locked"):
        assert [value(found, name) for found in (before, during, after)] == [0, 1, 0]


def test_a_store_that_is_nearly_full_rings(tmp_path: Path) -> None:
    """And one that is full to the half does not."""
    redis = RedisServer(tmp_path)
    with world(tmp_path, FILE, url=redis.url) as deployed:
        key = deployed.key(Role.ANALYST)
        with redis.connection() as asked:
            used = int(asked.info("memory")["used_memory"])
        shares = []
        for limit in (2 * used, used + (1 << 18)):
            redis.ask("CONFIG", "SET", "maxmemory", str(limit))
            found = metrics(deployed, key)
            memory = value(found, "veilcount_shard_memory_bytes", shard="0")
            shares.append(memory / value(found, "veilcount_shard_memory_limit_bytes", shard="0"))
    redis.kill()

    assert shares[0] < 0.8 < shares[1]
    assert "> 0.8 * veilcount_shard_memory_limit_bytes" in RULES["StoreMemory"]["expr"]


def test_a_redis_that_cannot_rewrite_its_file_rings(tmp_path: Path) -> None:
    """No file of it may be longer than a megabyte, and its content is three."""
    redis = RedisServer(tmp_path)
    name = "veilcount_shard_aof_failing"
    with world(tmp_path, FILE, url=redis.url) as deployed, redis.connection() as asked:
        key = deployed.key(Role.ANALYST)
        asked.set("large", secrets.token_bytes(3 << 20))
        asked.bgrewriteaof()
        wait_until(lambda: value(metrics(deployed, key), REWRITING, shard="0") == 0)
        before = value(metrics(deployed, key), name, shard="0")
        resource.prlimit(asked.info("server")["process_id"], resource.RLIMIT_FSIZE, (1 << 20,) * 2)
        asked.bgrewriteaof()
        wait_until(lambda: value(metrics(deployed, key), name, shard="0") == 1)
    redis.kill()

    assert before == 0


def test_a_shard_that_is_away_rings_alone(tmp_path: Path) -> None:
    """Counters over all shards pause, and it is said."""
    cluster = RedisCluster(tmp_path)
    with world(tmp_path, FILE, url=cluster.url) as deployed:
        key, store = deployed.key(Role.ANALYST), deployed.aggregator.store
        assert isinstance(store, RedisStore)
        whole = metrics(deployed, key)
        of_records = cluster.master_of(SHELF)
        masters = [cluster.master_of(base) for base in store.root.bases]
        away = next(shard for shard, master in enumerate(masters) if master is not of_records)
        masters[away].kill()
        parts = metrics(deployed, key)
    cluster.close()

    for found, complete in ((whole, 1), (parts, 0)):
        assert value(found, "veilcount_figures_complete") == complete
    totals = [{each.name for each in found} & {VERDICTS} for found in (whole, parts)]
    assert totals == [{VERDICTS}, set()]  # a sum of some would be a counter that falls
    up = [value(parts, "veilcount_shard_up", shard=str(shard)) for shard in range(len(masters))]
    assert up == [int(master is not masters[away]) for master in masters]
    assert value(parts, "veilcount_shard_up", shard="records") == 1


def test_a_clock_that_jumped_a_day_that_waits_and_what_was_dropped_are_told(
    tmp_path: Path,
) -> None:
    with world(tmp_path, FILE) as deployed:
        key, store = deployed.key(Role.ANALYST), deployed.aggregator.store
        confirm(store, deployed.clocks.now, "test")
        deployed.aggregator.look_at_clock()
        before = metrics(deployed, key)
        deployed.clocks.now += timedelta(days=40)
        deployed.aggregator.look_at_clock()
        store.commit([], {DROPPED: 7})
        during = metrics(deployed, key)

    expected = {
        "veilcount_clock_skew_seconds": [0, 40 * 86_400],
        "veilcount_retention_waiting": [0, 1],
        "veilcount_dropped_epochs_total": [0, 7],
    }
    for name, values in expected.items():
        assert [value(found, name) for found in (before, during)] == values


def test_journals_that_releases_wait_for_are_counted(tmp_path: Path) -> None:
    with world(tmp_path, FILE) as deployed:
        key, store = deployed.key(Role.ANALYST), deployed.aggregator.store
        before = metrics(deployed, key)
        gone = Registered("0123", "gone", "of-a-store-before").record()
        change(store, lambda: ([gone], None))
        during = metrics(deployed, key)
        change(store, lambda: ([gone._replace(value=None)], None))
        after = metrics(deployed, key)

    name = "veilcount_release_journals_pending"
    assert [value(found, name) for found in (before, during, after)] == [0, 1, 0]


def test_a_crowd_that_no_honest_one_would_be_is_told(tmp_path: Path) -> None:
    """All say the same; at epsilon 1 no answer makes that likely. Others are not suspected."""
    with world(tmp_path, FILE) as deployed:
        key = deployed.key(Role.ANALYST)

        def said(number: int) -> Report:
            message = deployed.series("theme").collection.pack(number % 3)
            return deployed.report("theme", message=message)

        deployed.verdicts(*(said(number) for number in range(60)), deployed.report("alone"))
        honest = metrics(deployed, key)
        deployed.verdicts(*(said(0) for _ in range(300)))
        poisoned = metrics(deployed, key)

    name = "veilcount_suspicious"
    assert [value(found, name, collection="theme") for found in (honest, poisoned)] == [0, 1]
    assert value(poisoned, name, collection="alone") == 0


def test_counters_that_fill_their_memory_ring(tmp_path: Path) -> None:
    """Before reports are refused: of a series and of the store, each at four fifths."""
    with world(tmp_path, FILE, max_series_memory=400, max_store_memory=1200) as deployed:
        key = deployed.key(Role.ANALYST)
        before = metrics(deployed, key)
        deployed.verdicts(deployed.report("theme"))
        one = metrics(deployed, key)
        deployed.verdicts(deployed.report("alone"), deployed.report("opened"))
        three = metrics(deployed, key)

    def rings(found: list[Series], of: str, **labels: str) -> bool:
        limit = value(found, f"veilcount_{of}_memory_limit_bytes", **labels)
        return value(found, f"veilcount_{of}_memory_bytes", **labels) > 0.8 * limit

    theme = {"collection": "theme"}
    assert [rings(found, "series", **theme) for found in (before, one)] == [False, True]
    assert [rings(found, "store") for found in (before, one, three)] == [False, False, True]
