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
    """Return the first chart."""
    return next(iter(page.charts.values()))


def has_ends_around(part: dict[str, Any]) -> bool:
    """Whether each figure lies within its interval."""
    ends = zip(part["low"], part["values"], part["high"], strict=True)
    return all(low < value < high for low, value, high in ends)


#: a claim: an address, and patterns of the text that follow each other in any order
TEXTS = {
    "the conclusion comes first, with n and its days": (
        "theme",
        r"Usable: \+/- 0\.6 points n = 27,751 answers, UTC days 2026-07-01 to 2026-12-31",
        r"2026-12-31; the latest period is still open\.",
    ),
    "five values or fewer: individual": ("country?simultaneous=false", "at 95 %, individual"),
    "above five values intervals are simultaneous": ("country", "at 95 %, simultaneous"),
    "intervals are valid at one look": ("country", "simultaneous, valid at one planned look"),
    "intervals are valid at every look": ("country?looks=every", "simultaneous, valid at every"),
    "the mean has its interval": (
        "minutes",
        r"Mean \d+\.\d \d+\.\d to \d+\.\d interval at 95.%, valid at one planned look",
        "look, of these n answers",
    ),
    "the mean is valid at every look": ("minutes?looks=every", "at 95.%, valid at every look"),
    "the conclusion is on the intervals shown": ("minutes?looks=every", r"(Rough|Insufficient): "),
    "hidden presence: shares of all": ("help", r"Usable: \+/- 1\.8 points"),
    "hidden presence: shares of those who answered": (
        "help?among=answered",
        r"Rough: \+/- 3\.6 points",
        "of those who answered, of these n answers",
    ),
    "the number of significant values": (
        "word",
        r"\d of 2,000 values are significant: above what noise alone produces",
    ),
    "unknown values are named": ("theme?values=dark&values=drak", "There is no value named drak."),
    "rejected and lost reports": (
        "theme",
        "42 too late devices were offline",
        "1 duplicate a repeated report",
        r"1 to 9 reports of 2 devices each expired before they were sent\.",
    ),
    "definitions are shown one by one, with the changes": (
        "theme",
        r"Rough: \+/- 5\.5 points",
        r'Changes in the next definition 1 value is new: \["system"\] epsilon was 1, is 2',
        "1,200 answers, for UTC days 2026-06-01 to 2026-06-30",
    ),
    "the guarantee and the definition": (
        "opened",
        "Epsilon of one event 0.5 Epsilon of a UTC day 0.5 Epsilon of a user 10",
        "Each answer is randomized on the device",
        "answers = 20",
    ),
    "a paired collection is compared": (
        "dark",
        r"Paired collection dark \(n = 4,000\) uses local privacy, dark_curated",
        r"true 2\d\.\d+% \(.*?\) not released",
    ),
    "a chosen segment": ("theme?segment=arm:B&level=0.9", "arm: B"),
}


@pytest.mark.parametrize("claim", TEXTS)
def test_a_page_states(analyst: Visitor, claim: str) -> None:
    path, *patterns = TEXTS[claim]
    page = analyst.get(f"/collections/{path}")

    assert page.status == 200
    assert page.lacks(*patterns) == []


LABELS: dict[str, tuple[str, list[Any]]] = {
    "presence hidden: absent reports are shown": ("help", [..., "absent"]),
    "presence hidden: those who answered": ("help?among=answered", ["menu", "search", ...]),
    "one part of a crossed domain": ("plan?group=plan", ["free", "paid"]),
    "all combinations of a crossed domain": ("plan", ["light · free", ...]),
    "a crossed value is found by its name": ("plan?find=dark %C2%B7 paid", ["dark · paid"]),
    "a long list shows its largest values": ("word", ["word-0000", "word-0001", ...]),
    "a long list has pages": ("word?page=2", ["word-0040", ...]),
    "a search finds parts of names": (
        "word?find=D-000",
        [f"word-{n:04}" for n in range(10)],
    ),
    "only known values are shown": ("theme?values=dark&values=drak", ["dark"]),
    "a share between two numbers": ("latency?values=100..300", ["100 to 300"]),
}


@pytest.mark.parametrize("claim", LABELS)
def test_a_chart_shows_these_values(analyst: Visitor, claim: str) -> None:
    path, expected = LABELS[claim]
    labels = first_chart(analyst.get(f"/collections/{path}"))["labels"]

    if expected[0] is ...:
        assert labels[1 - len(expected) :] == expected[1:]
    elif expected[-1] is ...:
        assert labels[: len(expected) - 1] == expected[:-1]
    else:
        assert labels == expected


def test_every_bar_has_its_interval_its_poisoning_band_and_a_row(analyst: Visitor) -> None:
    page = analyst.get("/collections/theme")
    chart = first_chart(page)
    (part,) = chart["parts"]

    assert chart["labels"] == ["light", "dark", "system"]
    assert has_ends_around(part)
    assert part["outer"]["name"] == "If 1% of the reports were fake"
    assert part["hover"][1].startswith("dark: 50.")
    assert "if 1% of these reports were fake" in page.text
    assert re.search(r"dark 50\.\d+% 49\.\d+% to 51\.\d+% 13,\d{3} of 27,751", page.text)


