"""The alerts of Prometheus: each watches what is there, and fires when it should."""

from __future__ import annotations

import json
import re
import shutil
from collections import defaultdict
from pathlib import Path

import pytest

from veilcount_aggregator.records.api_keys import Role
from veilcount_shared.oblivious_http.encapsulation import REQUEST_TYPE

from ...aggregator.web.api.deployment_fixtures import FILE, deployment
from ...redis_server import RedisServer
from .alert_timelines import SLOW, STATES, Scraped
from .files import DEPLOY, documents
from .process_states import issuer_figures
from .promtool import Sample, fires, is_true, meets, run_promtool
from .report_states import gateway_key, record_differs, second_batch
from .shuffler_states import shuffler_figures
from .store_states import BACKUP_METRIC

GROUP = documents("alerts.yml")[0]["groups"][0]
RULES = {rule["alert"]: rule for rule in GROUP["rules"]}
SELECTOR = re.compile(r"\b(veilcount_\w+|up)\b(?:\{([^}]*)\})?")
CONDITION = re.compile(r'(\w+)(=~|!=|=)"([^"]*)"')
ROW = re.compile(r"^\| \*\*([^*]+)\*\* \| `([^`]+)` \|", re.MULTILINE)
NAMED = re.compile(r"^\| \*\*([^*]+)\*\* \|", re.MULTILINE)


@pytest.fixture(scope="module")
def eventful(tmp_path_factory: pytest.TempPathFactory) -> list[Sample]:
    """The figures of a deployment to which everything has happened, and of its backups."""
    folder = tmp_path_factory.mktemp("eventful")
    with deployment(folder, FILE, max_counter_memory=1 << 30) as deployed:
        scraped = Scraped(deployed, deployed.key(Role.ANALYST))
        deployed.verdicts(deployed.report("theme"), deployed.report("theme", fingerprint="0" * 64))
        assert deployed.ask("POST", "/v1/ohttp", bytes(99), kind=REQUEST_TYPE).status == 400
        deployed.aggregator.store.set_read_only(on=True)
        with pytest.raises(AssertionError, match="unavailable"):
            deployed.verdicts(deployed.report("theme"))
        deployed.aggregator.store.set_read_only(on=False)
        deployed.key(Role.DEVICE)
        with pytest.raises(AssertionError, match="no-key"):
            deployed.verdicts(deployed.report("theme"))
        gateway_key(deployed)
        scraped.scrape(0)
    redis = RedisServer(tmp_path_factory.mktemp("redis"))
    with deployment(folder, FILE, url=redis.url) as deployed:
        on_redis = Scraped(deployed, deployed.key(Role.ANALYST), scraped.timeline)
        second_batch(deployed)
        record_differs(deployed)
        on_redis.scrape(1)
    redis.kill()
    scrapes = scraped.timeline.scrapes
    return [
        Sample(BACKUP_METRIC, {}, 1.0),
        *issuer_figures(folder, "unavailable"),
        *shuffler_figures(folder / "shuffler"),
        *(each for scrape in scrapes for each in scrape.samples),
    ]


@pytest.mark.parametrize("name", RULES)
def test_each_alert_watches_what_is_there(name: str, eventful: list[Sample]) -> None:
    """A name or a label that nobody exports would be silent for ever."""
    rule, labels = RULES[name], {label for each in eventful for label in each.labels}
    summary = rule["annotations"]["summary"]
    selectors = SELECTOR.findall(rule["expr"])
    for metric, conditions in selectors:
        chosen = [each for each in eventful if each.name == metric]
        for condition in CONDITION.findall(conditions):
            chosen = [each for each in chosen if meets(each, *condition)]

        assert chosen, f"{metric}{{{conditions}}} chooses nothing"
    assert selectors
    assert rule["labels"]["severity"] in {"page", "ticket"}
    assert summary.endswith((".", "?"))
    assert set(re.findall(r"\$labels\.(\w+)", summary)) <= labels
    for grouped in re.findall(r"(?:by|on) \(([\w, ]+)\)", rule["expr"]):
        assert set(grouped.split(", ")) <= labels


DASHBOARD = json.loads((DEPLOY / "grafana.json").read_text())
PANELS = {panel["title"]: panel for panel in DASHBOARD["panels"] if panel["type"] != "row"}
METRICS = re.compile(r"^\| (`veilcount_\w+`(?:, `veilcount_\w+`)*) \|([^|]*)\|", re.MULTILINE)
QUOTED = re.compile(r"`(\w+)`")
#: metric -> labels, as they are documented
DOCUMENTED = {
    name: {*QUOTED.findall(labels)}
    for names, labels in METRICS.findall((DEPLOY.parent / "docs/operating.md").read_text())
    for name in QUOTED.findall(names)
}


