"""`veilcount plan` and `veilcount contrast`: without a server, with or without a file."""

from __future__ import annotations

import pytest

from veilcount_analysis.text import number_format
from veilcount_analysis.text.number_format import sentence_case
from veilcount_shared import parse_collections

from .conftest import Type


def test_two_of_three_find_the_third(typed: Type) -> None:
    error = typed("plan", "--devices", "20000", "--epsilon", "1", "--json").json
    half = str(error["error"]["half_width"])
    devices = typed("plan", "--epsilon", "1", "--error", half, "--json").json
    epsilon = typed("plan", "--devices", "20000", "--error", half, "--json").json

    assert (error["found"], devices["found"], epsilon["found"]) == ("error", "devices", "epsilon")
    assert devices["devices"] == 20_000
    assert float(epsilon["epsilon"]) == pytest.approx(1, abs=1e-3)


def test_the_plain_sentence_and_the_definition_end_the_plan(typed: Type) -> None:
    printed = typed("plan", "--devices", "20000", "--epsilon", "1", "--values", "5").out
    text = printed[printed.index("app =") :]
    (planned,) = parse_collections(text, lambda _: []).values()

    assert "guesses a yes/no right at most 73.2 %" in printed
    assert planned.inputs == 5
    assert planned.epsilon == 1


def test_a_trust_model_and_two_arms_may_be_chosen(typed: Type) -> None:
    words = ("--devices", "20000", "--epsilon", "1", "--trust", "shuffled", "--arms", "2", "--json")
    planned = typed("plan", *words)

    assert planned.code == 0
    assert (planned.json["trust"], planned.json["arms"]) == ("shuffled", 2)


def test_open_strings_and_features_have_figures_of_their_own(typed: Type) -> None:
    numbers = ("--devices", "1000000", "--epsilon", "2")
    strings = typed("plan", *numbers, "--candidates", "1000000").out
    features = typed("plan", *numbers, "--features", "3").out

    assert "0.42%" in strings
    assert "of them have is found half of the time, among 1,000,000 candidates" in strings
    assert 'values = "open"' in strings
    assert "Two numbers that are spread evenly over their ranges: known to" in features
    assert 'measure = "moments"' in features


def test_the_rows_of_a_file_or_of_a_question(typed: Type, file: str) -> None:
    table = typed("contrast", "--epsilon", "1", "--values", "3", "--n", "10000")
    rows = typed("contrast", file, "theme", "--n", "10000", "--json").json["lines"]

    assert table.code == 0
    assert [row["row"] for row in rows] == [
        "local", "shuffled, same reports", "shuffled, same guarantee", "central",
        "central, Gaussian noise",
    ]  # fmt: skip
    assert rows[0]["cohort"]["half_width"] > rows[2]["cohort"]["half_width"]
    for row in rows:
        assert sentence_case(row["guarantee"]) in table.out
        assert number_format.around(row["cohort"]["half_width"], of_shares=True) in table.out
    assert "at n = 10,000: as requested. Predicted," in table.out
