"""The first page: what is asked and what it is good for, how the intake is, and no secret count."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path

import pytest

from tests.aggregator.api.deployment_fixtures import CENTRAL, FILE, NOW, Deployment, deployment
from tests.aggregator.dashboard.page_fixtures import Visitor
from tests.aggregator.queries.simulated_reports import counted, send
from veilcount_aggregator.api.request_metrics import REFUSED
from veilcount_aggregator.auth.api_keys import Role
from veilcount_aggregator.catalog.definitions import close_collection
from veilcount_aggregator.dashboard.collection_status import (
    HEIGHT,
    CollectionStatus,
    State,
    collection_status,
    trend,
)
from veilcount_aggregator.dashboard.intake_summary import TitledFigure, intake_summary
from veilcount_aggregator.dashboard.overview import public_sizes
from veilcount_aggregator.store import VERDICT, Cell, ServiceCounter
from veilcount_aggregator.store.restore_lock import RELEASES, lock_releases
from veilcount_shared.verdict import Verdict

LATE = """
app = "acme-editor"

[late]
question = "Is it late?"
boolean = true
epsilon = 1
unit = "month"
from = {start}
until = {until}
"""


@pytest.fixture
def local(tmp_path: Path) -> Iterator[Deployment]:
    """A deployment with local collections alone."""
    with deployment(tmp_path, FILE) as made:
        yield made


def entered(made: Deployment) -> Visitor:
    """An analyst who has logged in."""
    found = Visitor(made)
    found.enter(Role.ANALYST)
    return found


def line(page: str, name: str) -> str:
    """What is read of one collection."""
    (found,) = [each for each in re.split("(?=<li>)", page) if f'/collections/{name}"' in each]
    return " ".join(re.sub(r"<[^>]*>", " ", found.split("</li>")[0]).split())


def facts(made: Deployment) -> dict[str, TitledFigure]:
    """The intake's figures, by their titles."""
    snapshot = made.aggregator.snapshot()
    noted, series = snapshot.store.service_counts(), snapshot.catalog.series
    found = intake_summary(snapshot.store, series, public_sizes(snapshot), noted, snapshot.today)
    return {each.title: each for each in found.figures}


# -- collections -----------------------------------------------------------------------------------


def test_a_line_says_question_n_epsilons_verdict_and_end(analyst: Visitor) -> None:
    said = line(analyst.get("/").html, "opened")

    assert said.startswith("Was the command palette opened? opened · local · one day")
    assert "Insufficient: 17,000 reports needed for +/- 3 points" in said
    assert "1,800 answers" in said
    assert "event 0.5 day 0.5 user 10" in said
    assert said.endswith("open until 2027-01-01 in 29 days")


def test_hidden_presence_counts_reports_and_twins_name_each_other(analyst: Visitor) -> None:
    page = analyst.get("/").html

    assert "3,700 reports" in line(page, "help")
    assert "local, paired with dark_curated" in line(page, "dark")
    assert "central, paired with dark" in line(page, "dark_curated")


def test_a_secret_count_is_withheld_with_everything_that_tells_it(analyst: Visitor) -> None:
    page = analyst.get("/").html
    said = line(page, "visits")

    assert "n withheld" in said
    assert "answers" not in said.split("withheld:")[0].replace("Answered", "")
    assert "<svg" not in page.split('/collections/visits"')[1].split("</li>")[0]


def test_collections_stand_by_their_state_and_open_ones_come_first(analyst: Visitor) -> None:
    heads = re.findall(r"<h2 id=\S+>(\S[^<]*)<span", analyst.get("/").html)

    assert [each.strip() for each in heads] == ["Open", "Not begun", "Ended"]


def test_a_search_lists_what_matches_name_or_question(analyst: Visitor) -> None:
    found, nothing = analyst.get("/?find=HELP"), analyst.get("/?find=%3Cb%3E")

    assert re.findall(r'/collections/(\w+)"', found.html) == ["help"]
    assert "No matches" in nothing.text
    assert "<b>" not in nothing.html


def test_older_definitions_are_told_and_not_added(analyst: Visitor) -> None:
    said = line(analyst.get("/").html, "theme")

    assert "2 definitions, the newest is shown; 1 older with reports" in said
    assert "27,751 answers" in said


def test_without_a_collection_it_says_what_to_do(tmp_path: Path) -> None:
    with deployment(tmp_path) as empty:
        said = entered(empty).get("/").text

    assert "No collections yet Push a definitions file" in said


def test_two_hundred_collections_are_one_page(tmp_path: Path) -> None:
    text = LATE.format(start="2026-11-01", until="2027-11-01")
    head, body = text.split("[late]")
    with deployment(tmp_path, head + "".join(f"[late-{n}]{body}" for n in range(200))) as made:
        page = entered(made).get("/")

    assert page.html.count("Is it late?") == 200


