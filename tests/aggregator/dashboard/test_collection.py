"""A collection's page: the verdict at its borders, what is shown, what is refused, what leaves."""

from __future__ import annotations

import csv
import io
import json
import re
from fractions import Fraction
from html import unescape
from typing import Any

import pytest

from tests.aggregator.api.deployment_fixtures import Deployment
from tests.aggregator.dashboard.page_fixtures import Page, Visitor
from tests.aggregator.queries.simulated_reports import counted, send
from veilcount_aggregator.analysis.planning import QuestionShape, plan
from veilcount_aggregator.auth.api_keys import Role
from veilcount_aggregator.dashboard.collection.definition_history import changes, lines_of
from veilcount_aggregator.dashboard.collection.sample_adequacy import (
    GOAL,
    ROUGH,
    SampleAdequacy,
    Terms,
    error_model,
    observed_adequacy,
    rounded_up,
    sample_adequacy,
)
from veilcount_shared import Collection, parse_collections
from veilcount_shared.collection import Held, Measure

ASKED = """
app = "acme"
[it]
question = "What is it?"
epsilon = 1
unit = "month"
from = 2026-10-01
until = 2027-10-01
"""


def asked(more: str, **changed: str) -> Collection:
    """A definition."""
    text = ASKED
    for key, value in changed.items():
        text = re.sub(f"^{key} = .*$", f"{key} = {value}", text, flags=re.MULTILINE)
    return parse_collections(f"{text}{more}\n", lambda _: [])["it"]


YES_NO = asked("boolean = true")
THREE = asked('values = ["a", "b", "c"]')
MEAN = asked('range = [0, 240]\nmeasure = "mean"')
RANGES = asked('range = [0, 240]\nmeasure = "ranges"')
LONG = asked(f"values = [{', '.join(map(str, range(500)))}]")


def charts(page: Page) -> dict[str, Any]:
    """What a page draws, by the charts' names."""
    found = re.findall(r'<script type="application/json" id="(\S+)-data">(.*?)</script>', page.html)
    return {name: json.loads(drawn) for name, drawn in found}


def links(page: Page, words: str) -> list[str]:
    """The addresses behind some words."""
    return [
        unescape(each)
        for each in re.findall(rf'<a [^>]*?href="([^"]*)"[^>]*>{words}</a>', page.html)
    ]


def only(page: Page) -> Any:
    """The first chart."""
    return next(iter(charts(page).values()))


# -- the verdict -----------------------------------------------------------------------------------


@pytest.mark.parametrize("judged", [Terms(), Terms(0.99, at_once=3), Terms(sampled=True)])
@pytest.mark.parametrize("collection", [YES_NO, THREE, MEAN, RANGES, LONG])
def test_what_is_needed_is_just_enough(collection: Collection, judged: Terms) -> None:
    yardstick = error_model(collection)
    needed = sample_adequacy(collection, 1, judged).needed

    assert yardstick.half_width(needed, judged) <= yardstick.goal
    assert yardstick.half_width(needed - 1, judged) > yardstick.goal


@pytest.mark.parametrize("collection", [YES_NO, MEAN])
def test_with_what_is_needed_it_is_usable_and_with_one_less_it_is_rough(
    collection: Collection,
) -> None:
    needed = sample_adequacy(collection, 1).needed

    assert sample_adequacy(collection, needed).tone == "good"
    assert sample_adequacy(collection, needed - 1).tone == "weak"


@pytest.mark.parametrize("collection", [YES_NO, LONG])
def test_at_three_times_the_error_it_is_rough_and_just_beyond_too_few(
    collection: Collection,
) -> None:
    yardstick = error_model(collection)
    border = yardstick.needed(ROUGH * yardstick.goal, Terms())

    assert sample_adequacy(collection, border).tone == "weak"
    assert sample_adequacy(collection, border - 1).tone == "bad"


@pytest.mark.parametrize(
    ("collection", "question"),
    [
        (YES_NO, {"values": 2}),
        (THREE, {"values": 3}),
        (MEAN, {"range": (Fraction(0), Fraction(240))}),
        (RANGES, {"range": (Fraction(0), Fraction(240)), "measure": Measure.RANGES}),
    ],
)
def test_the_planner_asks_for_as_many(collection: Collection, question: dict[str, Any]) -> None:
    span = 240 if collection is MEAN else 1
    planned = plan(
        QuestionShape(start=collection.start, **question), epsilon=Fraction(1), error=GOAL * span
    )

    assert sample_adequacy(collection, 1).needed == planned.devices


