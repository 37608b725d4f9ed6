"""The estimates tab of a collection: figures with their intervals, options, refusals, files."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from veilcount_analysis.estimation import square_wave_em
from veilcount_analysis.text.number_format import figure, interval, number_interval

from ...queries.simulated_reports import counted, send, send_numbers
from ..api.deployment_fixtures import Deployment, deployment
from .page_fixtures import Page, Visitor, logged_in


def labels_of(page: Page) -> list[str]:
    """Return what the page's first figures are of; nothing if there are none."""
    return [row[0] for row in next(iter(page.dots), [])]


#: an address, what its first figures are of (`...` is any other), and patterns of its text
PAGES: list[tuple[str, list[Any], tuple[str, ...]]] = [
    (
        "theme",
        ["dark", "light", "system"],
        (
            r"dark is 12 to 1\d of 100 higher in arm A than in arm B\. Usable Of 3 values",
            r"All together: 49 to 5[12] of 100 answers are dark\. 27,751 reports,",
            r"1 Jul to 31 Dec 2026 \(UTC\); the latest",
            "95 % interval of each value is of the answers in these n reports, and valid at one",
            "hold the true figure of a value chosen beforehand 19 times in 20.",
            "Show where the figures could lie if 1% of the reports were fake",
            r"dark 50\.\d+% 49\.\d+% to 51\.\d+% 13,\d{3}",
            r"Not drawn, too few reports: 1 to 31 Dec 2026 \(n = 1\)\.",
            "too late 42 devices were offline",
            "duplicate 1 a repeated report",
            r"1 to 9 reports of 2 devices each expired before they were sent\.",
            r"Rough: from about 4,000 on, values are known to \+/- 3 points\.",  # before
        ),
    ),
    (
        "theme/definition",
        [],
        (
            r'from the older definition 1 value is new: \["system"\] epsilon was 1, is 2',
            "1,200 reports, for UTC days 1 to 30 Jun 2026",
        ),
    ),
    (
        "theme?from=2026-11-01&to=2026-11-30",
        ["dark", "light", "system"],
        (
            r"Before, 1 to 31 Oct 2026",
            r"dark 5\d\.\d+% .*? 52\.\d+% \(50\.\d+% to 54\.\d+%\)",
            r"5,950 reports, 1 to 30 Nov 2026",
        ),
    ),
    ("theme?from=2026-08-01&to=2026-11-30", [...] * 3, ("^(?!.*Before)",)),  # begins in July
    ("theme?values=dark&values=drak", ["dark"], ("There is no value named drak.",)),
    (
        "country",
        [...] * 25,
        (
            "The 95 % interval of each value is of ",
            r"Which is larger is not significant, all values compared at once\.",
            r"\d more values? (is|are) above the noise line, all values compared at once",
        ),
    ),
    ("country?looks=every", [...] * 25, ("each value is .*, and valid at every look",)),
    (
        "minutes",
        ["Mean"],
        (
            r"Mean \d+ minutes, \d+ to \d+ Usable",
            "is of the answers in these n reports, and valid at one planned look",
            "Figure Chart 45 50 Estimate",
        ),
    ),
    # the verdict is on the interval that is shown
    (
        "minutes?looks=every",
        ["Mean"],
        ("95.% interval of each value is .*, and valid at every look",),
    ),
    ("help", ["search", "menu", ..., "absent"], (r"2\d to 2\d of 100 answers are search Usable",)),
    (
        "help?among=answered",
        ["search", "menu", ...],
        (
            r"Rough: from about 5,\d00 on, values are known to \+/- 3 points",
            "of those who answered, of the answers in these n reports",
        ),
    ),
    ("plan", ["light · paid", ..., ..., ...], ()),
    ("plan?group=plan", ["paid", "free"], ()),
    ("plan?find=dark %C2%B7 paid", ["dark · paid"], ()),
    (
        "word",
        [f"word-{n:04}" for n in range(6)],
        (
            "values above 0.82% stand out from noise, all values compared at once",
            "1,994 more values are below the noise line, all values compared at once: all 2,000",
            r"The 6 largest of 2,000 values\.",
        ),
    ),
    ("word?top=3", [f"word-{n:04}" for n in range(3)], ("3 more values are above the noise line",)),
    ("word?page=2", ["word-0040", *[...] * 39], ("Page 2 of 50, 2,000 values",)),
    ("word?find=word", [...] * 50, (r"The first 50 matching values\.",)),
    ("word?find=D-000", [...] * 10, ("word-0009",)),
    ("latency?values=100..300", ["Mean"], (r"100 to 300 \d\d\.",)),
    (
        "opened",
        ["true", "false"],
        (
            r"1,800 reports: too few\. From about 1,900 on, values of 9% can be told from noise\.",
            r"Show the figures anyway .* true [67]\d\.\d+%",
        ),
    ),
    (
        "opened/privacy",
        [],
        (
            "Epsilon of one event 0.5 Epsilon of a UTC day 0.5 Epsilon of a user 10",
            "Your answer is changed at random on your device",
        ),
    ),
    ("opened/definition", [], ("answers = 20",)),
    (
        "dark",
        ["true", "false"],
        (r"\d\d to \d\d of 100 answers are yes .* Rough", "dark_curated : both sides compared"),
    ),
    (
        "visits",
        [],
        ("Estimates come from releases", "Open the releases", r"^(?!.*\d+ (answers|reports))"),
    ),
]


