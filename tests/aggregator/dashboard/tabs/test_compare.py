"""The compare tab: a sentence, each value with its interval, and the detectable difference."""

from __future__ import annotations

import re

import pytest

from tests.aggregator.api.deployment_fixtures import Deployment
from tests.aggregator.dashboard.page_fixtures import Visitor, logged_in
from tests.aggregator.queries.simulated_reports import compare, counted, send

NOVEMBER = "from=2026-11-01&to=2026-11-30"


def test_the_largest_difference_is_a_sentence_with_its_interval(
    answered: Deployment, analyst: Visitor
) -> None:
    """And the figures are those of the answer."""
    page = analyst.get(f"/collections/theme/compare?a=arm:A&b=arm:B&{NOVEMBER}")
    found = re.search(
        r"(light|dark) is (\S+) points \((\S+) to (\S+)\) (higher|lower) in arm A than in arm B\.",
        page.text,
    )
    answer = compare(answered, "theme", a="arm:A", b="arm:B", from_="2026-11-01", to="2026-11-30")

    assert found is not None
    row = max(answer.rows, key=lambda each: abs(each.difference))
    sign = 1 if row.difference > 0 else -1
    low, high = sorted((sign * row.low, sign * row.high))
    assert [float(each) / 100 for each in found.group(2, 3, 4)] == pytest.approx(
        [sign * row.difference, low, high], abs=0.0006
    )
    assert found[5] == ("higher" if row.difference > 0 else "lower")
    assert "Of 3 values compared, 2 differ, taken all together: light, dark." in page.text


def test_the_picture_is_in_points_with_an_interval_for_each_value(
    answered: Deployment, analyst: Visitor
) -> None:
    picture = analyst.get(f"/collections/theme/compare?{NOVEMBER}").charts["differences"]
    answer = compare(answered, "theme", a="arm:A", b="arm:B", from_="2026-11-01", to="2026-11-30")
    (part,) = picture["parts"]

    assert picture["labels"] == ["light", "dark", "system"]
    assert part["values"] == pytest.approx([100 * row.difference for row in answer.rows])
    assert part["low"] == pytest.approx([100 * row.low for row in answer.rows])
    assert part["high"] == pytest.approx([100 * row.high for row in answer.rows])
    assert picture["x"]["title"] == "A minus B, in points"


#: a claim: an address, the fields of the form, and patterns of the text
CLAIMS = {
    "two segments are compared by default": (
        "theme/compare",
        {"a": "arm:A", "b": "arm:B", "looks": "one"},
        ("n = 8,000", "n = 4,000", r"valid at one planned look\."),
    ),
    "intervals are valid at every look on request": (
        f"theme/compare?looks=every&{NOVEMBER}",
        {"looks": "every"},
        (r"valid at every look\.",),
    ),
    "no significant difference is stated with the detectable one": (
        "opened/compare",  # both weeks have the same true shares
        {},
        (
            r"No significant difference: less than \S+ points would not have",
            "is detected in 4 of 5 such comparisons",
        ),
    ),
    "of days the newest week is compared with the one before": (
        "opened/compare",
        {
            "a_from": "2026-11-28",
            "a_to": "2026-12-04",
            "b_from": "2026-11-21",
            "b_to": "2026-11-27",
        },
        ("open period: may still change", "^(?!.*worst correlation)"),
    ),
    "of months the newest is compared with the one before": (
        "theme/compare?by=days",
        {
            "a_from": "2026-11-01",
            "a_to": "2026-11-30",
            "b_from": "2026-10-01",
            "b_to": "2026-10-31",
        },
        ("from 2026-11-01 to 2026-11-30 than from 2026-10-01 to 2026-10-31", "worst correlation"),
    ),
    "the mean of a number is compared in its own units": (
        "ranges/compare",
        {},
        (
            r"The mean is \S+ \(\S+ to \S+\) higher in arm A than in arm B\.",
            "^(?!.*points)",
        ),
    ),
    "the level is chosen": ("theme/compare?level=0.99", {"level": "0.99"}, ("are at 99 %",)),
    "a trusted curator": ("curated/compare", {}, ("A curator holds these answers",)),
    "one definition, no segments": ("word/compare", {}, ("Nothing to compare yet",)),
    "one period": ("minutes/compare", {}, ("Nothing to compare yet",)),
}


@pytest.mark.parametrize("claim", CLAIMS)
def test_a_page_states(analyst: Visitor, claim: str) -> None:
    path, fields, patterns = CLAIMS[claim]
    page = analyst.get(f"/collections/{path}")

    assert page.status == 200
    assert {name: page.field(name) for name in fields} == fields
    assert page.lacks(*patterns) == []


def test_two_definitions_are_compared(answered: Deployment, analyst: Visitor) -> None:
    known = answered.aggregator.known().catalog.by_name["once"]
    newest, oldest = (each.fingerprint for each in known)
    page = analyst.get("/collections/once/compare")

    assert (page.field("a"), page.field("b")) == (f"series:{newest}", f"series:{oldest}")
    assert f"under definition {newest[:12]} than under definition {oldest[:12]}" in page.text


def test_only_the_chosen_values_are_compared(analyst: Visitor) -> None:
    page = analyst.get("/collections/theme/compare?values=light,dark")

    assert page.charts["differences"]["labels"] == ["light", "dark"]
    assert page.field("values") == "light,dark"


def test_a_side_without_reports_is_named(alone: Deployment) -> None:
    counted(send(alone, "theme", [10, 10, 10], period=1))
    page = logged_in(alone).get("/collections/theme/compare")

    assert "Nothing to compare: 30 answers of arm:A, 0 of arm:B." in page.text
    assert "Both sides need reports." in page.text


@pytest.mark.parametrize(
    ("query", "field", "fix"),
    [
        ("a=arm:Z&b=arm:B", "segment", "give one of arm:A, arm:B"),
        ("a=arm:A&b=level:1", "b", "it shares reports with a: give another"),
        ("by=days&a_from=2026-13-01&values=dark", "a", "there is no such day"),
        ("values=purple", "values", "no such value"),
        ("level=2", "level", "give a number between 0 and 1"),
    ],
)
def test_an_error_names_the_field_and_the_fix_and_keeps_the_form(
    analyst: Visitor, query: str, field: str, fix: str
) -> None:
    page = analyst.get(f"/collections/theme/compare?{query}")

    assert page.status == 400
    assert f"{field} : {fix}" in page.text
    typed = dict(each.split("=") for each in query.split("&"))
    assert page.field("values") == typed.get("values", "")


def test_an_unknown_collection_has_an_error_page(analyst: Visitor) -> None:
    page = analyst.get("/collections/themes/compare")

    assert page.status == 404
    assert "did you mean theme?" in page.text
