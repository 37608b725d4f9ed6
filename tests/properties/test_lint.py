"""Advice on a definition: each remark stands where it is due, and nowhere else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from veilcount_shared.collection import lint

from .definition_harness import parse_definition

MODEST = 'values = ["light", "dark"]\nepsilon = 0.5'
BOOLEAN = "boolean = true\n"
HUNDRED = f"values = {list(range(100))}\nepsilon = 0.5"
PLANE = f"values = {list(range(10_000))}\nepsilon = 0.5"  # too many for subset selection
MEAN = 'range = [0, 240]\nmeasure = "mean"\nepsilon = 0.5'
RUNNING = BOOLEAN + 'answers = 4\ntakes = "last"\n'
CURATED = BOOLEAN + 'answers = 4\nmodel = "central"\n'


def segments(values: int) -> str:
    return f"{MODEST}\nsegments = {{arm = {list(range(values))}}}"


@pytest.mark.parametrize(
    ("lines", "responses", "key", "text"),
    [
        # spends much
        (BOOLEAN + "epsilon = 1", 100_000, "epsilon", "reveals epsilon 12: above 10"),
        # an estimate that is too noisy to use
        (HUNDRED, 1_000, "epsilon", "average share of 100 values"),
        (PLANE, 100_000, "epsilon", "average share of 10,000 values"),
        (MODEST + '\npresence = "hidden"', 50, "epsilon", "average share of 3 values"),
        (MEAN, 100, "epsilon", "of the range: a narrower range"),
        # may identify a person
        (f'{MODEST}\ncross = {{homeCity = ["a", "b"]}}', 100_000, "cross", "homeCity may identify"),
        (
            *(f'{MODEST}\nsegments = {{homeCountry = ["a", "b"]}}', 100_000, "segments"),
            "homeCountry is sent in clear and may single people out: cross it instead",
        ),
        (segments(9), 100_000, "segments", "9 public cells"),
        # what held means
        (RUNNING + 'held = "process"', 100_000, "held", '"process": the answer is about the first'),
        (RUNNING + 'unit = "day"', 100_000, "held", '"process" (the default): the answer is'),
        (CURATED + 'held = "device"', 100_000, "held", '"device": the true value is kept on the'),
    ],
)
def test_a_definition_gets_the_remark_that_is_due(
    lines: str, responses: int, key: str, text: str
) -> None:
    remarks = lint(parse_definition(lines), responses)

    assert {remark.key for remark in remarks} == {key}
    assert text in "\n".join(remark.text for remark in remarks)


@pytest.mark.parametrize(
    ("lines", "responses"),
    [
        (MODEST, 100_000),
        (BOOLEAN + "epsilon = 1\nanswers = 10", 100_000),  # epsilon 10 a user: the limit itself
        (BOOLEAN + "epsilon = 10\nunit = 'user'", 100_000),
        (BOOLEAN + 'model = "central"\nbudget = 2', 100_000),  # it bounds releases, not reports
        (HUNDRED, 100_000_000),
        (PLANE, 10**12),
        (MEAN, 100_000),
        (f'{MODEST}\ncross = {{plan = ["a", "b"]}}', 100_000),
        (f'{MODEST}\nsegments = {{arm = ["a", "b"]}}', 100_000),
        (segments(8), 100_000),
        (BOOLEAN + "answers = 4", 100_000),  # a first value is frozen as it is recorded
        (CURATED, 100_000),
    ],
)
def test_a_definition_gets_no_remark_that_is_not_due(lines: str, responses: int) -> None:
    assert not lint(parse_definition(lines), responses)


PERSONAL = [
    *("country", "Home_Country", "home-city", "user"),
    *("homeCity", "HomeCity", "homeCityName2", "userIP"),
]
IMPERSONAL = ["theme", "countryside", "velocity", "page_views", "themeVelocity", "veloCitYear"]


@pytest.mark.parametrize("name", PERSONAL + IMPERSONAL)
def test_a_name_is_remarked_if_one_of_its_words_identifies_a_person(name: str) -> None:
    """In any case, and as one word of several: `city` within `velocity` is no city."""
    remarks = lint(replace(parse_definition(MODEST), name=name))
    expected = [("name", f"{name} may identify a person together with other answers")]

    assert [(remark.key, remark.text) for remark in remarks] == expected * (name in PERSONAL)


def test_a_definition_may_get_several_remarks() -> None:
    lines = f"values = {list(range(100))}\nepsilon = 1\nsegments = {{country = {list(range(9))}}}"
    remarks = lint(parse_definition(lines), 1000)

    assert [remark.key for remark in remarks] == ["epsilon", "epsilon", "segments", "segments"]