def test_the_documented_metrics_are_those_that_are_exported(eventful: list[Sample]) -> None:
    exported = defaultdict[str, set[str]](set)
    for each in eventful:
        if each.name.startswith("veilcount_") and each.name != BACKUP_METRIC:
            exported[re.sub("_(bucket|sum|count)$", "", each.name)] |= each.labels.keys()

    silent = {"veilcount_losses_total", "veilcount_analysis_refused_total"}  # none happened here
    assert exported == {name: each for name, each in DOCUMENTED.items() if name not in silent}


@pytest.mark.parametrize("title", PANELS)
def test_each_panel_of_the_dashboard_shows_what_is_there(title: str) -> None:
    """A name or a label that nobody exports would be an empty panel for ever."""
    for target in PANELS[title]["targets"]:
        named = {*re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])}
        for grouped in re.findall(r"by \(([\w, ]+)\)", target["expr"]):
            named |= {*grouped.split(", ")}
        selectors = SELECTOR.findall(target["expr"])
        labels = set[str]()
        for metric, conditions in selectors:
            labels |= DOCUMENTED[re.sub("_bucket$", "", metric)]
            named |= {label for label, *_ in CONDITION.findall(conditions)}
        assert selectors
        assert named <= labels, target


def test_the_dashboard_shows_every_metric() -> None:
    expressions = " ".join(each["expr"] for panel in PANELS.values() for each in panel["targets"])
    shown = {re.sub("_bucket$", "", metric) for metric, _ in SELECTOR.findall(expressions)}

    assert shown == DOCUMENTED.keys()


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.full) if name in SLOW else name for name in RULES]
)
def test_each_alert_fires_in_the_state_that_it_is_for(name: str, tmp_path: Path) -> None:
    """And is silent before: on what a real deployment exports, read at the times of a timeline."""
    assert name in STATES, f"{name}: no state of a deployment in which it fires: add one"
    rule, timeline = RULES[name], STATES[name](tmp_path)

    assert not is_true(rule, timeline.scrapes, timeline.quiet, tmp_path)
    assert fires(rule, timeline.scrapes, timeline.fired, tmp_path)


#: rules as they were, with which the tests in Prometheus's own format must fail
EARLIER = {
    "Down": 'up{job="veilcount"} == 0',
    "NotScraped": 'up{job="veilcount"} == 2',
    "IntakeDrop": 'sum(rate(veilcount_verdicts_total{verdict="counted"}[1h]))'
    ' < 0.5 * sum(rate(veilcount_verdicts_total{verdict="counted"}[1h] offset 1w))',
    "IssuerDown": 'up{job="veilcount-issuer"} == 0',
    "ShufflerDown": 'up{job="veilcount-shuffler"} == 0',
}


TESTS = Path(__file__).with_name("alerts_test.yml")


def passes(folder: Path, **expressions: str) -> bool:
    """Run `alerts_test.yml` over the rules that it names, some of them with another expression."""
    rules = [
        rule | {"expr": expressions.get(name, rule["expr"])}
        for name, rule in RULES.items()
        if f"alertname: {name}" in TESTS.read_text()
    ]
    (folder / "alerts.yml").write_text(json.dumps({"groups": [GROUP | {"rules": rules}]}))
    shutil.copy(TESTS, folder)
    return run_promtool("test", "rules", str(folder / TESTS.name)).returncode == 0


def test_alerts_fire_where_figures_are_missing_or_come_and_go(tmp_path: Path) -> None:
    assert passes(tmp_path)


@pytest.mark.parametrize("name", EARLIER)
def test_an_earlier_rule_is_detected(name: str, tmp_path: Path) -> None:
    assert not passes(tmp_path, **{name: EARLIER[name]})


def test_the_documented_alerts_are_those_of_the_rules() -> None:
    """The table of docs/operating.md has the same names and the same expressions."""
    page = (DEPLOY.parent / "docs" / "operating.md").read_text(encoding="utf-8")
    rings = {name: "".join(rule["expr"].split()) for name, rule in RULES.items()}
    rows = ROW.findall(page.replace("\\|", "|"))
    ours = {_name(words): "".join(expr.split()) for words, expr in rows}
    both = ours.keys() & rings.keys()

    assert {name: ours[name] for name in both} == {name: rings[name] for name in both}
    assert rings.keys() - both == {"MalformedStale"}  # its row has words for the expression
    assert rings.keys() <= {_name(words) for words in NAMED.findall(page)}
    assert STATES.keys() <= rings.keys()


def _name(words: str) -> str:
    """Return the name of the alert that a row of the table is of."""
    return "".join(word.strip(",").capitalize() for word in words.split())
