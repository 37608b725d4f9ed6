"""The overview: collections with status, conclusion and trend; the intake; no secret count."""

from __future__ import annotations

import re
from datetime import timedelta

from veilcount_aggregator.records.definitions import close_collection
from veilcount_aggregator.records.service_counters import REFUSED
from veilcount_aggregator.store import VERDICT, Cell, ServiceCounter
from veilcount_aggregator.store.restore_lock import RELEASES, lock_releases
from veilcount_aggregator.web.dashboard.collection_status import (
    HEIGHT,
    CollectionStatus,
    State,
    collection_status,
    trend,
)
from veilcount_aggregator.web.dashboard.overview import TitledFigure, intake_summary, public_sizes
from veilcount_shared.verdict import Verdict

from ....client.device_fixtures import definitions_text
from ...queries.simulated_reports import counted, send
from ..api.deployment_fixtures import NOW, Deployment
from .page_fixtures import Visitor, logged_in

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


def rows(analyst: Visitor) -> dict[str, str]:
    """Return the source of each collection's row, by its name."""
    parts = re.split("(?=<li>)", analyst.get("/").html)
    named = [(re.search(r'/collections/(\w+)"', part), part.split("</li>")[0]) for part in parts]
    return {found[1]: row for found, row in named if found}


def intake(made: Deployment) -> dict[str, TitledFigure]:
    snapshot = made.aggregator.snapshot()
    counters, series = snapshot.store.service_counts(), snapshot.catalog.series
    found = intake_summary(snapshot.store, series, public_sizes(snapshot), counters, snapshot.today)
    return {each.title: each for each in found["figures"]}


# -- collections -----------------------------------------------------------------------------------


#: texts of some rows
ROWS = {
    "opened": (
        "Was the command palette opened? opened · local · one day",
        "1,800 reports: too few. From about 1,900 on, values of 9% can be told from noise.",
        "1,800 reports",
        "event 0.5 day 0.5 user 10",
        "open until 1 Jan 2027 in 29 days",
    ),
    "help": ("3,700 reports",),  # hidden presence
    "dark": ("local, paired with dark_curated",),
    "dark_curated": ("central, paired with dark",),
    "theme": ("27,751 reports", "2 definitions, the newest is shown; 1 older with reports"),
    "visits": ("n withheld",),
}


def test_rows_are_grouped_by_state_and_hold_no_secret_count(analyst: Visitor) -> None:
    shown = rows(analyst)
    texts = {name: " ".join(re.sub(r"<[^>]*>", " ", row).split()) for name, row in shown.items()}

    for name, expected in ROWS.items():
        assert [each for each in expected if each not in texts[name]] == []
    assert not re.search(r"\d+ (answers|reports)", texts["visits"])
    assert ["<svg" in shown[name] for name in ("theme", "visits")] == [True, False]
    titles = re.findall(r"<h2 id=\S+>(\S[^<]*)<span", analyst.get("/").html)
    assert [title.strip() for title in titles] == ["Open", "Not begun", "Ended"]
    assert "No matches" in analyst.get("/?find=nowhere").text


YEAR = {"epsilon": 1, "unit": "month", "from": "2026-12-01", "until": "2027-12-01"}
QUESTIONS = definitions_text(
    "acme-editor", YEAR, fast={"question": "Is it fast?"}, calm={"question": "Is it calm?"}
)
GROUPED = f'{QUESTIONS}\n[group.opinions]\nquestions = ["fast", "calm"]\n'


def test_a_question_of_a_group_names_it_and_the_others(public: Deployment) -> None:
    public.push(GROUPED)
    analyst = logged_in(public)

    assert "local, one of 2 of opinions" in rows(analyst)["calm"]
    page = analyst.get("/collections/calm")
    assert "group opinions, of which each person answers one, drawn: fast , calm" in page.text
    assert "opinions" not in analyst.get("/collections/theme").text


# -- status and trend ------------------------------------------------------------------------------


