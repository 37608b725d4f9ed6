"""The estimates tab of a collection: figures with their intervals, options, refusals, files."""

from __future__ import annotations

import csv
import io
import json
import re
from typing import Any

import pytest

from tests.aggregator.api.deployment_fixtures import Deployment
from tests.aggregator.dashboard.page_fixtures import Page, Visitor, logged_in
from tests.aggregator.queries.simulated_reports import counted, send


def first_chart(page: Page) -> Any:
    """Return the first chart; an empty one if there is none."""
    return next(iter(page.charts.values()), {})


#: an address, the labels of its first chart (`...` is any other), and patterns of its text
PAGES: list[tuple[str, list[Any], tuple[str, ...]]] = [
    (
        "theme",
        ["light", "dark", "system"],
        (
            r"Usable: \+/- 0\.6 points n = 27,751 answers, UTC days 2026-07-01 to 2026-12-31",
            r"2026-12-31; the latest period is still open\.",
            "if 1% of these reports were fake",
            r"dark 50\.\d+% 49\.\d+% to 51\.\d+% 13,\d{3} of 27,751",
            r"Not drawn, too few reports: 2026-12-01 to 2026-12-31 \(n = 1\)\.",
            "42 too late devices were offline",
            "1 duplicate a repeated report",
            r"1 to 9 reports of 2 devices each expired before they were sent\.",
            r"Rough: \+/- 5\.5 points",  # the definition before, and what changed
            r'Changes in the next definition 1 value is new: \["system"\] epsilon was 1, is 2',
            "1,200 answers, for UTC days 2026-06-01 to 2026-06-30",
        ),
    ),
    ("theme?values=dark&values=drak", ["dark"], ("There is no value named drak.",)),
    ("country?simultaneous=false", [...] * 30, ("at 95 %, individual",)),
    ("country", [...] * 30, ("simultaneous, valid at one planned look",)),
    ("country?looks=every", [...] * 30, ("simultaneous, valid at every",)),
    (
        "minutes",
        [],
        (
            r"Mean \d+\.\d \d+\.\d to \d+\.\d interval at 95.%, valid at one planned look",
            "look, of these n answers",
        ),
    ),
    # the conclusion is on the interval that is shown
    ("minutes?looks=every", [], ("at 95.%, valid at every look", r"(Rough|Insufficient): ")),
    ("help", [..., ..., ..., "absent"], (r"Usable: \+/- 1\.8 points",)),  # hidden presence
    (
        "help?among=answered",
        ["menu", "search", ...],
        (r"Rough: \+/- 3\.6 points", "of those who answered, of these n answers"),
    ),
    ("plan", ["light · free", ..., ..., ...], ()),
    ("plan?group=plan", ["free", "paid"], ()),
    ("plan?find=dark %C2%B7 paid", ["dark · paid"], ()),
    (
        "word",
        ["word-0000", *[...] * 24],
        (r"\d of 2,000 values are significant: above what noise alone produces",),
    ),
    ("word?page=2", ["word-0040", *[...] * 39], ("Page 2 of 50, 2,000 values",)),
    ("word?find=word", [...] * 50, (r"The first 50 matching values\.",)),
    ("word?find=D-000", [f"word-{n:04}" for n in range(10)], ()),
    ("latency?values=100..300", ["100 to 300"], ()),
    (
        "opened",
        [..., ...],
        (
            "Epsilon of one event 0.5 Epsilon of a UTC day 0.5 Epsilon of a user 10",
            "Each answer is randomized on the device",
            "answers = 20",
            "Shares by month, raw",  # a time range is long enough for an adequate sample
        ),
    ),
    ("opened?by=day", [..., ...], ("Shares by day, raw: UTC days 2026-11-28 to 2026-12-03",)),
    (
        "dark",
        [..., ...],
        (
            r"Paired collection dark \(n = 4,000\) uses local privacy, dark_curated",
            r"true 2\d\.\d+% \(.*?\) not released",
        ),
    ),
    (
        "visits",
        [],
        ("Estimates come from releases", "Open the releases", r"^(?!.*\d+ (answers|reports))"),
    ),
]


@pytest.mark.parametrize(("path", "labels", "patterns"), PAGES, ids=[each[0] for each in PAGES])
def test_a_page_shows(
    analyst: Visitor, path: str, labels: list[Any], patterns: tuple[str, ...]
) -> None:
    page = analyst.get(f"/collections/{path}")
    shown = first_chart(page).get("labels", [])

    assert page.status == 200
    assert len(shown) == len(labels)
    assert all(want in {each, ...} for each, want in zip(shown, labels, strict=True))
    assert page.lacks(*patterns) == []


