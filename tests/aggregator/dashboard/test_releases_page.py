"""The releases tab: a dry run that reads no data, a release that is charged, past releases."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.aggregator.api.deployment_fixtures import CENTRAL, FILE, ONCE, Deployment, deployment
from tests.aggregator.dashboard.page_fixtures import Page, Visitor, logged_in
from tests.aggregator.queries.simulated_reports import counted, send
from veilcount_aggregator.auth.api_keys import Role
from veilcount_aggregator.central.budget_ledger import load_releases
from veilcount_aggregator.central.privacy_filter import PrivacyFilter
from veilcount_aggregator.server.app import create_app
from veilcount_aggregator.store.restore_lock import lock_releases

FIRST = datetime(2026, 12, 1, 12, tzinfo=UTC)
OVER = datetime(2027, 2, 1, 12, tzinfo=UTC)  # all periods are closed
COLOURS = CENTRAL.replace("visits", "colours").replace(
    "boolean = true", 'values = ["red", "dark blue"]'
)
AGES = CENTRAL.replace("visits", "age").replace("boolean = true", "range = [0, 120]")
HERE = "/collections/visits/releases"
DAY = {"from": "2026-12-01", "to": "2026-12-01"}
TWO_DAYS = {"from": "2026-12-01", "to": "2026-12-02"}


@pytest.fixture
def deployed(tmp_path: Path) -> Iterator[Deployment]:
    """A curator with answers of two days, long closed."""
    with deployment(tmp_path, FILE, CENTRAL, COLOURS, AGES, ONCE, now=FIRST) as made:
        counted(send(made, "visits", [30, 70]))
        counted(send(made, "colours", [30, 70]))
        counted(send(made, "once", [30, 70]))
        made.clocks.now += timedelta(days=1)
        counted(send(made, "visits", [20, 80], period=1))
        made.clocks.now = OVER
        yield made


@pytest.fixture
def analyst(deployed: Deployment) -> Visitor:
    """An analyst at the releases."""
    return logged_in(deployed, path=HERE)


def test_a_local_collection_has_no_releases_and_the_page_states_why(analyst: Visitor) -> None:
    page = analyst.get("/collections/theme/releases")

    assert page.status == 200
    assert "This collection has no releases" in page.text
    assert "no true value leaves them" in page.text


def test_a_dry_run_states_cost_and_error_and_charges_nothing(
    deployed: Deployment, analyst: Visitor
) -> None:
    before = deployed.aggregator.store.generation()
    page = _dry(analyst, query="sum", epsilon="0.5", **TWO_DAYS)

    assert "Error +/- 6" in page.text
    assert "epsilon 0.5 1 of one person, over all of them" in page.text
    assert "Remaining afterwards 0.5" in page.text
    assert "Release for epsilon 0.5 of each period" in page.text
    assert deployed.aggregator.store.generation() == before


def test_a_dry_run_reads_no_answer(deployed: Deployment, analyst: Visitor, tmp_path: Path) -> None:
    """A curator without answers has the same page."""
    (tmp_path / "empty").mkdir()
    with deployment(tmp_path / "empty", FILE, CENTRAL, COLOURS, AGES, ONCE, now=OVER) as empty:
        analysts = analyst, logged_in(empty)
        pages = [_dry(each, query="histogram", epsilon="1", **DAY) for each in analysts]

        assert pages[0].text == pages[1].text


def test_a_release_is_charged_and_shown(deployed: Deployment, analyst: Visitor) -> None:
    done = _release(analyst, query="histogram", epsilon="0.25", **DAY)
    page = analyst.get(done.leads_to)

    assert done.status == 303
    assert done.leads_to.endswith("shown=1#shown")
    assert _spent(deployed) == {"0": 250_000}
    assert "Released counts with their intervals, 2026-12-01" in page.text
    assert "Answers withheld" in page.text
    assert "100 answers" not in page.text
    assert "2026-12-01 0.25 0.75 closed: can be released" in page.text


def test_the_same_query_again_returns_the_same_release_free(
    deployed: Deployment, analyst: Visitor
) -> None:
    first = _release(analyst, query="sum", epsilon="0.25", **DAY)
    dry_run = _dry(analyst, query="sum", epsilon="0.25", **DAY)
    again = _release(analyst, query="sum", epsilon="0.25", **DAY)

    assert "This was released before" in dry_run.text
    assert again.leads_to == first.leads_to
    assert _spent(deployed) == {"0": 250_000}


def test_an_insufficient_budget_is_shown_by_the_dry_run_and_refused(
    deployed: Deployment, analyst: Visitor
) -> None:
    _release(analyst, query="sum", epsilon="0.75", **DAY)
    dry_run = _dry(analyst, query="histogram", epsilon="0.5", **TWO_DAYS)
    refused = _release(analyst, query="histogram", epsilon="0.5", **TWO_DAYS)

    assert "It would be refused: 2026-12-01 has epsilon 0.25 left" in dry_run.text
    assert 'id="release"' not in dry_run.html
    assert refused.status == 409
    assert "2026-12-01 has epsilon 0.25 left, and 0.5 is requested" in refused.text
    assert _spent(deployed) == {"0": 750_000}


def test_an_open_period_is_shown_by_the_dry_run_and_refused(
    deployed: Deployment, analyst: Visitor
) -> None:
    deployed.clocks.now = FIRST + timedelta(days=2)
    analyst.enter(Role.ANALYST)
    top = analyst.get(HERE)
    dry_run = _dry(analyst, query="sum", epsilon="0.5", **DAY)

    assert "No period is closed yet: releases are possible from 2027-01-01." in top.text
    assert "open until 2027-01-01" in dry_run.text
    assert _release(analyst, query="sum", epsilon="0.5", **DAY).status == 409
    assert not load_releases(deployed.aggregator.store)


def test_while_locked_nothing_is_released(deployed: Deployment, analyst: Visitor) -> None:
    lock_releases(deployed.aggregator.store, "restored")
    page = _dry(analyst, query="sum", epsilon="0.5", **DAY)

    assert "the store may lack recorded spend" in page.text
    assert 'id="release"' not in page.html
    assert _release(analyst, query="sum", epsilon="0.5", **DAY).status == 409
    assert not load_releases(deployed.aggregator.store)


def test_without_a_journal_nothing_is_released(deployed: Deployment) -> None:
    aggregator = deployed.aggregator
    curator = replace(aggregator.curator, filter=PrivacyFilter(aggregator.store, None))
    without = replace(aggregator, curator=curator)
    visitor = logged_in(Deployment(without, create_app(without, lambda: 0.0), deployed.clocks))

    assert "starts the server with --journal FILE" in visitor.get(HERE).text
    assert _release(visitor, query="sum", epsilon="0.5", **DAY).status == 409


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ({"epsilon": "much"}, 'epsilon = "much": give an exact number'),
        ({"epsilon": "2"}, "a period's whole budget is 1"),
        ({"query": "median"}, "query ="),
        (
            {"query": "condition", "argument": "age >= 4"},
            'query = "condition": give histogram, ',
        ),
        ({"from": "2026-12-05"}, "to ="),
        ({"from": "someday"}, "give a day"),
    ],
)
def test_an_error_names_its_field_and_the_form_is_kept(
    analyst: Visitor, typed: dict[str, str], message: str
) -> None:
    page = _dry(analyst, **{"query": "sum", "epsilon": "0.125", **DAY, **typed})

    assert page.status == 200
    assert message in page.text
    assert f'value="{typed.get("epsilon", "0.125")}"' in page.html
    assert 'id="release"' not in page.html


@pytest.mark.parametrize(
    ("name", "query", "argument", "message"),
    [
        ("colours", "some", "dark blue\r\nred\r\n", "How many answers are dark blue or red"),
        (
            "colours",
            "some",
            "blue",
            'argument = "blue": give values, one a line, such as red, dark blue',
        ),
        ("age", "condition", "age >= 40", "How many answers have age >= 40"),
    ],
)
def test_values_and_conditions_are_typed(
    analyst: Visitor, name: str, query: str, argument: str, message: str
) -> None:
    typed = {"query": query, "argument": argument, "epsilon": "0.5", **DAY}
    page = _dry(analyst, f"/collections/{name}/releases", **typed)

    assert message in page.text


def test_a_public_count_is_shown_and_not_charged(deployed: Deployment, analyst: Visitor) -> None:
    here = "/collections/once/releases"
    page = analyst.get(here)
    analyst.get(here)
    done = analyst.post(here, query="histogram", epsilon="0.5")
    result = analyst.get(done.leads_to)

    assert "how many answers there are" not in page.text
    assert "Answers 100" in result.text


def test_a_release_records_who_requested_it(deployed: Deployment) -> None:
    visitor = Visitor(deployed)
    visitor.log_in(deployed.key(Role.ANALYST, "Ada"))
    visitor.get(HERE)
    _release(visitor, query="sum", epsilon="0.5", **DAY)
    (key,) = deployed.aggregator.known().api_keys.keys.values()

    assert [each.who for each in load_releases(deployed.aggregator.store)] == [key.id]


def test_past_releases_are_shown_in_pages(analyst: Visitor) -> None:
    for number in range(1, 23):
        _release(analyst, query="sum", epsilon=f"0.{number:04}", **DAY)
    first, second = analyst.get(HERE), analyst.get(f"{HERE}?page=1")

    assert first.html.count("panel release") == 20
    assert second.html.count("panel release") == 2
    assert "Older releases" in first.text
    assert "Newer releases" in second.text


def _dry(visitor: Visitor, path: str = HERE, **parameters: str) -> Page:
    return visitor.get(path, query_string=parameters)


def _release(visitor: Visitor, **parameters: str) -> Page:
    visitor.get(HERE)
    return visitor.post(HERE, **parameters)


def _spent(deployed: Deployment) -> dict[str, int]:
    spent: dict[str, int] = {}
    for release in load_releases(deployed.aggregator.store):
        for period, charge in release.charges.items():
            spent[period] = spent.get(period, 0) + charge
    return spent
