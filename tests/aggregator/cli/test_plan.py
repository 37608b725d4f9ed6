"""`veilcount plan` and `veilcount contrast`: without a server, with or without a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from veilcount_shared import parse_collections

from .conftest import Type
from .store_fixtures import written


def test_two_of_three_find_the_third(typed: Type) -> None:
    error = typed("plan", "--devices", "20000", "--epsilon", "1", "--json").json
    half = str(error["error"]["half_width"])
    devices = typed("plan", "--epsilon", "1", "--error", half, "--json").json
    epsilon = typed("plan", "--devices", "20000", "--error", half, "--json").json

    assert (error["found"], devices["found"], epsilon["found"]) == ("error", "devices", "epsilon")
    assert devices["devices"] == 20_000
    assert float(epsilon["epsilon"]) == pytest.approx(1, abs=1e-3)


def test_epsilon_is_read_exactly(typed: Type) -> None:
    assert typed("plan", "--devices", "9", "--epsilon", "0.7", "--json").json["epsilon"] == "0.7"


def test_the_plain_sentence_and_the_definition_end_the_plan(typed: Type) -> None:
    printed = typed("plan", "--devices", "20000", "--epsilon", "1", "--values", "5").out
    text = printed[printed.index("app =") :]
    (planned,) = parse_collections(text, lambda _: []).values()

    assert "guesses a yes/no right at most 73.2 %" in printed
    assert planned.inputs == 5
    assert planned.epsilon == 1


@pytest.mark.parametrize("model", ["local", "shuffled", "central"])
@pytest.mark.parametrize("arms", ["1", "2"])
def test_every_model_plans_one_arm_or_two(typed: Type, model: str, arms: str) -> None:
    words = ("--devices", "20000", "--epsilon", "1", "--trust", model, "--arms", arms, "--json")
    planned = typed("plan", *words)

    assert planned.code == 0
    assert (planned.json["trust"], planned.json["arms"]) == (model, int(arms))


def test_the_four_rows_stand_with_guarantee_and_interval(typed: Type, tmp_path: Path) -> None:
    file = str(written(tmp_path))
    table = typed("contrast", file, "theme", "--n", "10000")
    rows = typed("contrast", file, "theme", "--n", "10000", "--json").json["lines"]

    assert table.code == 0
    assert [row["row"] for row in rows] == [
        "local", "shuffled, same reports", "shuffled, same guarantee", "central",
    ]  # fmt: skip
    assert rows[0]["cohort"]["half_width"] > rows[2]["cohort"]["half_width"]
    assert all(row["guarantee"] in table.out for row in rows)
    assert "n = 10,000 answers, predicted" in table.out


def test_a_contrast_needs_no_file(typed: Type, tmp_path: Path) -> None:
    file = str(written(tmp_path))
    planned = typed("contrast", "--epsilon", "1", "--values", "3", "--n", "10000", "--json").json
    filed = typed("contrast", file, "theme", "--n", "10000", "--json").json

    assert planned["lines"][0]["cohort"] == filed["lines"][0]["cohort"]