def test_every_bar_and_point_lies_within_its_interval(analyst: Visitor) -> None:
    page = analyst.get("/collections/theme")
    bars = first_chart(page)
    (lines,) = [each for each in page.charts.values() if each["kind"] == "lines"]
    (part,) = bars["parts"]
    dark = next(part for part in lines["parts"] if part["name"] == "dark")

    assert part["outer"]["name"] == "If 1% of the reports were fake"
    assert part["hover"][1].startswith("dark: 50.")
    assert (dark["x"][0], dark["open"]) == ("2026-07-01", [4])
    for each in (part, dark):
        ends = zip(each["low"], each["values"], each["high"], strict=True)
        assert all(low < value < high for low, value, high in ends)


def test_a_link_changes_one_parameter_and_keeps_the_other_parameters(analyst: Visitor) -> None:
    page = analyst.get("/collections/theme?segment=arm:B&level=0.9")

    assert "arm: B" in page.text
    assert page.links("A") == ["/collections/theme?segment=arm%3AA&level=0.9"]
    assert page.links("all") == ["/collections/theme?level=0.9"]
    assert analyst.get("/collections/word?page=2").links("Next page") == [
        "/collections/word?page=3"
    ]


@pytest.mark.parametrize(
    ("name", "covers"),
    [("size", "noise only: not the details"), ("latency", "every edge at once")],
)
def test_distribution_histogram_and_quantiles_state_what_their_bands_cover(
    analyst: Visitor, name: str, covers: str
) -> None:
    page = analyst.get(f"/collections/{name}")
    bars = [each for each in page.charts.values() if each["kind"] == "bars"]

    assert f"The bands of distribution, histogram and quantiles cover {covers}" in page.text
    assert bars[0]["labels"][0] == "0 to 125"
    for part in (part for each in bars for part in each["parts"]):
        assert all(low < high for low, high in zip(part["low"], part["high"], strict=True))
    assert re.search(r"50% \d+ \d+ to \d+", page.text)


def test_a_failed_poisoning_test_is_shown_first(deployed: Deployment) -> None:
    """Many reports have the same message."""
    counted(send(deployed, "theme", [9_000, 0, 0]))
    report = deployed.report("theme")
    for _ in range(40):
        deployed.verdicts(*(deployed.report("theme", message=report.message) for _ in range(200)))
    text = logged_in(deployed).get("/collections/theme").text

    assert "Poisoning test failed. Fake or broken: 1 messages came more often" in text
    assert text.index("Poisoning test failed") < text.index("Usable")


def test_one_definition_is_shown_alone_with_its_whole_fingerprint(
    analyst: Visitor, stocked: Deployment
) -> None:
    page = analyst.get("/collections/theme")

    assert stocked.series("theme").fingerprint in page.text
    assert first_chart(analyst.get(page.links(r"[0-9a-f]{8}")[-1]))["labels"] == ["light", "dark"]


# -- addresses and files ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "fix"),
    [
        ("theme?level=2", "give a number between 0 and 1"),
        ("theme?nothing=1", "nothing"),
        ("theme?segment=arm:C", "give one of arm:A, arm:B"),
        ("word?find=wrod-0001", "no value has this in its name: did you mean word-0001"),
    ],
)
def test_an_invalid_query_is_refused_above_the_default_view(
    analyst: Visitor, query: str, fix: str
) -> None:
    page = analyst.get(f"/collections/{query}")

    assert page.status == 400
    assert 'role="alert"' in page.html
    assert fix in page.text
    assert "The default view is shown." in page.text
    assert page.charts


@pytest.mark.parametrize("query", ["", "?level=0.9&segment=arm:A&view=consistent"])
def test_a_file_has_the_figures_of_the_chart(analyst: Visitor, query: str) -> None:
    page = analyst.get(f"/collections/theme{query}")
    sheet = analyst.get(page.links("CSV")[0])
    rows, part = list(csv.DictReader(io.StringIO(sheet.html))), first_chart(page)["parts"][0]
    series = json.loads(analyst.get(page.links("JSON")[1]).html)

    assert sheet.response.headers["Content-Type"].startswith("text/csv")
    assert [float(row["frequency"]) for row in rows] == part["values"]
    assert [float(row["low"]) for row in rows] == part["low"]
    assert series["by"] == "month"
    assert [each["n"] > 0 for each in series["series"][0]["time_ranges"]] == [True] * 6


def test_a_file_that_does_not_exist_is_refused(analyst: Visitor) -> None:
    files = {
        "theme/estimates.xls": 404,
        "visits/estimates.csv": 400,
        "theme/estimates.csv?top=0": 400,
    }

    assert {each: analyst.get(f"/collections/{each}").status for each in files} == files