# -- where a collection stands ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("start", "until", "said"),
    [
        ("2026-12-04", "2027-01-01", CollectionStatus(State.COMING, "from 2026-12-04", "tomorrow")),
        ("2026-12-03", "2026-12-04", CollectionStatus(State.OPEN, "until 2026-12-04", "tomorrow")),
        (
            "2026-12-01",
            "2029-12-01",
            CollectionStatus(State.OPEN, "until 2029-12-01", "in 1,094 days"),
        ),
        (
            "2026-11-01",
            "2026-12-03",
            CollectionStatus(State.ENDED, "on 2026-12-03", "late reports until 2027-01-02"),
        ),
        ("2026-10-01", "2026-11-03", CollectionStatus(State.ENDED, "on 2026-11-03")),
    ],
)
def test_a_collection_stands_by_its_days(
    local: Deployment, start: str, until: str, said: CollectionStatus
) -> None:
    local.push(LATE.format(start=start, until=until))

    assert collection_status(local.series("late"), NOW.date()) == said


def test_a_closed_collection_takes_no_more(local: Deployment) -> None:
    close_collection(local.aggregator.store, "theme", NOW, "test")
    local.aggregator.watch.refresh()

    assert collection_status(local.series("theme"), NOW.date()).state is State.CLOSED


def test_a_trend_has_the_largest_period_at_its_height_and_marks_what_still_fills(
    local: Deployment,
) -> None:
    local.push(LATE.format(start="2026-06-01", until="2027-06-01"))
    found = trend(local.series("late"), {Cell(0, 0): 50, Cell(2, 1): 200}, NOW.date())

    assert found is not None
    assert found.label == (
        "Reports per month, 2026-06-01 to 2026-12-01: 0 to 200; the last 2 are open"
    )
    assert [each.height for each in found.columns] == [6.25, 1.0, HEIGHT - 1, *[1.0] * 4]
    assert [each.open for each in found.columns] == [False] * 5 + [True] * 2


@pytest.mark.parametrize(("name", "sizes"), [("alone", {}), ("theme", {Cell(0, 0): 9})])
def test_without_answers_or_periods_there_is_no_trend(
    local: Deployment, name: str, sizes: dict[Cell, int]
) -> None:
    assert trend(local.series(name), sizes, NOW.date()) is None


# -- the intake ------------------------------------------------------------------------------------


def test_answers_are_told_for_today_and_for_the_week_before(local: Deployment) -> None:
    for period, held in ((0, 30), (1, 20), (2, 10)):
        counted(send(local, "opened", [held, held], period=period))
    found = facts(local)

    assert found["Reports for today"] == TitledFigure("Reports for today", "20", "40 for yesterday")
    assert found["The 7 days before"].figure == "100"
    assert found["Reports for this month"].note == "so far; 0 for the last"


def test_days_are_counted_whichever_collection_they_are_of(local: Deployment) -> None:
    counted(send(local, "opened", [3, 3], period=2))
    counted(send(local, "alone", [2, 2], period=2))

    assert facts(local)["Reports for today"].figure == "10"


def test_refusals_are_told_by_their_reason_and_what_came_twice_is_none(local: Deployment) -> None:
    print_ = local.series("theme").fingerprint
    notes = {
        ServiceCounter(VERDICT, print_, 0, Verdict.STALE): 7,
        ServiceCounter(VERDICT, "", -1, Verdict.UNKNOWN_COLLECTION): 2,
        ServiceCounter(VERDICT, print_, 0, Verdict.DUPLICATE): 5,
        ServiceCounter(REFUSED, "", -1, "no-key"): 3,
    }
    local.aggregator.store.commit([], notes)

    assert facts(local)["Rejected reports"] == TitledFigure(
        "Rejected reports",
        "9",
        "0 counted; 7 too late; 2 of unknown definitions; 3 whole batches;"
        " 5 duplicates, counted once",
    )


def test_a_secret_collection_is_in_no_sum(tmp_path: Path) -> None:
    with deployment(tmp_path, FILE, CENTRAL) as made:
        counted(send(made, "visits", [40, 2], period=2))
        print_ = made.series("visits").fingerprint
        notes = {
            ServiceCounter(VERDICT, print_, 0, Verdict.STALE): 7,
            ServiceCounter(REFUSED, "", -1, "no-key"): 3,
        }
        made.aggregator.store.commit([], notes)
        found = facts(made)

    assert found["Reports for today"].figure == "0"
    assert found["Rejected reports"] == TitledFigure("Rejected reports", "0", "0 counted")


def test_read_only_mode_and_a_lock_are_shown_first(tmp_path: Path) -> None:
    with deployment(tmp_path, FILE, CENTRAL) as made:
        analyst = entered(made)
        lock_releases(made.aggregator.store, RELEASES)
        made.aggregator.store.set_read_only(on=True)
        said = analyst.get("/").text
        made.aggregator.store.set_read_only(on=False)

    assert "The store is read-only: no report is accepted." in said
    assert "Releases are locked" in said


def test_a_campaign_that_is_long_over_is_no_week_of_nothing(local: Deployment) -> None:
    local.clocks.now = NOW + timedelta(days=60)

    assert local.aggregator.today() == date(2027, 2, 1)
    assert set(facts(local)) == {"Reports for this month", "Rejected reports", "Store"}
