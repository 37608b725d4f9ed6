"""The releases tab: a dry run that reads no data, a release that is charged, past releases."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from veilcount_aggregator.records.api_keys import Role
from veilcount_aggregator.releases.budget_ledger import load_releases
from veilcount_aggregator.releases.privacy_filter import PrivacyFilter
from veilcount_aggregator.server.app import create_app
from veilcount_aggregator.store.restore_lock import lock_releases

from ...curator_fixtures import fill_strings
from ...queries.simulated_reports import counted, send
from ..api.deployment_fixtures import CENTRAL, FILE, ONCE, Deployment, deployment
from .page_fixtures import Page, Visitor, logged_in

FIRST = datetime(2026, 12, 1, 12, tzinfo=UTC)
OVER = datetime(2027, 2, 1, 12, tzinfo=UTC)  # all periods are closed
COLOURS = CENTRAL.replace("visits", "colours").replace(
    "boolean = true", 'values = ["red", "dark blue"]'
)
AGES = CENTRAL.replace("visits", "age").replace("boolean = true", "range = [0, 120]")
SMOOTH = CENTRAL.replace("visits", "smooth") + "delta = 0.000001\n"
WORDS = SMOOTH.replace("smooth", "words").replace("boolean = true", 'values = "open"')
HERE = "/collections/visits/releases"
DAY = {"from": "2026-12-01", "to": "2026-12-01"}
TWO_DAYS = {"from": "2026-12-01", "to": "2026-12-02"}


@pytest.fixture
def deployed(tmp_path: Path) -> Iterator[Deployment]:
    """A curator with answers of two days, long closed."""
    texts = (FILE, CENTRAL, COLOURS, AGES, ONCE, SMOOTH, WORDS)
    with deployment(tmp_path, *texts, now=FIRST) as made:
        fill_strings(made.aggregator.store, made.series("words"), {"otter": 900, "rare": 1})
        counted(send(made, "visits", [30, 70]))
        counted(send(made, "colours", [30, 70]))
        counted(send(made, "once", [30, 70]))
        made.clocks.now += timedelta(days=1)
        counted(send(made, "visits", [20, 80], period=1))
        made.clocks.now = OVER
        yield made


@pytest.fixture
def analyst(deployed: Deployment) -> Visitor:
    return logged_in(deployed, path=HERE)


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Visitor]:
    """An analyst who releases nothing, of a curator without answers."""
    folder = tmp_path_factory.mktemp("empty")
    with deployment(folder, FILE, CENTRAL, COLOURS, AGES, ONCE, SMOOTH, now=OVER) as empty:
        yield logged_in(empty)


def test_a_dry_run_states_cost_and_error_charges_nothing_and_reads_no_answer(
    deployed: Deployment, analyst: Visitor, reader: Visitor
) -> None:
    """A curator without answers has the same page."""
    before = deployed.aggregator.store.generation()
    typed = {"query": "sum", "epsilon": "0.5", **TWO_DAYS}
    page = _dry(analyst, **typed)

    assert "Error +/- 6" in page.text
    assert "epsilon 0.5 epsilon 1 of one person, over all of them" in page.text
    assert "Remaining afterwards 0.5" in page.text
    assert "Release for epsilon 0.5 of each period" in page.text
    assert deployed.aggregator.store.generation() == before
    for each in (typed, {"query": "histogram", "epsilon": "1", **DAY}):
        assert _dry(reader, **each).text == _dry(analyst, **each).text


def test_a_release_is_charged_once_and_shown(deployed: Deployment) -> None:
    """The same query again returns the same release for nothing."""
    analyst = Visitor(deployed)
    analyst.log_in(deployed.key(Role.ANALYST, "Ada"))
    done, again = (
        _release(analyst, query="histogram", epsilon="0.25", **DAY).leads_to for _ in range(2)
    )
    page = analyst.get(done)
    dry_run = _dry(analyst, query="histogram", epsilon="0.25", **DAY)
    (release,) = load_releases(deployed.aggregator.store)
    (key,) = deployed.aggregator.known().api_keys.keys.values()

    assert done == again
    assert done.endswith("shown=1#shown")
    assert (release.charges, release.actor) == ({"0": 250_000}, key.id)
    assert "This was released before" in dry_run.text
    assert "Released counts with their intervals, 1 Dec 2026" in page.text
    assert "Reports withheld" in page.text
    assert "100 answers" not in page.text
    assert "1 Dec 2026 0.25 0.75 closed: can be released" in page.text


def test_what_cannot_be_released_is_shown_by_the_dry_run_and_refused(
    deployed: Deployment, analyst: Visitor
) -> None:
    """Too little budget is left; there is no journal; the period is open; the store is locked."""
    aggregator = deployed.aggregator
    _release(analyst, query="sum", epsilon="0.75", **DAY)
    spent = _refused(analyst, **TWO_DAYS)
    curator = replace(aggregator.curator, filter=PrivacyFilter(aggregator.store, None))
    without = replace(aggregator, curator=curator)
    other = logged_in(Deployment(without, create_app(without, lambda: 0.0), deployed.clocks))
    unwritten = _refused(other, **DAY)
    deployed.clocks.now = FIRST + timedelta(days=2)
    analyst.enter(Role.ANALYST)
    early = _refused(analyst, **DAY)
    deployed.clocks.now = OVER
    analyst.enter(Role.ANALYST)
    lock_releases(aggregator.store, "restored")
    locked = _refused(analyst, **DAY)

    assert "It would be refused: 1 Dec 2026 has epsilon 0.25 left" in spent
    assert "1 Dec 2026 has epsilon 0.25 left, and 0.5 is requested" in spent
    assert "the store may lack recorded spend" in locked
    assert "starts the server with --journal FILE" in unwritten
    assert "No period is closed yet: releases are possible from 1 Jan 2027 (UTC)." in early
    assert "open until 2027-01-01" in early
    assert len(load_releases(aggregator.store)) == 1


def _refused(visitor: Visitor, **days: str) -> str:
    """Return what the page, its dry run and its refusal say."""
    typed = {"query": "histogram", "epsilon": "0.5", **days}
    pages = visitor.get(HERE), _dry(visitor, **typed), _release(visitor, **typed)

    assert 'id="release"' not in pages[1].html
    assert pages[2].status == 409
    return " ".join(page.text for page in pages)


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ({"epsilon": "much"}, 'epsilon = "much": give an exact number'),
        ({"epsilon": "2"}, "a period's whole budget is 1"),
        ({"query": "condition", "argument": "x >= 4"}, 'query = "condition": give histogram, '),
        ({"from": "2026-12-05"}, "to ="),
        ({"from": "someday"}, "give a day"),
    ],
)
def test_an_error_names_its_field_and_the_form_is_kept(
    reader: Visitor, typed: dict[str, str], message: str
) -> None:
    page = _dry(reader, **{"query": "sum", "epsilon": "0.125", **DAY, **typed})

    assert page.status == 200
    assert message in page.text
    assert f'value="{typed.get("epsilon", "0.125")}"' in page.html
    assert 'id="release"' not in page.html


@pytest.mark.parametrize(
    ("name", "query", "argument", "message"),
    [
        ("colours", "some", "dark blue\r\nred\r\n", "How many answers are dark blue or red"),
        ("colours", "some", "blue", "give values, one a line, such as red, dark blue"),
        ("age", "condition", "age >= 40", "How many answers have age >= 40"),
    ],
)
def test_values_and_conditions_are_typed(
    reader: Visitor, name: str, query: str, argument: str, message: str
) -> None:
    typed = {"query": query, "argument": argument, "epsilon": "0.5", **DAY}

    assert message in _dry(reader, f"/collections/{name}/releases", **typed).text


def test_a_public_count_is_shown_and_not_charged(deployed: Deployment, analyst: Visitor) -> None:
    here = "/collections/once/releases"
    page = analyst.get(here)
    analyst.get(here)
    done = analyst.post(here, query="histogram", epsilon="0.5")
    result = analyst.get(done.leads_to)

    assert "how many answers there are" not in page.text
    assert "Reports 100" in result.text


def test_the_page_opens_on_the_next_usable_period_and_the_last_release(analyst: Visitor) -> None:
    """A period whose budget is spent is not offered first; a dry run stands alone."""
    before = analyst.get(HERE)
    last = before.field("from")
    _release(analyst, query="sum", epsilon="1", **{"from": last, "to": last})
    after, dry_run = analyst.get(HERE), _dry(analyst, query="sum", epsilon="0.5", **DAY)

    assert "last release" not in before.text
    assert (before.field("to"), after.field("from")) == (last, after.field("to"))
    assert date.fromisoformat(after.field("from")) == date.fromisoformat(last) - timedelta(days=1)
    assert "last release UTC days" in after.text
    assert "last release" not in dry_run.text


def test_past_releases_are_shown_in_pages(analyst: Visitor) -> None:
    for number in range(1, 23):
        _release(analyst, query="sum", epsilon=f"0.{number:04}", **DAY)
    first, second = analyst.get(HERE), analyst.get(f"{HERE}?page=1")

    assert first.html.count("panel release") == 20
    assert second.html.count("panel release") == 2
    assert "Older releases" in first.text
    assert "Newer releases" in second.text


def test_a_budget_with_delta_is_paid_in_rho(analyst: Visitor) -> None:
    path = HERE.replace("visits", "smooth")
    empty = analyst.get(path)
    dry = _dry(analyst, path, query="count", rho="0.002", epsilon="", **DAY)
    done = analyst.post(path, query="count", rho="0.002", **DAY)
    after = analyst.get(done.response.headers["Location"])

    assert "each period has rho 0.024356" in empty.text
    assert "keeps (epsilon 1, delta 0.000001)-DP" in empty.text
    assert "Rho, for Gaussian noise or epsilon, for Laplace noise" in empty.text
    assert "Release for rho 0.002 of each period" in dry.text
    assert "Cost of one unit rho 0.002 rho 0.002 of one person" in after.text


def test_a_selection_is_shown_with_its_value_and_its_bound(analyst: Visitor) -> None:
    path = HERE.replace("visits", "colours")
    dry = _dry(analyst, path, query="most_frequent", epsilon="0.8", **DAY)
    done = analyst.post(path, query="most_frequent", epsilon="0.8", **DAY)
    after = analyst.get(done.response.headers["Location"])

    assert (
        "Error within 11 answers within 11 answers of the most frequent value's count" in dry.text
    )
    assert "Which value is most frequent" in after.text
    assert "Noise: within 11 answers of the most frequent value's count and +/- 9" in after.text
    assert "dark blue" in after.text.split("Request a release")[0]


def test_open_strings_are_named_after_their_release(analyst: Visitor) -> None:
    path = HERE.replace("visits", "words")
    dry = _dry(analyst, path, query="strings", rho="0.01", **DAY)
    done = analyst.post(path, query="strings", rho="0.01", **DAY)
    after = analyst.get(done.response.headers["Location"])
    named = _dry(analyst, path, shown="1", candidates="otter\r\nrare\r\n")
    wrong = _dry(analyst, path, shown="1", candidates="otter\r\n\x07")

    assert "on the count of each string, released from" in dry.text
    assert "1 hashed strings passed the threshold" in after.text
    assert "1 of 2 strings were found" in named.text
    assert "0 hashes are still without a name" in named.text
    assert "otter 9" in named.text or "otter 8" in named.text
    assert "1 to 200 visible characters" in wrong.text


def test_running_totals_are_drawn_day_by_day(analyst: Visitor) -> None:
    dry = _dry(analyst, query="running_total", epsilon="0.3", **TWO_DAYS)
    done = analyst.post(HERE, query="running_total", epsilon="0.3", **TWO_DAYS)
    after = analyst.get(done.response.headers["Location"])

    assert "on the last total, each period's value summed" in dry.text
    assert "The total so far, after each period" in after.text
    assert after.charts["figures"].labels == ("2026-12-01", "2026-12-02")


@pytest.mark.parametrize(
    ("name", "request_sent", "text"),
    [
        (
            "visits",
            {"query": "sum", "epsilon": "0.3"},
            r"sum of the answers: \d+, \d+ to \d+, 1 Dec 2026",
        ),
        (
            "visits",
            {"query": "running_total", "epsilon": "0.3"},
            r"2026-12-02 \d+, [\d.]+ to [\d.]+, 1 to 2 Dec",
        ),
        ("colours", {"query": "histogram", "epsilon": "0.8"}, r"dark blue \d+, \d+ to \d+,"),
        ("colours", {"query": "most_frequent", "epsilon": "0.8"}, r"frequent: dark blue \d+,"),
        ("words", {"query": "strings", "rho": "0.01"}, r"1 are released, 1 Dec 2026"),
    ],
)
def test_the_overview_shows_the_release_that_was_drawn_last(
    analyst: Visitor, name: str, request_sent: dict[str, str], text: str
) -> None:
    path, dates = HERE.replace("visits", name), TWO_DAYS if "run" in request_sent["query"] else DAY
    before = analyst.get("/").text
    analyst.get(path)
    analyst.post(path, **request_sent, **dates)

    assert not re.search(text, before)
    assert re.search(text, analyst.get("/").text)


def _dry(visitor: Visitor, path: str = HERE, **parameters: str) -> Page:
    return visitor.get(path, query_string=parameters)


def _release(visitor: Visitor, **parameters: str) -> Page:
    visitor.get(HERE)
    return visitor.post(HERE, **parameters)
