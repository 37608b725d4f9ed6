"""`veilcount check`: what a file promises, what it will know, what to look at again."""

from __future__ import annotations

from pathlib import Path

import pytest

from ....client.device_fixtures import definitions_text
from .conftest import Type


def test_the_table_states_epsilons_errors_and_who_enforces_what(typed: Type, file: str) -> None:
    checked, printed = typed("check", file, "--json"), typed("check", file).out
    theme, _, minutes, _ = checked.json["collections"]
    row = next(line for line in printed.splitlines() if "window" in line)
    errors = [line for line in printed.splitlines() if "+/-" in line and "remark:" not in line]

    assert checked.code == 0
    assert [minutes["figures"][key] for key in ("event", "day", "user")] == ["0.5", "2", "14"]
    assert row.split()[:4] == ["minutes", "0.5", "2", "14"]
    assert [theme["linkage"], minutes["linkage"]] == ["collection", "period"]
    assert len(errors) == 4
    assert all("n = 100,000 reports" in line for line in errors)
    for text in (
        "true values, sent to a trusted curator",
        "the device refuses before it draws: at most 28 answers",
        "the server refuses beyond epsilon 1 a pseudonym and campaign",
        "the curator charges every release",
    ):
        assert text in printed


def test_the_error_is_that_of_n_answers(typed: Type, file: str) -> None:
    few, many = (
        typed("check", file, *n, "--json").json["collections"][0]["error"]["half_width"]
        for n in (("--n", "1000"), ("--devices", "100000"))
    )

    assert few == pytest.approx(10 * many)
    assert 0.005 < many < 0.01


def test_remarks_fail_a_strict_check_only(typed: Type, file: str, tmp_path: Path) -> None:
    loose, strict = typed("check", file), typed("check", file, "--strict")
    without = tmp_path / "plain.toml"
    without.write_text(RUNNING.replace('takes = "last"\n', ""), encoding="utf-8")

    assert (loose.code, strict.code) == (0, 1)
    assert "remark: epsilon:" in loose.out
    assert strict.out == loose.out
    assert "remark" in strict.err
    assert typed("check", str(without), "--strict").code == 0


RUNNING = """
app = "a"
[b]
question = "?"
boolean = true
takes = "last"
epsilon = 1
unit = "month"
from = 2026-01-01
until = 2026-04-01
"""
MEANINGS = {
    "process": "the answer is about the first process that recorded in the period",
    "device": "the running value is kept on the device's disk",
}


def test_a_long_period_needs_held_and_either_choice_is_explained(
    typed: Type, tmp_path: Path
) -> None:
    """Where a period is long and its value changes: what either choice means."""
    file = tmp_path / "running.toml"
    file.write_text(RUNNING, encoding="utf-8")
    refused = typed("check", str(file))

    assert refused.code == 2
    assert 'held = "process" (the answer is about the first process' in refused.err
    assert 'held = "device" (the running value is kept on the device)' in refused.err
    for held, means in MEANINGS.items():
        file.write_text(f'{RUNNING}held = "{held}"', encoding="utf-8")

        assert f'remark: held: "{held}": {means}' in typed("check", str(file)).out
        assert typed("check", str(file), "--json").json["collections"][0]["held"] == held


def test_each_question_of_a_group_has_its_part_of_the_devices(typed: Type, tmp_path: Path) -> None:
    file = tmp_path / "group.toml"
    tables = {name: {"unit": "user"} for name in "abc"}
    group = '[group.habits]\nquestions = ["a", "b"]\n'
    file.write_text(definitions_text(**tables) + group, encoding="utf-8")
    checked = typed("check", str(file), "--n", "9001")
    first, second, alone = typed("check", str(file), "--n", "9001", "--json").json["collections"]

    assert [row["n"] for row in (first, second, alone)] == [4500, 4500, 9001]
    assert [row["group"] and row["group"]["name"] for row in (first, alone)] == ["habits", None]
    assert checked.out.count("group habits: each device answers one of a, b, drawn") == 2
    assert "n = 4,500 reports" in checked.out


def test_a_change_is_shown_with_what_it_costs(typed: Type, file: str, tmp_path: Path) -> None:
    """In each format; the exit code says whether something is to be decided."""
    old = tmp_path / "old.toml"
    text = Path(file).read_text(encoding="utf-8")
    old.write_text(text, encoding="utf-8")
    same = typed("check", file, "--against", str(old))
    old.write_text(text[: text.index("[minutes]")], encoding="utf-8")
    changed = typed("check", file, "--against", str(old), "--format", "markdown")
    zero = typed("check", file, "--against", str(old), "--exit-zero")
    document = typed("check", file, "--against", str(old), "--json")

    assert (same.code, changed.code, zero.code, document.code) == (0, 1, 0, 1)
    assert "new: minutes, crash" in changed.out
    assert "| minutes | new |" in changed.out
    assert "need a decision" in changed.err
    assert "fix   minutes: new: consent does not cover it" in zero.out
    assert document.json["ok"] is False


def test_formats_are_of_a_comparison(typed: Type, file: str) -> None:
    refused = typed("check", file, "--format", "github")

    assert refused.code == 2
    assert "give --against" in refused.err