@pytest.mark.parametrize(("path", "labels", "patterns"), PAGES, ids=[page[0] for page in PAGES])
def test_a_page_shows(
    analyst: Visitor, path: str, labels: list[Any], patterns: tuple[str, ...]
) -> None:
    page = analyst.get(f"/collections/{path}")
    shown = labels_of(page)

    assert page.status == 200
    assert len(shown) == len(labels)
    assert all(want in {each, ...} for each, want in zip(shown, labels, strict=True))
    assert page.lacks(*patterns) == []


def test_a_dot_lies_on_its_whisker_and_a_line_within_its_band(analyst: Visitor) -> None:
    """The same scale for all of a chart, so that the longest share is drawn farthest."""
    page = analyst.get("/collections/theme")
    whiskers = re.findall(
        r'whisker" x1="([\d.]+)%" x2="([\d.]+)%".*?dot" cx="([\d.]+)%"', page.html
    )
    places = [tuple(map(float, whisker)) for whisker in whiskers[:3]]
    drawn = re.findall(r'"band one" d="M(.*?)Z"/><path class="line one" d="M(.*?)"', page.html)
    band, line = drawn[0]
    outline, points = ([p.split() for p in each.split("L")] for each in (band, line))
    months = len(points)

    assert all(low < at < high for low, high, at in places)
    assert [at for _, _, at in places] == sorted((at for _, _, at in places), reverse=True)
    assert len(outline) == 2 * months == 10
    for (x, y), (_, top), (_, bottom) in zip(
        points, outline[:months], outline[: months - 1 : -1], strict=True
    ):
        assert 0 <= float(x) <= 100
        assert float(top) < float(y) < float(bottom)  # from the top
    assert page.html.count('class="dot hollow"') == 3  # November is open, for each of three values


def test_a_link_changes_one_parameter_and_keeps_the_other_parameters(analyst: Visitor) -> None:
    page = analyst.get("/collections/theme?segment=arm:B&level=0.9")

    assert "arm: B" in page.text
    assert page.links("A") == ["/collections/theme?segment=arm%3AA&level=0.9"]
    assert page.links("all")[-1] == "/collections/theme?level=0.9"
    assert page.links("last month") == [
        "/collections/theme?segment=arm%3AB&level=0.9&from=2026-12-01&to=2026-12-31"
    ]
    assert analyst.get("/collections/word?page=2").links("Next page") == [
        "/collections/word?page=3"
    ]


@pytest.mark.parametrize(
    ("name", "covers"), [("size", "noise only: not the details"), ("latency", "every edge at once")]
)
def test_distribution_histogram_and_quantiles_state_what_their_bands_cover(
    analyst: Visitor, name: str, covers: str
) -> None:
    page = analyst.get(f"/collections/{name}")

    assert f"The bands of distribution, histogram and quantiles cover {covers}" in page.text
    assert [row[0] for row in page.dots[1]][:2] == ["0 to 125", "125 to 250"]
    assert re.search(r"50\.00% \d+ \d+ to \d+", page.text)


