"""The compare tab: a sentence, each value with its interval, and the detectable difference."""

from __future__ import annotations

import re
from math import ceil, floor

import pytest

from ....queries.simulated_reports import compare, counted, send
from ...api.deployment_fixtures import Deployment
from ..page_fixtures import Visitor, logged_in

NOVEMBER = "from=2026-11-01&to=2026-11-30"


def days(*ends: str) -> dict[str, str]:
    return dict(zip(("a_from", "a_to", "b_from", "b_to"), ends, strict=True))


def test_the_largest_difference_is_a_sentence_and_the_picture_has_all(
    answered: Deployment, analyst: Visitor
) -> None:
    page = analyst.get(f"/collections/theme/compare?a=arm:A&b=arm:B&{NOVEMBER}")
    found = re.search(
        r"(light|dark) is (\d+) to (\d+) of 100 (higher|lower) in arm A than in arm B\.", page.text
    )
    picture = page.charts["differences"]
    answer = compare(answered, "theme", a="arm:A", b="arm:B", from_="2026-11-01", to="2026-11-30")

    assert found is not None
    row = max(answer.rows, key=lambda each: abs(each.difference))
    sign = 1 if row.difference > 0 else -1
    low, high = sorted((sign * row.low, sign * row.high))
    assert [int(each) for each in found.group(2, 3)] == [floor(100 * low), ceil(100 * high)]
    assert found[4] == ("higher" if row.difference > 0 else "lower")
    assert "Of 3 values compared, 2 differ, taken all together: light, dark." in page.text
    assert answer.overall is not None
    assert answer.overall.sentence in page.text
    assert picture.labels == ("light", "dark", "system")
    assert picture.x.title == "A minus B, in points"
    for name, attribute in (("values", "difference"), ("low", "low"), ("high", "high")):
        expected = [100 * getattr(row, attribute) for row in answer.rows]
        assert getattr(picture.parts[0], name) == pytest.approx(expected)


#: an address, the fields of the form, and patterns of the text
PAGES = [
    (
        "theme",
        {"a": "arm:A", "b": "arm:B", "looks": "one"},
        ("n = 8,000", "n = 4,000", r"valid at one planned look\."),
    ),
    (f"theme?looks=every&{NOVEMBER}", {"looks": "every"}, (r"valid at every look\.",)),
    ("theme?level=0.99", {"level": "0.99"}, ("are at 99 %",)),
    # of months the newest is compared with the one before, of days the newest week
    (
        "theme?by=days",
        days("2026-11-01", "2026-11-30", "2026-10-01", "2026-10-31"),
        ("in Nov 2026 than in Oct 2026", "worst correlation"),
    ),
    (
        "opened",  # both weeks have the same true shares
        days("2026-11-28", "2026-12-04", "2026-11-21", "2026-11-27"),
        (
            "open period: may still change",
            "^(?!.*worst correlation)",
            r"No difference seen; one of \d+ of 100 would have been seen 4 times in 5\.",
            "true difference of a value chosen beforehand 19 times in 20",
        ),
    ),
    (
        "ranges",  # a mean is compared in its own units
        {},
        (r"The mean is \S+ to \S+ higher in arm A than in arm B\.", "^(?!.*points)"),
    ),
    ("curated", {}, ("A curator holds these answers",)),
    ("word", {}, ("Nothing to compare yet",)),  # one definition, no segments
    ("minutes", {}, ("Nothing to compare yet",)),  # one period
]


@pytest.mark.parametrize(("path", "fields", "patterns"), PAGES, ids=[page[0] for page in PAGES])
def test_a_page_states(
    analyst: Visitor, path: str, fields: dict[str, str], patterns: tuple[str, ...]
) -> None:
    name, _, query = path.partition("?")
    page = analyst.get(f"/collections/{name}/compare?{query}")

    assert page.status == 200
    assert {name: page.field(name) for name in fields} == fields
    assert page.lacks(*patterns) == []


def test_a_side_without_reports_is_named(alone: Deployment) -> None:
    counted(send(alone, "theme", [10, 10, 10], period=1))
    page = logged_in(alone).get("/collections/theme/compare")

    assert "Nothing to compare: 30 reports of arm:A, 0 of arm:B." in page.text
    assert "Both sides need reports." in page.text


@pytest.mark.parametrize(
    ("query", "field", "fix"),
    [
        ("a=arm:Z&b=arm:B", "segment", "give one of arm:A, arm:B"),
        ("by=days&a_from=2026-13-01&values=dark", "a", "there is no such day"),
        ("values=purple", "values", "no such value"),
    ],
)
def test_an_error_names_the_field_and_the_fix_and_keeps_the_form(
    analyst: Visitor, query: str, field: str, fix: str
) -> None:
    page = analyst.get(f"/collections/theme/compare?{query}")

    assert page.status == 400
    assert f"{field} : {fix}" in page.text
    typed = dict(part.split("=") for part in query.split("&"))
    assert page.field("values") == typed.get("values", "")