def test_a_share_that_stands_out_is_the_one_the_planner_foresees() -> None:
    question = QuestionShape(start=LONG.start, values=500)
    planned = plan(question, epsilon=Fraction(1), devices=1_000_000)

    assert sample_adequacy(LONG, 1_000_000).half_width == pytest.approx(planned.detectable)


@pytest.mark.parametrize(
    ("collection", "n", "said"),
    [
        (YES_NO, 20_000, "Usable: +/- 1.4 points"),
        (YES_NO, 1_000, "Rough: +/- 6 points; 4,000 reports for +/- 3 points"),
        (YES_NO, 10, "Insufficient: 4,000 reports needed for +/- 3 points"),
        (YES_NO, 0, "No reports yet: 4,000 needed for +/- 3 points"),
        (MEAN, 100, "Insufficient: 4,300 reports needed for +/- 7.2 for the mean"),
        (RANGES, 1_000_000, "Usable: +/- 0.56 points for a quarter of the range"),
        (LONG, 1_000_000, "Usable: shares above 0.75% are significant"),
        (LONG, 1_000, "Insufficient: 560,000 reports needed until a share of 1% is significant"),
    ],
)
def test_a_verdict_is_one_sentence_in_the_units_of_its_question(
    collection: Collection, n: int, said: str
) -> None:
    assert sample_adequacy(collection, n).text == said


def test_what_is_told_is_rounded_against_us() -> None:
    assert [rounded_up(x) for x in (0.0301, 0.03, 2.01, 14_001, 14_000, 9.91)] == [
        0.031, 0.03, 2.1, 15_000, 14_000, 10,
    ]  # fmt: skip


def test_an_interval_that_was_seen_scales_with_the_root_of_n() -> None:
    found = observed_adequacy(YES_NO, 1_000, 2 * GOAL)

    assert found == SampleAdequacy(
        "weak", "Rough: +/- 6 points; 4,000 reports for +/- 3 points", 1_000, 2 * GOAL, GOAL, 4_000
    )


# -- shares ----------------------------------------------------------------------------------------


def test_the_page_opens_with_the_verdict_and_what_it_is_of(analyst: Visitor) -> None:
    said = analyst.get("/collections/theme").text

    assert (
        "Usable: +/- 0.6 points n = 27,751 answers, UTC days 2026-07-01 to 2026-12-31;"
        " the latest period is still open."
    ) in said


def test_every_bar_has_its_interval_and_the_pale_one_and_a_row(analyst: Visitor) -> None:
    page = analyst.get("/collections/theme")
    drawn = only(page)
    (part,) = drawn["parts"]

    assert drawn["labels"] == ["light", "dark", "system"]
    assert all(low < at < high for low, at, high in zip(*_ends(part), strict=True))
    assert part["outer"]["name"] == "If 1% of the reports were fake"
    assert part["hover"][1].startswith("dark: 50.")
    assert "if 1% of these reports were fake" in page.text
    assert re.search(r"dark 50\.\d+% 49\.\d+% to 51\.\d+% 13,\d{3} of 27,751", page.text)


def _ends(part: dict[str, Any]) -> tuple[list[float], list[float], list[float]]:
    return part["low"], part["values"], part["high"]


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("", "simultaneous"),
        ("?simultaneous=false", "individual"),
    ],
)
def test_above_five_values_intervals_hold_together_unless_told(
    analyst: Visitor, query: str, said: str
) -> None:
    assert f"Intervals at 95 %, {said}" in analyst.get(f"/collections/country{query}").text


@pytest.mark.parametrize(
    ("query", "said"),
    [("", "valid at one planned look"), ("?looks=every", "valid at every look")],
)
@pytest.mark.parametrize("name", ["country", "minutes"])
def test_a_page_says_at_how_many_looks_its_intervals_are_valid(
    analyst: Visitor, name: str, query: str, said: str
) -> None:
    page = analyst.get(f"/collections/{name}{query}")

    assert f"95 %, simultaneous, {said}" in page.text or f"interval at 95 %, {said}" in page.text


