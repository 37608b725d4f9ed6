"""The planner: any of devices, epsilon and margin from the other two; a definition to copy."""

from __future__ import annotations

import re
from html import unescape

import pytest

from veilcount_analysis.text.privacy_guarantees import epsilons
from veilcount_shared import Collection, parse_collections

from ..page_fixtures import Page, Visitor


def definition(page: Page, values: int = 2) -> Collection:
    """Return the definition that is there to copy: it must be one."""
    found = re.search(r'<pre id="toml"[^>]*>(.*?)</pre>', page.html, re.DOTALL)

    assert found is not None
    (made,) = parse_collections(unescape(found[1]), lambda _: map(str, range(values))).values()
    return made


def test_the_page_opens_with_a_common_plan_that_begins_today(analyst: Visitor) -> None:
    page = analyst.get("/plan")

    assert "With 20,000 people and epsilon 1 a month," in page.text
    assert "Someone who sees one answer guesses a yes/no right at most 73.2 %" in page.text
    assert str(definition(page).start) == "2026-12-05"


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ("devices=20000&margin=1.5", "each share is known to +/- 1.5 points."),
        ("epsilon=1&margin=1.331", "With 19,9"),
        ("epsilon=1&margin=2&unit=user", "and epsilon 1, each share is known to +/- 2 points."),
        ("devices=20000&epsilon=1&unit=event", "epsilon 1 an event"),
        ("devices=20000&epsilon=1&arms=2", "the difference of two arms in each share is known to"),
        ("devices=20000&epsilon=1&trust=central", "epsilon 1 a month spent by a trusted curator"),
        ("kind=number&low=0&high=240&devices=20000&epsilon=1", "the mean is known to +/- "),
        ("kind=strings&devices=1000000&epsilon=2", "a string that 0.43% of them have is found"),
        ("kind=strings&epsilon=2&margin=0.5&candidates=1000", "among 1,000 candidates."),
        (
            "kind=strings&devices=20000&epsilon=1&trust=central",
            "a string is found half of the time if 33 of them have it.",
        ),
        ("kind=features&devices=1000000&epsilon=1", "each moment is known to +/- 0.0118."),
        ("kind=tables&devices=100000&epsilon=1&questions=2 3 3", "each cell is known to +/- "),
        ("kind=several&devices=20000&epsilon=1", "few tick is known to +/- 3.5 points"),
        ("kind=several&most=&devices=20000&epsilon=1", "few tick is known to +/- 4.6 points"),
        ("kind=features&epsilon=1&margin=0.02&features=10", "With 2,"),
    ],
)
def test_two_numbers_give_the_third_in_a_sentence(
    analyst: Visitor, query: str, sentence: str
) -> None:
    page = analyst.get(f"/plan?{query}")

    assert page.status == 200
    assert sentence in page.text
    assert page.text.count(" computed ") == 1
    for name, value in (part.split("=") for part in query.split("&")):
        assert page.field(name).replace(",", "") == value


@pytest.mark.parametrize(
    ("query", "values"),
    [
        ("devices=5000&epsilon=0.7&values=10&unit=week&periods=20", 10),
        ("devices=5000&epsilon=2&unit=user&values=2,000", 2000),
        ("devices=5000&epsilon=0.5&kind=number&low=-1.5&high=2&unit=day", 2),
        ("devices=5000&epsilon=1&trust=central&unit=user", 2),
    ],
)
def test_the_three_epsilons_are_those_of_the_definition_to_copy(
    analyst: Visitor, query: str, values: int
) -> None:
    page = analyst.get(f"/plan?{query}")
    promised = epsilons(definition(page, values))

    for level in ("event", "day", "user"):
        assert f"Epsilon, {level} {getattr(promised, level)} " in page.text


def test_with_a_shuffler_the_page_states_both_costs_and_who_comes_too_late(
    analyst: Visitor,
) -> None:
    page = analyst.get("/plan?devices=5000&epsilon=1&trust=shuffled")
    planned = definition(page)

    assert planned.epsilon == 4
    assert planned.batch is not None
    assert planned.batch.covers == 110
    assert "epsilon 4 a report, 1 a month behind an independent shuffler" in page.text
    assert "of one batch against the server alone, at delta 0.000001; of the report, 4" in page.text
    assert "epsilon 4 a month, 48 in 12 months" in page.text
    assert "Reports that come too late" in page.text
    assert [part.name for part in page.charts["margins"].parts] == [
        f"epsilon {epsilon}" for epsilon in ("0.5", 1, 2)
    ]


def test_no_string_is_found_that_more_than_all_have(analyst: Visitor) -> None:
    page = analyst.get("/plan?kind=strings&devices=1000000&epsilon=2")
    shares = [value for part in page.charts["margins"].parts for value in part.values]

    assert None in shares
    assert max(share for share in shares if share is not None) <= 100
    assert re.search(r" 100 none \d+\.\d+% ", page.text)


def test_the_curve_falls_and_more_epsilon_lies_below(analyst: Visitor) -> None:
    picture = analyst.get("/plan?devices=3000&epsilon=1.5").charts["margins"]
    parts = picture.parts
    starts = [part.values[0] for part in parts]

    assert [part.name for part in parts] == [f"epsilon {x}" for x in ("0.5", 1, "1.5", 2, 4)]
    assert [part.dashed for part in parts] == [True, True, False, True, True]
    for values in (starts, *(part.values for part in parts)):
        assert list(values) == sorted(values, reverse=True)
    assert picture.rule == (3000, "3,000 people")


@pytest.mark.parametrize(
    ("query", "name", "fix"),
    [
        ("devices=5000&epsilon=1&margin=2", "devices", "leave the one to compute empty"),
        ("devices=many&epsilon=1", "devices", "Give a whole number"),
        ("devices=5000&margin=-3", "margin", "Give half the width of an interval"),
        ("devices=50&margin=0.0001&kind=strings", "margin", "Out of reach even at epsilon"),
        ("devices=50&margin=0.0001", "margin", "Out of reach even at epsilon"),
        ("devices=5000&epsilon=1&kind=number&low=5&high=1", "low", "Give the lower number first"),
        ("devices=5000&epsilon=1&unit=year", "unit", "Give one of event, day"),
    ],
)
def test_an_error_is_shown_at_its_field_and_the_form_is_kept(
    analyst: Visitor, query: str, name: str, fix: str
) -> None:
    page = analyst.get(f"/plan?{query}")
    (words,) = re.findall(rf'id="{name}-wrong" role="alert">([^<]*)<', page.html)

    assert page.status == 400
    assert fix in unescape(words)
    assert f'aria-invalid="true" aria-describedby="{name}-wrong"' in page.html
    assert page.field("devices") == re.findall(r"devices=(\w+)", query)[0]