def test_shares_of_the_consistent_view_are_not_negative_and_add_up_to_1(analyst: Visitor) -> None:
    raw = first_chart(analyst.get("/collections/country"))["parts"][0]["low"]
    consistent = first_chart(analyst.get("/collections/country?view=consistent"))["parts"][0]

    assert min(raw) < 0
    assert min(consistent["values"]) >= 0
    assert sum(consistent["values"]) == pytest.approx(1)


def test_a_link_changes_one_segment_and_keeps_the_other_parameters(analyst: Visitor) -> None:
    page = analyst.get("/collections/theme?segment=arm:B&level=0.9")

    assert page.links("A") == ["/collections/theme?segment=arm%3AA&level=0.9"]
    assert page.links("all") == ["/collections/theme?level=0.9"]


def test_a_list_is_shown_in_parts(analyst: Visitor) -> None:
    largest, second, found = (
        analyst.get(f"/collections/word{query}") for query in ("", "?page=2", "?find=word")
    )

    assert len(first_chart(largest)["labels"]) == 25
    assert "Page 2 of 50, 2,000 values" in second.text
    assert second.links("Next page") == ["/collections/word?page=3"]
    assert len(first_chart(found)["labels"]) == 50
    assert "The first 50 matching values." in found.text


def test_a_search_without_a_match_proposes_a_near_name(analyst: Visitor) -> None:
    page = analyst.get("/collections/word?find=wrod-0001")

    assert page.status == 400
    assert "no value has this in its name: did you mean word-0001" in page.text
    assert page.field("find") == "wrod-0001"


@pytest.mark.parametrize(
    ("name", "tag", "covers"),
    [
        ("size", "noise only", "noise only: not the details"),
        ("latency", "guaranteed", "every edge at once"),
    ],
)
def test_distribution_histogram_and_quantiles_state_what_their_bands_cover(
    analyst: Visitor, name: str, tag: str, covers: str
) -> None:
    page = analyst.get(f"/collections/{name}")
    bars = [each for each in page.charts.values() if each["kind"] == "bars"]

    assert f"{tag} The bands of distribution, histogram and quantiles cover {covers}" in page.text
    assert bars[0]["labels"][0] == "0 to 125"
    assert all(
        low < high
        for each in bars
        for part in each["parts"]
        for low, high in zip(part["low"], part["high"], strict=True)
    )
    assert re.search(r"50% \d+ \d+ to \d+", page.text)


def test_lines_have_bands_and_hollow_points_in_open_periods(analyst: Visitor) -> None:
    page = analyst.get("/collections/theme")
    (chart,) = [each for each in page.charts.values() if each["kind"] == "lines"]
    dark = next(part for part in chart["parts"] if part["name"] == "dark")

    assert dark["x"][0] == "2026-07-01"
    assert dark["open"] == [4]
    assert has_ends_around(dark)
    assert "Not drawn, too few reports: 2026-12-01 to 2026-12-31 (n = 1)." in page.text


def test_time_ranges_are_long_enough_for_an_adequate_sample_by_default(analyst: Visitor) -> None:
    usual, daily = (analyst.get(f"/collections/opened{query}") for query in ("", "?by=day"))

    assert "Shares by month, raw" in usual.text
    assert "Shares by day, raw: UTC days 2026-11-28 to 2026-12-03" in daily.text


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
    older = page.links(r"[0-9a-f]{8}")[-1]

    assert stocked.series("theme").fingerprint in page.text
    assert first_chart(analyst.get(older))["labels"] == ["light", "dark"]


def test_a_central_collection_has_no_estimate_and_links_to_its_releases(analyst: Visitor) -> None:
    page = analyst.get("/collections/visits")

    assert "Estimates come from releases" in page.text
    assert page.links("Open the releases") == ["/collections/visits/releases"]
    assert page.charts == {}
    assert not re.search(r"\d+ (answers|reports)", page.text)


# -- addresses and files ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "query",
    [
        "level=2", "level=x", "by=day", "from=2030-01-01", "from=yesterday", "nothing=1", "top=0",
        "segment=arm:C", "segment=leg:A", "series=abc", "among=answered", "page=9", "fakes=1",
        "values=zz", "view=none", "group=x",
    ],
)  # fmt: skip
def test_an_invalid_query_is_refused_above_the_default_view(analyst: Visitor, query: str) -> None:
    page = analyst.get(f"/collections/theme?{query}")

    assert page.status == 400
    assert 'role="alert"' in page.html
    assert "The default view is shown." in page.text
    assert "Usable: +/- 0.6 points" in page.text


@pytest.mark.parametrize("query", ["", "?level=0.9&segment=arm:A", "?view=consistent"])
def test_a_file_has_the_figures_of_the_chart(analyst: Visitor, query: str) -> None:
    page = analyst.get(f"/collections/theme{query}")
    sheet = analyst.get(page.links("CSV")[0])
    rows, part = list(csv.DictReader(io.StringIO(sheet.html))), first_chart(page)["parts"][0]

    assert sheet.response.headers["Content-Type"].startswith("text/csv")
    assert [float(row["frequency"]) for row in rows] == part["values"]
    assert [float(row["low"]) for row in rows] == part["low"]


def test_the_file_of_a_time_series_has_all_its_time_ranges(analyst: Visitor) -> None:
    found = json.loads(analyst.get(analyst.get("/collections/theme").links("JSON")[1]).html)

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
def test_a_file_that_does_not_exist_is_refused(analyst: Visitor, path: str, status: int) -> None:
    assert analyst.get(f"/collections/{path}").status == status