def test_the_verdict_on_a_page_is_of_the_intervals_that_it_shows(analyst: Visitor) -> None:
    """For every look they are wider, and so is the error that the answers are good for."""
    verdicts = [
        re.search(r"(Usable|Rough|Too few)[^.]+", analyst.get(f"/collections/minutes{query}").text)
        for query in ("", "?looks=every")
    ]

    assert all(verdicts)
    assert str(verdicts[0]) != str(verdicts[1])


def test_the_consistent_view_shows_no_share_below_nothing(analyst: Visitor) -> None:
    raw = only(analyst.get("/collections/country"))["parts"][0]["low"]
    consistent = only(analyst.get("/collections/country?view=consistent"))["parts"][0]

    assert min(raw) < 0
    assert min(consistent["values"]) >= 0
    assert sum(consistent["values"]) == pytest.approx(1)


def test_where_presence_is_hidden_shares_are_of_all_or_of_those_who_answered(
    analyst: Visitor,
) -> None:
    all_, answered = (analyst.get(f"/collections/help{query}") for query in ("", "?among=answered"))

    assert only(all_)["labels"][-1] == "absent"
    assert only(answered)["labels"] == ["menu", "search", "none of both"]
    assert "of those who answered, of these n answers" in answered.text
    assert "Usable: +/- 1.8 points" in all_.text
    assert "Rough: +/- 3.6 points" in answered.text


def test_a_segment_is_chosen_beside_the_others_that_are(analyst: Visitor) -> None:
    page = analyst.get("/collections/theme?segment=arm:B&level=0.9")

    assert links(page, "A") == ["/collections/theme?segment=arm%3AA&level=0.9"]
    assert links(page, "all") == ["/collections/theme?level=0.9"]
    assert "arm: B" in page.text


def test_parts_of_a_crossed_question_are_shown_alone(analyst: Visitor) -> None:
    page = analyst.get("/collections/plan?group=plan")

    assert only(page)["labels"] == ["free", "paid"]
    assert only(analyst.get("/collections/plan"))["labels"][0] == "light · free"


# -- long lists ------------------------------------------------------------------------------------


def test_a_long_list_shows_the_largest_and_how_many_stand_out(analyst: Visitor) -> None:
    page = analyst.get("/collections/word")

    assert only(page)["labels"][:2] == ["word-0000", "word-0001"]
    assert len(only(page)["labels"]) == 25
    assert re.search(
        r"\d of 2,000 values are significant: above what noise alone produces", page.text
    )


def test_a_long_list_has_pages(analyst: Visitor) -> None:
    page = analyst.get("/collections/word?page=2")

    assert only(page)["labels"][0] == "word-0040"
    assert "Page 2 of 50, 2,000 values" in page.text
    assert links(page, "Next page") == ["/collections/word?page=3"]


def test_a_search_finds_parts_of_names_and_says_what_is_none(analyst: Visitor) -> None:
    found = analyst.get("/collections/word?find=D-000")
    nothing = analyst.get("/collections/word?find=wrod-0001")

    assert only(found)["labels"] == [f"word-{n:04}" for n in range(10)]
    assert nothing.status == 400
    assert "no value has this in its name: did you mean word-0001" in nothing.text
    assert 'name="find" type="search" value="wrod-0001"' in nothing.html


def test_of_many_values_that_are_found_the_first_are_shown(analyst: Visitor) -> None:
    page = analyst.get("/collections/word?find=word")

    assert len(only(page)["labels"]) == 50
    assert "The first 50 matching values." in page.text


def test_a_crossed_value_is_found_as_it_is_written(analyst: Visitor) -> None:
    page = analyst.get("/collections/plan?find=dark %C2%B7 paid")

    assert only(page)["labels"] == ["dark · paid"]


def test_values_that_are_none_are_named(analyst: Visitor) -> None:
    page = analyst.get("/collections/theme?values=dark&values=drak")

    assert only(page)["labels"] == ["dark"]
    assert "There is no value named drak." in page.text


# -- numbers ---------------------------------------------------------------------------------------


def test_a_mean_stands_with_its_interval(analyst: Visitor) -> None:
    said = analyst.get("/collections/minutes").text

    assert re.search(
        r"Mean \d+\.\d \d+\.\d to \d+\.\d interval at 95.%, valid at one planned look,"
        r" of these n answers",
        said,
    )


