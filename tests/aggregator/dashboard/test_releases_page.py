"""The page of releases: a dry run that looks at nothing, a release that is paid for, a journal."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.aggregator.api.deployment_fixtures import CENTRAL, FILE, ONCE, Deployment, deployment
from tests.aggregator.dashboard.page_fixtures import Page, Visitor
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
    """A curator who holds answers of two days, long closed."""
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
    """An analyst who looks at the releases."""
    visitor = Visitor(deployed)
    visitor.enter(Role.ANALYST)
    visitor.get(HERE)
    return visitor


def test_a_question_to_devices_has_no_releases_and_the_page_says_why(analyst: Visitor) -> None:
    page = analyst.get("/collections/theme/releases")

    assert page.status == 200
    assert "This collection has no releases" in page.text
    assert "no true value leaves them" in page.text


def test_a_dry_run_says_what_it_costs_and_spends_nothing(
    deployed: Deployment, analyst: Visitor
) -> None:
    before = deployed.aggregator.store.generation()
    page = _dry(analyst, query="sum", epsilon="0.5", **TWO_DAYS)

    assert "Error +/- 6" in page.text
    assert "epsilon 0.5 1 of one person, over all of them" in page.text
    assert "Remaining afterwards 0.5" in page.text
    assert "Release for epsilon 0.5 of each period" in page.text
    assert deployed.aggregator.store.generation() == before


def test_a_dry_run_looks_at_no_answer(
    deployed: Deployment, analyst: Visitor, tmp_path: Path
) -> None:
    """The same page of a curator who holds nothing."""
    (tmp_path / "empty").mkdir()
    with deployment(tmp_path / "empty", FILE, CENTRAL, COLOURS, AGES, ONCE, now=OVER) as empty:
        other = Visitor(empty)
        other.enter(Role.ANALYST)
        pages = [_dry(each, query="histogram", epsilon="1", **DAY) for each in (analyst, other)]

        assert pages[0].text == pages[1].text


def test_a_release_is_charged_and_told(deployed: Deployment, analyst: Visitor) -> None:
    done = _release(analyst, query="histogram", epsilon="0.25", **DAY)
    page = analyst.get(done.leads_to)

    assert done.status == 303
    assert done.leads_to.endswith("shown=1#shown")
    assert _spent(deployed) == {"0": 250_000}
    assert "Released counts with their intervals, 2026-12-01" in page.text
    assert "Answers withheld" in page.text
    assert "2026-12-01 0.25 0.75 closed: can be released" in page.text


def test_the_same_question_again_is_the_same_answer_free(
    deployed: Deployment, analyst: Visitor
) -> None:
    first = _release(analyst, query="sum", epsilon="0.25", **DAY)
    dry_run = _dry(analyst, query="sum", epsilon="0.25", **DAY)
    again = _release(analyst, query="sum", epsilon="0.25", **DAY)

    assert "This was released before" in dry_run.text
    assert again.leads_to == first.leads_to
    assert _spent(deployed) == {"0": 250_000}


def test_what_the_budget_does_not_pay_for_is_told_before_and_refused(
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


def test_a_period_that_takes_answers_still_is_told_before_and_refused(
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


def test_a_lock_is_told_and_nothing_released(deployed: Deployment, analyst: Visitor) -> None:
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
    visitor = Visitor(Deployment(without, create_app(without, lambda: 0.0), deployed.clocks))
    visitor.enter(Role.ANALYST)

    assert "starts the server with --journal FILE" in visitor.get(HERE).text
    assert _release(visitor, query="sum", epsilon="0.5", **DAY).status == 409


@pytest.mark.parametrize(
    ("typed", "said"),
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
def test_a_mistake_is_told_where_it_is_and_the_form_kept(
    analyst: Visitor, typed: dict[str, str], said: str
) -> None:
    page = _dry(analyst, **{"query": "sum", "epsilon": "0.125", **DAY, **typed})

    assert page.status == 200
    assert said in page.text
    assert f'value="{typed.get("epsilon", "0.125")}"' in page.html
    assert 'id="release"' not in page.html


def test_some_values_are_typed_one_a_line(analyst: Visitor) -> None:
    here = "/collections/colours/releases"
    some = {"query": "some", "epsilon": "0.5", **DAY}
    page = _dry(analyst, here, **some, argument="dark blue\r\nred\r\n")
    wrong = _dry(analyst, here, **some, argument="blue")

    assert "How many answers are dark blue or red" in page.text
    assert 'argument = "blue": give values, one a line, such as red, dark blue' in wrong.text


def test_a_condition_is_asked_of_a_number(analyst: Visitor) -> None:
    here = "/collections/age/releases"
    page = _dry(analyst, here, query="condition", argument="age >= 40", epsilon="0.5", **DAY)

    assert "How many answers have age >= 40" in page.text


def test_a_count_that_is_public_is_told_and_not_sold(
    deployed: Deployment, analyst: Visitor
) -> None:
    here = "/collections/once/releases"
    page = analyst.get(here)
    analyst.get(here)
    done = analyst.post(here, query="histogram", epsilon="0.5")
    told = analyst.get(done.leads_to)

    assert "how many answers there are" not in page.text
    assert "Answers 100" in told.text


def test_an_exact_count_that_must_not_leave_is_on_no_page(
    deployed: Deployment, analyst: Visitor
) -> None:
    _release(analyst, query="histogram", epsilon="0.25", **DAY)
    page = analyst.get(f"{HERE}?shown=1")

    assert "withheld" in page.text
    assert "100 answers" not in page.text


def test_who_asked_is_written_down(deployed: Deployment) -> None:
    visitor = Visitor(deployed)
    visitor.log_in(deployed.key(Role.ANALYST, "Ada"))
    visitor.get(HERE)
    _release(visitor, query="sum", epsilon="0.5", **DAY)
    (key,) = deployed.aggregator.known().api_keys.keys.values()

    assert [kept.who for kept in load_releases(deployed.aggregator.store)] == [key.id]


def test_the_journal_is_told_a_page_at_a_time(analyst: Visitor) -> None:
    for number in range(1, 23):
        _release(analyst, query="sum", epsilon=f"0.{number:04}", **DAY)
    first, second = analyst.get(HERE), analyst.get(f"{HERE}?page=1")

    assert first.html.count("panel release") == 20
    assert second.html.count("panel release") == 2
    assert "Older releases" in first.text
    assert "Newer releases" in second.text


def _dry(visitor: Visitor, path: str = HERE, **asked: str) -> Page:
    return visitor.get(path, query_string=asked)


def _release(visitor: Visitor, **asked: str) -> Page:
    visitor.get(HERE)
    return visitor.post(HERE, **asked)


def _spent(deployed: Deployment) -> dict[str, int]:
    spent: dict[str, int] = {}
    for kept in load_releases(deployed.aggregator.store):
        for period, charge in kept.charges.items():
            spent[period] = spent.get(period, 0) + charge
    return spent
