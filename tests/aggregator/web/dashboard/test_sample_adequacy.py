"""Conclusions on a sample size, at its thresholds; changes between definitions; figures.

A figure has as many digits as its interval allows, and no exponent.
"""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction
from math import ceil, sqrt
from typing import Any

import pytest

from veilcount_aggregator.web.dashboard.charts import logarithmic_axis
from veilcount_aggregator.web.dashboard.collection.definition_history import changes, lines_of
from veilcount_analysis.kinds.registry import kind_of
from veilcount_analysis.kinds.sample_adequacy import (
    GOAL,
    ROUGH,
    ErrorModel,
    SampleAdequacy,
    Terms,
    observed_adequacy,
    rounded_up,
    sample_adequacy,
)
from veilcount_analysis.planning import QuestionShape, plan
from veilcount_analysis.text import number_format
from veilcount_analysis.text.number_format import FigureFormat
from veilcount_shared import Collection, parse_collections
from veilcount_shared.collection import Held, Measure
from veilcount_shared.definition_record import QuestionGroup

DEFINITION = """
app = "acme"
[it]
question = "What is it?"
epsilon = 1
unit = "month"
from = 2026-10-01
until = 2027-10-01
"""


def definition(more: str, **changed: str) -> Collection:
    text = DEFINITION
    for key, value in changed.items():
        text = re.sub(f"^{key} = .*$", f"{key} = {value}", text, flags=re.MULTILINE)
    return parse_collections(f"{text}{more}\n", lambda _: [])["it"]


def error_model(collection: Collection) -> ErrorModel:
    return kind_of(collection).error_model


YES_NO = definition("boolean = true")
THREE = definition('values = ["a", "b", "c"]')
MEAN = definition('range = [0, 240]\nmeasure = "mean"')
RANGES = definition('range = [0, 240]\nmeasure = "ranges"')
LONG = definition(f"values = [{', '.join(map(str, range(500)))}]")


@pytest.mark.parametrize("terms", [Terms(), Terms(0.99), Terms(sampled=True)])
@pytest.mark.parametrize("collection", [YES_NO, THREE, MEAN, RANGES, LONG])
def test_the_needed_n_is_the_least_that_meets_the_goal_and_there_the_tone_changes(
    collection: Collection, terms: Terms
) -> None:
    model, needed = (
        error_model(collection),
        sample_adequacy(error_model(collection), 1, terms).needed,
    )
    rough = ceil(needed / ROUGH**2)

    assert model.half_width(needed, terms) <= model.goal * (1 + 1e-9)
    assert model.half_width(needed - 1, terms) > model.goal
    shown = [
        sample_adequacy(error_model(collection), n, terms)
        for n in (needed, needed - 1, rough, rough - 1)
    ]
    assert [each.tone for each in shown] == ["good", "weak", "weak", "bad"]
    assert [each.usable for each in shown] == [True, True, True, False]


@pytest.mark.parametrize(
    ("collection", "goal", "question"),
    [
        (YES_NO, GOAL, {"values": 2}),
        (THREE, GOAL, {"values": 3}),
        (MEAN, 240 * GOAL, {"range": (Fraction(0), Fraction(240))}),
        (RANGES, GOAL, {"range": (Fraction(0), Fraction(240)), "measure": Measure.RANGES}),
    ],
)
def test_the_planner_computes_the_same_n(
    collection: Collection, goal: float, question: dict[str, Any]
) -> None:
    shape = QuestionShape(start=collection.start, **question)
    planned = plan(shape, epsilon=Fraction(1), error=goal)

    assert sample_adequacy(error_model(collection), 1).needed == planned.devices


def test_the_planner_computes_the_same_noise_line() -> None:
    shape = QuestionShape(start=LONG.start, values=500)
    planned = plan(shape, epsilon=Fraction(1), devices=1_000_000)

    assert error_model(LONG).half_width(1_000_000, Terms()) == pytest.approx(planned.detectable)


@pytest.mark.parametrize(
    ("collection", "n", "text"),
    [
        (YES_NO, 20_000, "Usable."),
        (YES_NO, 1_000, "Rough: from about 4,000 on, values are known to +/- 3 points."),
        (YES_NO, 2, "2 reports: too few. From about 440 on, values of 9% can be told from noise."),
        (YES_NO, 0, "No reports. From about 440 on, values of 9% can be told from noise."),
        (MEAN, 1, "1 report: too few. From about 480 on, means are known to +/- 22."),
        (RANGES, 1_000_000, "Usable."),
        (
            LONG,
            1_000_000,
            "Usable: values above 0.72% stand out from noise, all values compared at once.",
        ),
    ],
)
def test_the_verdict_is_a_sentence_in_the_units_of_its_question(
    collection: Collection, n: int, text: str
) -> None:
    assert sample_adequacy(error_model(collection), n).text == text


def test_an_observed_interval_scales_with_the_root_of_n_and_its_figures_are_rounded_up() -> None:
    assert observed_adequacy(error_model(YES_NO), 1_000, 2 * GOAL, Terms()) == SampleAdequacy(
        "weak", "Rough: from about 4,000 on, values are known to +/- 3 points.", 1_000, 4_000
    )
    expected = Terms().reach * sqrt(error_model(LONG).noise / 1_000)
    assert observed_adequacy(error_model(LONG), 1_000, expected, Terms()) == sample_adequacy(
        error_model(LONG), 1_000
    )
    found = {0.0301: 0.031, 0.03: 0.03, 2.01: 2.1, 14_001: 15_000, 14_000: 14_000, 9.91: 10}
    assert {x: rounded_up(x) for x in found} == found