def test_the_status_follows_from_the_days(public: Deployment) -> None:
    expected: dict[tuple[str, str], tuple[State, str] | tuple[State, str, str]] = {
        ("2026-12-04", "2027-01-01"): (State.COMING, "from 4 Dec 2026", "tomorrow"),
        ("2026-12-03", "2026-12-04"): (State.OPEN, "until 4 Dec 2026", "tomorrow"),
        ("2026-12-01", "2029-12-01"): (State.OPEN, "until 1 Dec 2029", "in 1,094 days"),
        ("2026-11-01", "2026-12-03"): (
            State.ENDED,
            "on 3 Dec 2026",
            "late reports until 2 Jan 2027",
        ),
        ("2026-10-01", "2026-11-03"): (State.ENDED, "on 3 Nov 2026"),
    }
    for (start, until), status in expected.items():
        public.push(LATE.format(start=start, until=until))

        assert collection_status(public.series("late"), NOW.date()) == CollectionStatus(*status)
    close_collection(public.aggregator.store, "theme", NOW, "test")
    public.aggregator.catalog_cache.refresh()
    assert collection_status(public.series("theme"), NOW.date()).state is State.CLOSED


def test_the_largest_period_of_a_trend_has_the_full_height_and_open_ones_are_marked(
    public: Deployment,
) -> None:
    public.push(LATE.format(start="2026-06-01", until="2027-06-01"))
    found = trend(public.series("late"), {Cell(0, 0): 50, Cell(2, 1): 200}, NOW.date())

    assert found is not None
    assert found.label == ("Reports per month, 1 Jun to 1 Dec 2026: 0 to 200; the last 2 are open")
    assert [height for _, _, height, _ in found.columns] == [6.25, 1.0, HEIGHT - 1, *[1.0] * 4]
    assert [is_open for *_, is_open in found.columns] == [False] * 5 + [True] * 2
    for name, sizes in (("alone", {}), ("theme", {Cell(0, 0): 9})):
        assert trend(public.series(name), sizes, NOW.date()) is None


# -- the intake ------------------------------------------------------------------------------------


def test_reports_are_summed_by_day_and_rejected_ones_by_reason(public: Deployment) -> None:
    for period, number in ((0, 30), (1, 20), (2, 10)):
        counted(send(public, "opened", [number, number], period=period))
    counted(send(public, "alone", [2, 2], period=2))
    theme = public.series("theme").fingerprint
    counters = {
        ServiceCounter(VERDICT, theme, 0, Verdict.STALE): 7,
        ServiceCounter(VERDICT, "", -1, Verdict.UNKNOWN_COLLECTION): 2,
        ServiceCounter(VERDICT, theme, 0, Verdict.DUPLICATE): 5,
        ServiceCounter(REFUSED, "", -1, "no-key"): 3,
    }
    public.aggregator.store.commit([], counters)
    found = intake(public)

    assert found["Reports for today"] == TitledFigure("Reports for today", "24", "40 for yesterday")
    assert found["The 7 days before"].figure == "100"
    assert found["Reports for this month"].note == "so far; 0 for the last"
    assert found["Rejected reports"] == TitledFigure(
        "Rejected reports",
        "9",
        "124 counted; 7 too late; 2 of unknown definitions; 3 whole batches;"
        " 5 duplicates, counted once",
    )
    public.clocks.now = NOW + timedelta(days=60)  # all but one have ended long ago
    assert set(intake(public)) == {"Reports for this month", "Rejected reports", "Store"}


def test_a_secret_collection_is_in_no_sum(deployed: Deployment) -> None:
    counted(send(deployed, "visits", [40, 2], period=2))
    visits = deployed.series("visits").fingerprint
    counters = {
        ServiceCounter(VERDICT, visits, 0, Verdict.STALE): 7,
        ServiceCounter(REFUSED, "", -1, "no-key"): 3,
    }
    deployed.aggregator.store.commit([], counters)
    found = intake(deployed)

    assert found["Reports for today"].figure == "0"
    assert found["Rejected reports"] == TitledFigure("Rejected reports", "0", "0 counted")


def test_read_only_mode_and_locked_releases_are_shown_first(deployed: Deployment) -> None:
    analyst = logged_in(deployed)
    lock_releases(deployed.aggregator.store, RELEASES)
    deployed.aggregator.store.set_read_only(on=True)
    text = analyst.get("/").text
    deployed.aggregator.store.set_read_only(on=False)

    assert "The store is read-only: no report is accepted." in text
    assert "Releases are locked" in text
