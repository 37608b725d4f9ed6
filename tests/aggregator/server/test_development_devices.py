"""Simulated devices of `veilcount dev`: real reports of made-up values, on no other server."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from math import sqrt
from pathlib import Path
from random import Random
from typing import NoReturn

import pytest

from veilcount_aggregator.errors import StoreUnavailable
from veilcount_aggregator.records.definitions import DefinitionSource
from veilcount_aggregator.server import development_devices
from veilcount_aggregator.server.development_devices import DevelopmentDevices, draw_value
from veilcount_aggregator.service import Aggregator
from veilcount_serving.errors import SettingsError
from veilcount_shared.domain import Choice
from veilcount_shared.schedule import period_at

from ...notice_definitions import KEY_FILES, TABLES, definitions_text
from ..web.api.deployment_fixtures import NOW, Deployment, deployment

DEVICES = 200
#: of which nobody sends a report straight to an aggregator
ELSEWHERE = {"token", "batched", "shuffled_number", "shuffled", "mixed"}
#: answered by a part of all people in each period
SELECTIVE = {"local", "events", "hidden", "removable"}
THEME = """
app = "acme"
[theme]
question = "Which theme?"
values = ["light", "dark", "system"]
epsilon = {epsilon}
unit = "month"
from = {first}
until = {last}
"""
OVER, LATER = ("2026-06-01", "2026-07-01"), ("2027-06-01", "2027-07-01")


@pytest.fixture
def development(tmp_path: Path) -> Iterator[Deployment]:
    with deployment(tmp_path, dev=True) as deployed:
        yield deployed


def theme(epsilon: int = 1, dates: tuple[str, str] = ("2026-11-01", "2027-11-01")) -> str:
    return THEME.format(epsilon=epsilon, first=dates[0], last=dates[1])


def test_they_answer_every_kind_of_question_in_the_running_period(development: Deployment) -> None:
    """Each report is counted, whoever's schedule does not select the period sends none; what
    travels another way is left out, by name.
    """
    development.aggregator.push(DefinitionSource(definitions_text(), dict(KEY_FILES)), "cli")
    lines = dict(DevelopmentDevices(DEVICES).answer(development.aggregator))

    assert lines.keys() == TABLES.keys()
    for name, line in lines.items():
        counts = development.aggregator.store.report_counts(development.series(name))
        running = period_at(development.series(name).collection, NOW)
        if name in ELSEWHERE:
            assert line.startswith("no simulated reports: ")
            assert not counts
            continue
        assert {period for period, *_ in counts} <= {running}
        assert line == f"{sum(counts.values())} reports of 200 simulated devices counted"
        if name in SELECTIVE:
            assert sum(counts.values()) < DEVICES
        else:
            assert sum(counts.values()) == DEVICES


def test_a_definition_is_answered_once_and_a_new_one_too(development: Deployment) -> None:
    devices = DevelopmentDevices(10)
    development.push(theme())
    first = list(devices.answer(development.aggregator))
    again = list(devices.answer(development.aggregator))
    development.push(theme(epsilon=2))
    edited = list(devices.answer(development.aggregator))

    assert first == edited == [("theme", "10 reports of 10 simulated devices counted")]
    assert again == []


@pytest.mark.parametrize("dates", [OVER, LATER])
def test_no_date_is_invented(development: Deployment, dates: tuple[str, str]) -> None:
    development.push(theme(dates=dates))
    ((_, line),) = DevelopmentDevices(10).answer(development.aggregator)

    assert line == f"no simulated reports: its campaign is from {dates[0]} until {dates[1]}"
    assert development.counted("theme") == 0


def test_any_other_server_is_refused(tmp_path: Path) -> None:
    with deployment(tmp_path, theme(), dev=False) as deployed:
        with pytest.raises(SettingsError, match="a development server alone: `veilcount dev"):
            list(DevelopmentDevices(10).answer(deployed.aggregator))

        assert deployed.counted("theme") == 0


def test_without_devices_nobody_answers(development: Deployment) -> None:
    development.push(theme())

    assert list(DevelopmentDevices(0).answer(development.aggregator)) == []


def unavailable(*_: object) -> NoReturn:
    raise StoreUnavailable("the disk is full")


def test_a_store_that_fails_is_named(
    development: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    development.push(theme())
    monkeypatch.setattr(Aggregator, "take", unavailable)
    ((_, line),) = DevelopmentDevices(10).answer(development.aggregator)

    assert line == "0 simulated reports counted, then: the disk is full"


def shares(draw: Random, size: int) -> list[float]:
    """Return the share of each of three values among so many that are drawn."""
    domain = Choice(("light", "dark", "system"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(development_devices, "_chance", draw)
        drawn = Counter(draw_value(domain) for _ in range(size))
    return [drawn[label] / size for label in domain.labels]


class Uniform(Random):
    """A source under which all values are alike."""

    def random(self) -> float:
        return sqrt(super().random())


def deviation(drawn: list[float], size: int) -> float:
    """Return the largest deviation from the stated shares, in standard errors."""
    stated = [sqrt((rank + 1) / 3) - sqrt(rank / 3) for rank in range(3)]
    return max(
        abs(share - exact) / sqrt(exact * (1 - exact) / size)
        for share, exact in zip(drawn, stated, strict=True)
    )


def test_the_first_value_is_the_most_frequent_by_the_stated_shares() -> None:
    """Within five standard errors: a false alarm once in 500,000 seeds; all alike is noticed."""
    assert deviation(shares(Random(1), 30_000), 30_000) < 5
    assert deviation(shares(Uniform(1), 30_000), 30_000) > 50
