"""`veilcount plan` and `veilcount contrast`: without a server, with or without a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from veilcount_analysis.text import number_format
from veilcount_analysis.text.number_format import sentence_case
from veilcount_shared import parse_collections

from .conftest import Type


def test_the_plain_sentence_and_the_definition_end_the_plan(typed: Type) -> None:
    printed = typed("plan", "--devices", "20000", "--epsilon", "1", "--values", "5").out
    text = printed[printed.index("app =") :]
    (planned,) = parse_collections(text, lambda _: []).values()

    assert "guesses a yes/no right at most 73.2 %" in printed
    assert planned.inputs == 5
    assert planned.epsilon == 1


def test_a_design_effect_is_planned_with_its_term(typed: Type) -> None:
    planned = typed("plan", "--epsilon", "1", "--error", "0.02", "--weights", "1.7")

    assert planned.code == 0
    assert "Weights: So many people say as much as 8," in planned.out


@pytest.mark.parametrize(
    "shape",
    [("--values", "3"), ("--public",), ("--range", "0..9", "--measure", "ranges"),
     ("--candidates", "500"), ("--features", "2"), ("--questions", "2,3"),
     ("--several", "6", "--most", "2"), ("--several", "6")],
)  # fmt: skip
def test_a_shuffled_plan_ends_with_an_entry_that_is_accepted_and_with_fewer_covers_refused(
    typed: Type, tmp_path: Path, shape: tuple[str, ...]
) -> None:
    words = ("--trust", "shuffled", "--devices", "20000", "--epsilon", "1", *shape)
    printed, planned = typed("plan", *words).out, typed("plan", *words, "--json").json
    text, covers = printed[printed.index("app =") :], planned["batch"]["covers"]
    file, wrong = tmp_path / "planned.toml", tmp_path / "wrong.toml"
    file.write_text(text, encoding="utf-8")
    wrong.write_text(text.replace(f"covers = {covers}", f"covers = {covers - 1}"), encoding="utf-8")

    assert typed("check", str(file)).code == 0
    assert f"give {covers:,} or more" in typed("check", str(wrong)).err


def test_the_error_that_check_states_has_the_covers_in_it(typed: Type, tmp_path: Path) -> None:
    """Planted: as many devices without covers err less."""
    words = ("--trust", "shuffled", "--devices", "1000", "--epsilon", "1", "--values", "3")
    printed, planned = typed("plan", *words).out, typed("plan", *words, "--json").json
    file = tmp_path / "planned.toml"
    file.write_text(printed[printed.index("app =") :], encoding="utf-8")
    (row,) = typed("check", str(file), "--n", "1000", "--json").json["collections"]
    alone = typed("plan", "--devices", "1000", "--epsilon", "4", "--values", "4", "--json").json

    assert row["error"] == planned["error"]
    assert row["error"]["half_width"] > 1.3 * alone["error"]["half_width"]


def test_a_shuffled_plan_states_both_costs_the_local_one_first(typed: Type) -> None:
    words = ("--trust", "shuffled", "--devices", "20000", "--epsilon", "1", "--values", "3")
    printed = typed("plan", *words).out
    together = "Shuffler and server together: epsilon 4 a month, 48 in 12 months"
    alone = "The server alone, if the shuffler keeps its word: epsilon 1 a month, 3.65 in 12 months"

    assert printed.index(together) < printed.index(alone)
    assert "every week          70.03%  43.66%  19.24%" in printed
    assert "52" not in printed[printed.index(together) :].partition("Mechanisms")[0]


@pytest.mark.parametrize(
    ("words", "fix"),
    [
        (("--trust", "shuffled", "--epsilon", "1", "--arms", "2"), "a batch is not split"),
        (("--trust", "shuffled", "--epsilon", "1", "--unit", "event"), "a batch is of a period"),
        (("--trust", "shuffled", "--epsilon", "4"), "less than a report's own epsilon, 4"),
        (("--trust", "shuffled", "--epsilon", "1", "--report", "5"), "at most 4"),
        (("--epsilon", "1", "--grace", "7"), "the terms of a batch are for shuffled"),
        (("--epsilon", "1", "--public"), "the terms of a batch are for shuffled"),
    ],
)
def test_what_no_batch_has_is_refused_by_name(
    typed: Type, words: tuple[str, ...], fix: str
) -> None:
    refused = typed("plan", "--devices", "20000", *words)

    assert refused.code != 0
    assert fix in refused.err


def test_open_strings_and_features_have_figures_of_their_own(typed: Type) -> None:
    numbers = ("--devices", "1000000", "--epsilon", "2")
    strings = typed("plan", *numbers, "--candidates", "1000000").out
    features = typed("plan", *numbers, "--features", "3").out
    curated = typed("plan", *numbers, "--candidates", "9", "--trust", "central").out

    assert "a string is found half of the time if 18 of them have it" in curated
    assert "gaussian  rho 0.0834417" in curated
    assert "0.43%" in strings
    assert "of them have is found half of the time, among 1,000,000 candidates" in strings
    assert 'values = "open"' in strings
    assert "Two numbers that are spread evenly over their ranges: known to" in features
    assert 'measure = "moments"' in features


def test_several_values_are_planned_by_the_mechanism_of_a_device(typed: Type) -> None:
    """n times the variance of a value that few tick: 6.5 of a set, 11.05 of a drawn bit."""
    words = ("plan", "--devices", "20000", "--epsilon", "1", "--several", "12")
    sets, bits = typed(*words, "--most", "3").out, typed(*words).out
    central = typed(*words, "--trust", "central")

    assert "+/- 3.5 points" in sets
    assert "+/- 4.6 points" in bits
    assert 'choose = "several"\nmost = 3\nepsilon' in sets
    assert 'choose = "several"\nepsilon' in bits
    assert central.code == 2
    assert "a curator has no query of several values: give local" in central.err


def test_tables_of_questions_are_planned_by_their_cells(typed: Type) -> None:
    printed = typed("plan", "--devices", "100000", "--epsilon", "1", "--questions", "2,3,3").out
    refused = typed("plan", "--devices", "100000", "--epsilon", "1", "--questions", "2,x")

    assert "each cell is known to +/-" in printed
    assert "The share of an answer to one question: known to +/-" in printed
    assert "questions = {a = [1, 2], b = [1, 2, 3], c = [1, 2, 3]}\ntables = true" in printed
    assert "give a whole number" in refused.err


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
