"""Advice: each remark stands where it is due, and nowhere else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.properties.definition_harness import parse_definition
from veilcount_shared.collection import lint

CALM = 'values = ["light", "dark"]\nepsilon = 0.5'


def keys(lines: str, answers: int = 100_000) -> list[str]:
    """Return the keys of the remarks on [q] with these lines, or on the collection they name."""
    return [remark.key for remark in lint(parse_definition(lines), answers)]


def texts(lines: str, answers: int = 100_000) -> str:
    """Return what the remarks on [q] say."""
    return "\n".join(remark.text for remark in lint(parse_definition(lines), answers))


def test_a_modest_collection_gets_no_remark() -> None:
    assert not lint(parse_definition(CALM))


# -- spends much -----------------------------------------------------------------------------------


def test_a_user_level_above_ten_is_remarked() -> None:
    assert keys("boolean = true\nepsilon = 1") == ["epsilon"]
    assert "reveals epsilon 12: above 10" in texts("boolean = true\nepsilon = 1")


@pytest.mark.parametrize("lines", ["epsilon = 1\nanswers = 10", "epsilon = 10\nunit = 'user'"])
def test_a_user_level_of_ten_is_not_remarked(lines: str) -> None:
    assert not keys(f"boolean = true\n{lines}")


def test_a_curators_budget_is_not_remarked() -> None:
    assert not keys('boolean = true\nmodel = "central"\nbudget = 2')


# -- sees little -----------------------------------------------------------------------------------


def test_more_values_than_the_answers_can_tell_apart_are_remarked() -> None:
    lines = f"values = {list(range(100))}\nepsilon = 0.5"

    assert keys(lines, answers=1_000) == ["epsilon"]
    assert "average share of 100 values" in texts(lines, answers=1_000)


def test_values_that_the_answers_can_tell_apart_are_not_remarked() -> None:
    assert not keys(f"values = {list(range(100))}\nepsilon = 0.5", answers=100_000_000)


def test_values_on_a_plane_are_remarked_alike() -> None:
    lines = f"values = {list(range(10_000))}\nepsilon = 0.5"

    assert "average share of 10,000 values" in texts(lines)
    assert not keys(lines, answers=10**12)


def test_hidden_presence_counts_as_one_value_more() -> None:
    lines = 'boolean = true\npresence = "hidden"\nepsilon = 0.5'

    assert "average share of 3 values" in texts(lines, answers=50)


def test_a_mean_that_a_tenth_of_the_range_would_not_hold_is_remarked() -> None:
    lines = 'range = [0, 240]\nmeasure = "mean"\nepsilon = 0.5'

    assert keys(lines, answers=100) == ["epsilon"]
    assert "of the range: a narrower range" in texts(lines, answers=100)


def test_a_mean_of_many_answers_is_not_remarked() -> None:
    assert not keys('range = [0, 240]\nmeasure = "mean"\nepsilon = 0.5')


# -- identifies ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "country",
        "Home_Country",
        "home-city",
        "user",
        "homeCity",
        "HomeCity",
        "homeCityName2",
        "userIP",
    ],
)
def test_a_name_that_points_at_a_person_is_remarked(name: str) -> None:
    remark = lint_named(name)

    assert remark == [("name", f"{name} may identify a person together with other answers")]


@pytest.mark.parametrize(
    "name", ["theme", "countryside", "velocity", "page_views", "themeVelocity", "veloCitYear"]
)
def test_a_name_that_only_contains_such_a_word_is_not_remarked(name: str) -> None:
    assert not lint_named(name)


def lint_named(name: str) -> list[tuple[str, str]]:
    """Return the remarks on a modest collection of this name."""
    return [
        (remark.key, remark.text) for remark in lint(replace(parse_definition(CALM), name=name))
    ]


def test_a_crossed_attribute_that_points_at_a_person_is_remarked() -> None:
    assert keys(f'{CALM}\ncross = {{gender = ["a", "b"]}}') == ["cross"]
    assert keys(f'{CALM}\ncross = {{homeCity = ["a", "b"]}}') == ["cross"]
    assert not keys(f'{CALM}\ncross = {{plan = ["a", "b"]}}')


@pytest.mark.parametrize("name", ["country", "homeCountry"])
def test_a_segment_that_points_at_a_person_is_remarked_as_sent_in_clear(name: str) -> None:
    lines = f'{CALM}\nsegments = {{{name} = ["a", "b"]}}'

    assert keys(lines) == ["segments"]
    assert f"{name} is sent in clear and may single people out: cross it instead" in texts(lines)


def test_a_segment_that_points_at_nobody_is_not_remarked() -> None:
    assert not keys(f'{CALM}\nsegments = {{arm = ["a", "b"]}}')


def test_more_than_eight_public_cells_are_remarked() -> None:
    assert keys(f"{CALM}\nsegments = {{arm = {list(range(9))}}}") == ["segments"]
    assert "9 public cells" in texts(f"{CALM}\nsegments = {{arm = {list(range(9))}}}")
    assert not keys(f"{CALM}\nsegments = {{arm = {list(range(8))}}}")


def test_remarks_add_up() -> None:
    lines = f"values = {list(range(100))}\nepsilon = 1\nsegments = {{country = {list(range(9))}}}"

    assert keys(lines, answers=1000) == ["epsilon", "epsilon", "segments", "segments"]


# -- held ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lines", "text"),
    [
        ('takes = "last"\nheld = "process"', '"process": the answer is about the first process'),
        ('takes = "last"\nheld = "process"', "suits a server that never restarts; the running"),
        ('takes = "last"\nheld = "device"', '"device": the running value is kept on the device'),
        ('takes = "any"\nunit = "day"', '"process" (the default): the answer is'),
        ('model = "central"\nheld = "process"', '"process": the true value is in memory only'),
        ('model = "central"\nheld = "device"', '"device": the true value is kept on the device'),
    ],
)
def test_what_held_means_is_remarked(lines: str, text: str) -> None:
    lines = f"boolean = true\nanswers = 4\n{lines}"
    assert keys(lines) == ["held"]
    assert text in texts(lines)


@pytest.mark.parametrize("lines", ["", 'model = "central"'])
def test_nothing_is_remarked_of_a_first_value(lines: str) -> None:
    assert not keys(f"boolean = true\nanswers = 4\n{lines}")