@pytest.mark.parametrize(
    ("name", "tag", "holds"),
    [
        ("size", "noise only", "noise only: not the details"),
        ("latency", "guaranteed", "every edge at once"),
    ],
)
def test_curve_parts_and_quantiles_say_what_their_bands_hold_for(
    analyst: Visitor, name: str, tag: str, holds: str
) -> None:
    page = analyst.get(f"/collections/{name}")
    bars = [each for each in charts(page).values() if each["kind"] == "bars"]
    parts = [part for each in bars for part in each["parts"]]

    assert f"{tag} The bands of distribution, histogram and quantiles cover {holds}" in page.text
    assert bars[0]["labels"][0] == "0 to 125"
    assert all(low < high for part in parts for low, _, high in zip(*_ends(part), strict=True))
    assert re.search(r"50% \d+ \d+ to \d+", page.text)


def test_the_share_between_two_numbers_can_be_asked_for(analyst: Visitor) -> None:
    assert only(analyst.get("/collections/latency?values=100..300"))["labels"] == ["100 to 300"]


# -- over time -------------------------------------------------------------------------------------


def test_lines_have_bands_and_hollow_points_where_answers_are_still_taken(
    analyst: Visitor,
) -> None:
    page = analyst.get("/collections/theme")
    (drawn,) = [each for each in charts(page).values() if each["kind"] == "lines"]
    dark = next(part for part in drawn["parts"] if part["name"] == "dark")

    assert dark["x"][0] == "2026-07-01"
    assert dark["open"] == [4]
    assert all(low < at < high for low, at, high in zip(*_ends(dark), strict=True))
    assert "Not drawn, too few reports: 2026-12-01 to 2026-12-31 (n = 1)." in page.text


def test_a_line_is_cut_so_that_its_points_can_be_read_unless_told(analyst: Visitor) -> None:
    usual, told = (analyst.get(f"/collections/opened{query}") for query in ("", "?by=day"))

    assert "Shares by month, raw" in usual.text
    assert "Shares by day, raw: UTC days 2026-11-28 to 2026-12-03" in told.text


# -- what is not there, and what was defined -------------------------------------------------------


def test_what_is_not_among_the_answers_is_told_in_words(analyst: Visitor) -> None:
    said = analyst.get("/collections/theme").text

    assert "42 too late devices were offline" in said
    assert "1 duplicate a repeated report" in said
    assert "1 to 9 reports of 2 devices each expired before they were sent." in said


def test_fakes_are_told_before_anything_else(world_of_fakes: Visitor) -> None:
    said = world_of_fakes.get("/collections/theme").text

    assert "Poisoning test failed. Fake or broken: 1 messages came more often" in said
    assert said.index("Poisoning test failed") < said.index("Usable")


@pytest.fixture
def world_of_fakes(deployed: Deployment) -> Visitor:
    """A deployment where a crowd's reports all say the same message."""
    series = deployed.series("theme")
    counted(send(deployed, "theme", [9_000, 0, 0]))
    report = deployed.report("theme")
    for _ in range(40):
        fakes = [deployed.report("theme", message=report.message) for _ in range(200)]
        deployed.verdicts(*fakes)

    assert series.collection.mechanism.messages
    visitor = Visitor(deployed)
    visitor.enter(Role.ANALYST)
    return visitor


def test_series_stand_side_by_side_with_what_changed(analyst: Visitor) -> None:
    page = analyst.get("/collections/theme")

    assert "Rough: +/- 5.5 points" in page.text
    assert (
        'Changes in the next definition 1 value is new: ["system"] epsilon was 1, is 2' in page.text
    )
    assert "1,200 answers, for UTC days 2026-06-01 to 2026-06-30" in page.text


def test_one_series_is_shown_alone_when_asked(analyst: Visitor) -> None:
    older = links(analyst.get("/collections/theme"), r"[0-9a-f]{8}")[-1]

    assert only(analyst.get(older))["labels"] == ["light", "dark"]