PAGES_LONG = """
app = "acme-editor"
[pages]
question = "How many pages has the largest document?"
range = [0, 1000]
measure = "distribution"
epsilon = 1
unit = "day"
from = 2026-12-01
until = 2027-12-01
"""


def test_the_chart_over_time_of_a_distribution_fits_no_curve(tmp_path: Path) -> None:
    """Its points are the means of the query by time range, which fits a curve for each of them."""
    with deployment(tmp_path, PAGES_LONG) as deployed:
        for day in range(3):
            numbers = np.full(2_000, 0.2 + 0.2 * day)
            counted(send_numbers(deployed, "pages", numbers, period=day, seed=day))
        analyst = logged_in(deployed)
        fits = square_wave_em._fit.cache_info().misses
        page = analyst.get("/collections/pages")
        of_page = square_wave_em._fit.cache_info().misses - fits
        (link,) = (link for link in page.links("JSON") if "by=day" in link)
        ranges = json.loads(analyst.get(link).html)["series"][0]["ranges"]
    means = [row for each in ranges for row in each["figures"] if row["kind"] == "mean"]

    assert (of_page, square_wave_em._fit.cache_info().misses - fits) == (1, 4)
    for mean in means:
        assert number_interval(mean["low"], mean["high"]) in page.text


def test_a_failed_poisoning_test_is_shown_first(deployed: Deployment) -> None:
    """Many reports have the same message."""
    counted(send(deployed, "theme", [9_000, 0, 0]))
    report = deployed.report("theme")
    for _ in range(40):
        deployed.verdicts(*(deployed.report("theme", message=report.message) for _ in range(200)))
    text = logged_in(deployed).get("/collections/theme").text

    assert "Poisoning test failed. Fake or broken: 1 messages came more often" in text
    assert text.index("Poisoning test failed") < text.index("Usable")


def test_a_definition_has_its_whole_fingerprint(analyst: Visitor, stocked: Deployment) -> None:
    page = analyst.get("/collections/theme/definition")

    assert stocked.series("theme").fingerprint in page.text
    older = stocked.aggregator.known().catalog.by_name["theme"][1].fingerprint
    assert labels_of(analyst.get(f"/collections/theme?series={older}")) == ["light", "dark"]


# -- addresses and files ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "fix"),
    [
        ("theme?level=2", "give a number between 0 and 1"),
        ("theme?nothing=1", "nothing"),
        ("theme?segment=arm:C", "give one of arm:A, arm:B"),
        ("minutes?find=5", "this collection does not take it: remove it"),
        ("minutes?regress=hours", "this collection does not take it: remove it"),
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
    assert page.dots


@pytest.mark.parametrize("query", ["", "?level=0.9&segment=arm:A&view=consistent"])
def test_a_file_has_the_figures_of_the_chart(analyst: Visitor, query: str) -> None:
    page = analyst.get(f"/collections/theme{query}")
    sheet = analyst.get(page.links("CSV")[0])
    rows = list(csv.DictReader(io.StringIO(sheet.html)))
    shown = {row[0]: row[1:3] for row in page.dots[0]}
    series = json.loads(analyst.get(page.links("JSON")[1]).html)

    assert sheet.response.headers["Content-Type"].startswith("text/csv")
    assert {
        row["of"]: [
            figure(float(row["figure"]), of_shares=True),
            interval(float(row["low"]), float(row["high"]), of_shares=True),
        ]
        for row in rows
    } == shown
    assert series["by"] == "month"
    assert [each["n"] > 0 for each in series["series"][0]["ranges"]] == [True] * 6


def test_a_file_that_does_not_exist_is_refused(analyst: Visitor) -> None:
    files = {
        "theme/estimates.xls": 404,
        "visits/estimates.csv": 400,
        "theme/estimates.csv?top=0": 400,
    }

    assert {file: analyst.get(f"/collections/{file}").status for file in files} == files
