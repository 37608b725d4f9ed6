"""Rules on a real server: an event when one begins to fire, and one when it is over."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from veilcount_aggregator.operate.cli.query_source import Server
from veilcount_aggregator.operate.cli.watch import RunningServer
from veilcount_aggregator.operate.watch import Watcher, WatchEvent, WatchRules
from veilcount_aggregator.records.api_keys import Role
from veilcount_analysis.errors import QueryError
from veilcount_serving.errors import SettingsError

from ...queries.simulated_reports import FILE, LISTS, counted, send
from ...web.api.deployment_fixtures import Deployment, deployment
from ..cli.server_fixtures import listening

NOW = datetime(2026, 12, 5, tzinfo=UTC)


@pytest.fixture
def stocked(tmp_path: Path) -> Iterator[Deployment]:
    with deployment(tmp_path, now=NOW) as made:
        made.push(FILE, **LISTS)
        yield made


@pytest.fixture
def there(stocked: Deployment) -> Iterator[RunningServer]:
    with listening(stocked.app.wsgi_app) as url:
        yield RunningServer(Server(url, stocked.key(Role.ANALYST)))


def rules(tmp_path: Path, *written: str, head: str = "") -> WatchRules:
    tables = "".join(f'[[rule]]\nname = "rule {n}"\n{text}\n' for n, text in enumerate(written))
    (tmp_path / "rules.toml").write_text(f"{head}\n{tables}")
    return WatchRules.load(tmp_path / "rules.toml")


def states(events: Iterator[WatchEvent]) -> list[tuple[str, str]]:
    return [(event.rule, event.state) for event in events]


def test_an_estimate_fires_once_its_whole_interval_is_past_the_bound(
    stocked: Deployment, there: RunningServer, tmp_path: Path
) -> None:
    """And once more when that is over: in the latest month, at every look."""
    rule = 'collection = "theme"\nestimate = "dark > 0.5"\nby = "month"'
    watcher = Watcher(rules(tmp_path, rule).checks())
    counted(send(stocked, "theme", [10, 12, 10], period=2))
    assert states(watcher.look(there, 0, NOW)) == []

    counted(send(stocked, "theme", [500, 4000, 500], period=2, seed=2))
    (event,) = watcher.look(there, 60, NOW)
    assert states(watcher.look(there, 120, NOW)) == []

    counted(send(stocked, "theme", [9000, 0, 0], period=2, seed=3))
    (over,) = watcher.look(there, 180, NOW)
    assert (event.state, over.state) == ("firing", "resolved")
    assert "dark is above 0.5" in event.text
    assert event.at == NOW.isoformat(timespec="seconds")


def test_a_budget_is_low_in_the_newest_released_period(
    stocked: Deployment, there: RunningServer, tmp_path: Path
) -> None:
    check = rules(tmp_path, 'collection = "curated"\nbudget = 0.5').checks()
    watcher = Watcher(check)
    release = {"query": "histogram"}
    for epsilon, expected in (("0.4", []), ("0.2", [("rule 0", "firing")])):
        there.server.post("curated", "releases", release | {"epsilon": epsilon})
        assert states(watcher.look(there, 0, NOW)) == expected


def test_rules_that_cannot_be_checked_are_an_event_too(
    stocked: Deployment, there: RunningServer, tmp_path: Path
) -> None:
    """After a second round; the others are checked, and the end is an event as well."""
    quiet = 'collection = "theme"\nsilent = "1h"'
    missing = 'collection = "nothing"\nestimate = "dark > 0.5"'
    watcher = Watcher(rules(tmp_path, missing, quiet).checks())
    assert states(watcher.look(there, 0, NOW)) == []
    events = list(watcher.look(there, 3600, NOW))
    assert states(iter(events)) == [("rule 1", "firing"), ("aggregator", "firing")]
    assert 'rule 0: no collection is named "nothing"' in events[1].text

    away = RunningServer(Server("http://127.0.0.1:1", "key"))
    watcher = Watcher(rules(tmp_path, quiet).checks())
    looked = [states(watcher.look(each, 0, NOW)) for each in (there, away, away, there)]
    assert looked == [[], [], [("aggregator", "firing")], [("aggregator", "resolved")]]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('collection = "theme"', "give one of estimate, silent, budget"),
        ('collection = "theme"\nsilent = "1h"\nbudget = 0.1', "give one of estimate"),
        ('collection = "theme"\nsilent = "an hour"', "give a time such as 30m, 6h or 2d"),
        ('collection = "theme"\nbudget = 20', "give a share of the budget, such as 0.2"),
        ('collection = "theme"\nestimate = "dark"', "give a value, > or <, and a bound"),
        ('collection = "theme"\nsilence = "1h"', "silence"),
        ("collection = 3", "Expected `str`, got `int`"),
        ("collection = ", "not readable TOML"),
        ('collection = "theme"\nsilent = "1h"\n[[rule]]\nname = "rule 0"', "name of its own|rule"),
    ],
)
def test_a_wrong_rule_is_named_with_the_fix(tmp_path: Path, text: str, why: str) -> None:
    with pytest.raises((SettingsError, QueryError), match=why):
        rules(tmp_path, text).checks()


def test_a_wrong_webhook_is_refused_and_never_printed(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="give an address") as caught:
        rules(tmp_path, head='rule = []\nwebhook = "hooks.example.org/secret"')

    assert "secret" not in str(caught.value)