def test_changes_are_told_in_words() -> None:
    old = asked('values = ["a", "b"]\nowner = "us"')
    new = asked('values = ["b", "c"]\nper_day = 2', unit='"event"')

    assert changes(old, new) == [
        '1 value is new: ["c"]',
        '1 value is removed: ["a"]',
        'unit was "month", is "event"',
        "per_day is new: 2",
        'linkage was "collection", is "period"',
        'owner is removed; it was "us"',
    ]
    assert changes(YES_NO, THREE) == [
        '3 values are new: ["a", "b", "c"]',
        "boolean is removed; it was true",
    ]
    assert changes(old, asked('values = ["b", "a"]\nowner = "us"')) == [
        "the values are in another order"
    ]
    assert changes(old, old) == []


def test_where_a_value_waits_is_a_line_of_the_definition() -> None:
    """A definition shown is one that may be written down."""
    old, new = (asked(f'boolean = true\ntakes = "any"\nheld = "{each}"') for each in Held)

    assert changes(old, new) == ['held was "process", is "device"']
    assert 'held = "device"' in list(lines_of(new))
    assert not any(line.startswith("held") for line in lines_of(YES_NO))


def test_promise_and_definition_are_there_with_the_whole_fingerprint(
    analyst: Visitor, stocked: Deployment
) -> None:
    said = analyst.get("/collections/opened").text

    assert "Epsilon of one event 0.5 Epsilon of a UTC day 0.5 Epsilon of a user 10" in said
    assert "Each answer is randomized on the device" in said
    assert stocked.series("opened").fingerprint in said
    assert "answers = 20" in said


# -- the curator's side ----------------------------------------------------------------------------


def test_a_central_collection_has_no_estimate_and_leads_to_releases(analyst: Visitor) -> None:
    page = analyst.get("/collections/visits")

    assert "Estimates come from releases" in page.text
    assert links(page, "Open the releases") == ["/collections/visits/releases"]
    assert charts(page) == {}
    assert not re.search(r"\d+ (answers|reports)", page.text)


def test_a_twin_stands_beside(analyst: Visitor) -> None:
    said = analyst.get("/collections/dark").text

    assert "Paired collection dark (n = 4,000) uses local privacy, dark_curated" in said
    assert re.search(r"true 2\d\.\d+% \(.*?\) not released", said)


# -- addresses and files ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "query",
    [
        "level=2", "level=x", "by=day", "from=2030-01-01", "from=yesterday", "nothing=1", "top=0",
        "segment=arm:C", "segment=leg:A", "series=abc", "among=answered", "page=9", "fakes=1",
        "values=zz", "view=none", "group=x",
    ],
)  # fmt: skip
def test_what_cannot_be_asked_is_told_above_the_page_as_it_opens(
    analyst: Visitor, query: str
) -> None:
    page = analyst.get(f"/collections/theme?{query}")

    assert page.status == 400
    assert 'role="alert"' in page.html
    assert "The default view is shown." in page.text
    assert "Usable: +/- 0.6 points" in page.text


def test_a_collection_that_is_none_is_no_page(analyst: Visitor) -> None:
    page = analyst.get("/collections/themes")

    assert page.status == 404
    assert "did you mean theme?" in page.text


@pytest.mark.parametrize("query", ["", "?level=0.9&segment=arm:A", "?view=consistent"])
def test_a_file_says_exactly_what_is_drawn(analyst: Visitor, query: str) -> None:
    page = analyst.get(f"/collections/theme{query}")
    sheet = analyst.get(links(page, "CSV")[0])
    rows = list(csv.DictReader(io.StringIO(sheet.html)))
    drawn = only(page)["parts"][0]

    assert sheet.response.headers["Content-Type"].startswith("text/csv")
    assert [float(row["frequency"]) for row in rows] == drawn["values"]
    assert [float(row["low"]) for row in rows] == drawn["low"]


def test_a_file_of_a_line_has_all_its_stretches(analyst: Visitor) -> None:
    found = json.loads(analyst.get(links(analyst.get("/collections/theme"), "JSON")[1]).html)

    assert found["by"] == "month"
    assert [each["n"] > 0 for each in found["series"][0]["time_ranges"]] == [True] * 6


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("theme/estimates.xls", 404),
        ("themes/estimates.csv", 404),
        ("visits/estimates.csv", 400),
        ("theme/estimates.csv?level=2", 400),
    ],
)
def test_a_file_that_is_none_is_refused(analyst: Visitor, path: str, status: int) -> None:
    assert analyst.get(f"/collections/{path}").status == status
