"""The alerts of Prometheus: each watches what is there, and rings when it should."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.aggregator.api.deployment_fixtures import FILE, Deployment, deployment
from tests.redis_cluster import RedisCluster
from tests.redis_server import RedisServer
from tests.system.deploy.alert_states import SLOW, STATES
from tests.system.deploy.files import DEPLOY, documents, unit
from tests.system.deploy.promql import Sample, fires, meets, read
from veilcount_aggregator.auth.api_keys import Role
from veilcount_aggregator.store import Record
from veilcount_aggregator.store.redis.identity import RECORDS_BASE
from veilcount_aggregator.store.redis.store import RedisStore
from veilcount_aggregator.store.restore_lock import KIND, RELEASES, lock_releases
from veilcount_shared.report import Report

GROUP = documents("alerts.yml")[0]["groups"][0]
RULES = {rule["alert"]: rule for rule in GROUP["rules"]}
SELECTOR = re.compile(r"\b(veilcount_\w+|up)\b(?:\{([^}]*)\})?")
CONDITION = re.compile(r'(\w+)(=~|!=|=)"([^"]*)"')
ROW = re.compile(r"^\| \*\*([^*]+)\*\* \| `([^`]+)` \|", re.MULTILINE)
NAMED = re.compile(r"^\| \*\*([^*]+)\*\* \|", re.MULTILINE)
VERDICTS = "veilcount_verdicts_total"
PROMETHEUS = 'up{job="veilcount"} 1'  # its own, for each place that it asks


def metrics(deployed: Deployment, key: str) -> list[Sample]:
    """Return what Prometheus would read."""
    answer = deployed.ask("GET", "/metrics", key=key)
    assert answer.status == 200
    return list(read(answer.body.decode()))


def value(found: list[Sample], name: str, **labels: str) -> float:
    """Return one figure."""
    (number,) = [each.value for each in found if (each.name, each.labels) == (name, labels)]
    return number


@pytest.fixture(scope="module")
def eventful(tmp_path_factory: pytest.TempPathFactory) -> list[Sample]:
    """The figures of a deployment to which everything has happened, and of its backups."""
    folder = tmp_path_factory.mktemp("eventful")
    with deployment(folder, FILE, max_store_memory=1 << 30) as deployed:
        deployed.verdicts(deployed.report("theme"), deployed.report("theme", fingerprint="0" * 64))
        store = deployed.aggregator.store
        store.set_read_only(on=True)
        deployed.ask("POST", "/v1/reports", b"{}")
        with pytest.raises(AssertionError, match="unavailable"):
            deployed.verdicts(deployed.report("theme"))
        store.set_read_only(on=False)
        key = deployed.key(Role.ANALYST)
        deployed.key(Role.DEVICE)
        with pytest.raises(AssertionError, match="no-key"):
            deployed.verdicts(deployed.report("theme"))
        found = metrics(deployed, key)
    redis = RedisServer(tmp_path_factory.mktemp("redis"))
    with deployment(tmp_path_factory.mktemp("on-redis"), FILE, url=redis.url) as deployed:
        found += metrics(deployed, deployed.key(Role.ANALYST))
    redis.kill()
    (result,) = re.findall(
        r'echo "(\w+) ', "".join(unit("veilcount-backup.service")["ExecStartPost"])
    )
    return [*found, *read(f"{result} 1"), *read(PROMETHEUS)]


@pytest.mark.parametrize("name", RULES)
def test_each_alert_watches_what_is_there(name: str, eventful: list[Sample]) -> None:
    """A name or a label that nobody exports would be silent for ever."""
    selectors = SELECTOR.findall(RULES[name]["expr"])
    for metric, conditions in selectors:
        chosen = [each for each in eventful if each.name == metric]
        for condition in CONDITION.findall(conditions):
            chosen = [each for each in chosen if meets(each, *condition)]

        assert chosen, f"{metric}{{{conditions}}} chooses nothing"
    assert selectors


@pytest.mark.parametrize("name", RULES)
def test_each_alert_says_what_is_so_and_by_what_labels(name: str, eventful: list[Sample]) -> None:
    rule = RULES[name]
    labels = {label for each in eventful for label in each.labels}

    assert rule["labels"]["severity"] in {"page", "ticket"}
    assert rule["annotations"]["summary"].endswith((".", "?"))
    assert set(re.findall(r"\$labels\.(\w+)", rule["annotations"]["summary"])) <= labels
    for grouped in re.findall(r"(?:by|on) \(([\w, ]+)\)", rule["expr"]):
        assert set(grouped.split(", ")) <= labels


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.full) if name in SLOW else name for name in RULES],
)
def test_each_alert_fires_in_the_state_that_it_is_for(name: str, tmp_path: Path) -> None:
    """And is silent before: on what a real deployment exports, read at the times of a timeline."""
    assert name in STATES, f"{name}: no state of a deployment in which it fires: add one"
    expression = RULES[name]["expr"]
    timeline = STATES[name](tmp_path)

    assert not fires(expression, timeline.scrapes, timeline.quiet)
    assert fires(expression, timeline.scrapes, timeline.fired)


def test_no_state_is_of_an_alert_that_is_gone() -> None:
    assert STATES.keys() <= RULES.keys()


def test_the_documented_alerts_are_those_of_the_rules() -> None:
    """The table of docs/operating.md has the same names and the same expressions."""
    page = (DEPLOY.parent / "docs" / "operating.md").read_text(encoding="utf-8")
    rings = {name: "".join(rule["expr"].split()) for name, rule in RULES.items()}
    ours = {_name(words): "".join(expr.split()) for words, expr in ROW.findall(page)}

    both = ours.keys() & rings.keys()

    assert {name: ours[name] for name in both} == {name: rings[name] for name in both}
    assert rings.keys() - both == {"MalformedStale"}  # its row has words for the expression
    assert rings.keys() <= {_name(words) for words in NAMED.findall(page)}


def _name(words: str) -> str:
    """Return the name of the alert that a row of the table is of."""
    return "".join(word.strip(",").capitalize() for word in words.split())


def test_read_only_stores_and_waiting_releases_are_alerted(tmp_path: Path) -> None:
    with deployment(tmp_path, FILE) as deployed:
        key, store = deployed.key(Role.ANALYST), deployed.aggregator.store
        before = metrics(deployed, key)
        lock_releases(store, "why")
        store.set_read_only(on=True)
        deployed.ask("GET", "/v1/plan", key=key)  # what is not written yet keeps nothing back
        during = metrics(deployed, key)
        store.set_read_only(on=False)
        store.change_records(store.generation(), [Record(KIND, RELEASES, None)])
        after = metrics(deployed, key)

    for name in ("veilcount_store_read_only", "veilcount_releases_locked"):
        assert [value(found, name) for found in (before, during, after)] == [0, 1, 0]


def test_a_shard_that_is_away_rings_alone(tmp_path: Path) -> None:
    """The others are up; counters over all shards pause, and the figures say so."""
    cluster = RedisCluster(tmp_path)
    with deployment(tmp_path, FILE, url=cluster.url) as deployed:
        key, store = deployed.key(Role.ANALYST), deployed.aggregator.store
        assert isinstance(store, RedisStore)
        whole = metrics(deployed, key)
        of_records = cluster.master_of(RECORDS_BASE)
        masters = [cluster.master_of(base) for base in store.identity.bases]
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


def test_a_population_no_honest_one_resembles_is_alerted(tmp_path: Path) -> None:
    """All say the same; at epsilon 1 no answer makes that likely. Others are not suspected."""
    with deployment(tmp_path, FILE) as deployed:
        key = deployed.key(Role.ANALYST)

        def fake_report(number: int) -> Report:
            message = deployed.series("theme").collection.pack(number % 3)
            return deployed.report("theme", message=message)

        deployed.verdicts(*(fake_report(number) for number in range(60)), deployed.report("alone"))
        honest = metrics(deployed, key)
        deployed.verdicts(*(fake_report(0) for _ in range(300)))
        poisoned = metrics(deployed, key)

    name = "veilcount_poisoning_test_failed"
    assert [value(found, name, collection="theme") for found in (honest, poisoned)] == [0, 1]
    assert value(poisoned, name, collection="alone") == 0