# -- definitions -----------------------------------------------------------------------------------

OLD = definition('values = ["a", "b"]\nowner = "us"')


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (
            OLD,
            definition('values = ["b", "c"]\nper_day = 2', unit='"event"'),
            [
                '1 value is new: ["c"]', '1 value is removed: ["a"]',
                'unit was "month", is "event"', "per_day is new: 2",
                'linkage was "collection", is "period"', 'owner is removed; it was "us"',
            ],
        ),
        (YES_NO, THREE, ['3 values are new: ["a", "b", "c"]', "boolean is removed; it was true"]),
        (OLD, definition('values = ["b", "a"]\nowner = "us"'), ["the values are in another order"]),
        (OLD, OLD, []),
    ],
    ids=["values and keys", "another domain", "another order", "none"],
)  # fmt: skip
def test_changes_of_a_definition_are_sentences(
    old: Collection, new: Collection, expected: list[str]
) -> None:
    assert changes(old, new) == expected


def test_held_is_a_line_of_the_definition() -> None:
    """A definition on the page is a valid one."""
    old, new = (definition(f'boolean = true\ntakes = "any"\nheld = "{each}"') for each in Held)

    assert changes(old, new) == ['held was "process", is "device"']
    assert 'held = "device"' in list(lines_of(new))
    assert not any(line.startswith("held") for line in lines_of(YES_NO))


@pytest.mark.parametrize(
    "keys",
    [
        'values = ["a", "b"]\nother = "else"',
        'values = ["a", "b"]\nlabels = {de = ["x", "y"]}\npurpose = {de = "z", pt-BR = "w"}',
        'values = "open"',
        'values = "open"\ndiscover = true',
        'range = [0, 10]\nmeasure = "ranges"',
        'features = {a = [0, 1], b = [-2, 5]}\nmeasure = "moments"',
        'boolean = true\nmeasure = "trend"\nchanges = 1',
        'boolean = true\ntakes = "returning"',
        'boolean = true\ncross = {plan = ["free", "paid"]}',
        f'boolean = true\nanswers = 1\nlinkage = "token"\ntokens = "{"a" * 64}"',
    ],
)
def test_the_lines_of_a_definition_are_an_equal_file(keys: str) -> None:
    shown = definition(keys)
    text = "\n".join([f'app = "{shown.app}"', *lines_of(shown)])

    assert parse_collections(text, lambda _: []) == {shown.name: shown}


def test_the_group_is_a_table_of_its_own_after_the_definition() -> None:
    """A change of another question of the group is one of the digest."""
    groups = [QuestionGroup("habits", (YES_NO.name, "b"), digit * 64) for digit in "ab"]
    old, new = (replace(YES_NO, group=group) for group in groups)

    assert list(lines_of(old))[-2:] == ["[group.habits]", f'questions = ["{YES_NO.name}", "b"]']
    assert not any(line.startswith("group") for line in lines_of(old))
    assert [change.startswith("group was") for change in changes(old, new)] == [True]
    assert [change.startswith("group is new") for change in changes(YES_NO, new)] == [True]


# -- figures ---------------------------------------------------------------------------------------


def test_the_narrowest_interval_decides_the_digits_of_all_figures() -> None:
    shares, number, coarse, none = (
        FigureFormat.for_widths(widths, of_shares=widths != [35.0])
        for widths in ([0.2, 0.012], [35.0], [0.1], [float("nan"), 0.0])
    )

    assert shares.figure(0.31234) == "31.2%"
    assert shares.ends(0.019, 0.0634) == "1.9 to 6.3"
    assert [shares.signed(each) for each in (0.041, -0.041)] == ["+4.1", "-4.1"]
    assert number.figure(1234.56) == "1,235"
    for almost in (0.0, 0.0001, -0.0001):
        assert (coarse.signed(almost), coarse.bare(almost)) == ("0", "0")
    assert none.figure(0.5) == FigureFormat.for_widths([], of_shares=True).figure(0.5) == "50.0%"


def test_a_half_width_has_two_or_three_digits_and_no_exponent() -> None:
    shares = {0.0142: "+/- 1.4 points", 1.0: "+/- 100 points", 0.0: "+/- 0 points"}
    numbers = {1234.0: "+/- 1,230", 0.0004: "+/- 0.0004"}

    assert {x: number_format.around(x, of_shares=True) for x in shares} == shares
    assert {x: number_format.around(x, of_shares=False) for x in numbers} == numbers


@pytest.mark.parametrize(
    ("figures", "ticks"),
    [
        ([0.3, 20.0, None], ["0.2", "0.5", "1", "2", "5", "10", "20"]),
        ([0.41, 0.45], ["0.2", "0.5"]),
        ([0.002, 300.0], ["0.001", "0.01", "0.1", "1", "10", "100", "1,000"]),
        ([None, 0.0], ["1"]),
    ],
)
def test_a_logarithmic_axis_reaches_from_tick_to_tick(
    figures: list[float | None], ticks: list[str]
) -> None:
    drawn = logarithmic_axis("", figures)

    assert [text for _, text in drawn.ticks or ()] == ticks
    assert drawn.ends is not None
    assert all(drawn.ends[0] < figure < drawn.ends[1] for figure in figures if figure)
