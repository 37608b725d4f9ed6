"""`veilcount simulate`: the truth with the estimates of two models."""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from veilcount_analysis.kinds import shuffled_simulation
from veilcount_analysis.kinds.source import Tally
from veilcount_analysis.mechanisms.hashed_strings import HashedStringsHandler
from veilcount_analysis.mechanisms.moments import MomentsHandler
from veilcount_analysis.privacy.shuffled import shuffled_error
from veilcount_analysis.simulation.true_values import apportion
from veilcount_shared.mechanisms import SubsetSelection

from ....client.device_fixtures import definitions_text
from .conftest import Type


def test_the_intervals_hold_the_truth_that_was_typed(typed: Type, file: str) -> None:
    """Three intervals at 0.9999: with another seed, one of them would miss 3 times in 10,000."""
    printed = typed(
        "simulate", file, "theme", "--n", "100000", "--seed", "3", "--level", "0.9999", "--json",
        "--truth", "dark=3", "--truth", "light=1",
    ).json  # fmt: skip
    rows = {row["value"]: row for row in printed["values"]}

    assert {name: row["truth"] for name, row in rows.items()} == {
        "dark": 0.75, "light": 0.25, "system": 0,
    }  # fmt: skip
    for row in rows.values():
        widths = [row[model]["high"] - row[model]["low"] for model in ("local", "central")]
        assert widths[0] > 10 * widths[1]
    assert all(row["local"]["low"] <= row["truth"] <= row["local"]["high"] for row in rows.values())
    assert all(abs(row["central"]["value"] - row["truth"]) < 1e-3 for row in rows.values())


def test_a_seed_gives_the_same_figures_and_none_gives_others(typed: Type, file: str) -> None:
    words = ("simulate", file, "theme", "--n", "999")
    one, same = (typed(*words, "--seed", "5").out for _ in "ab")
    drawn, again = (typed(*words, "--json").json["seed"] for _ in "ab")

    assert one == same
    assert drawn != again
    for text in (
        "n = 999 devices, one answer each, epsilon 1",
        "of the answers in these n reports",
        "interval",
    ):
        assert text in one


def test_a_number_shows_its_mean(typed: Type, file: str) -> None:
    (row,) = typed(
        "simulate", file, "minutes", "--n", "50000", "--truth", "60=1", "--seed", "2", "--json"
    ).json["values"]

    assert row["truth"] == pytest.approx(60)
    assert row["local"]["low"] <= 60 <= row["local"]["high"]


BODY = {"features": {"age": [0, 100], "hours": [0, 60]}, "measure": "moments"}
HABITS = {
    "questions": {"theme": ["light", "dark"], "walk": ["no", "yes"], "pet": [1, 2, 3]},
    "tables": True,
}
OPEN = {"values": "open"}
LETTERS = OPEN | {"discover": True}
CURATED = {"model": "central", "budget": 2, "delta": 1e-6, "noise": "laplace"}
YEAR = {"unit": "month", "from": "2026-11-01", "until": "2027-11-01"}
OTHERS = definitions_text(
    "acme",
    {"epsilon": 4, "unit": "user", "from": "2026-11-01", "until": "2027-01-01"},
    word=OPEN | {"epsilon": 2},
    curated=OPEN | CURATED,
    letters=LETTERS,
    state=YEAR | {"measure": "trend", "changes": 1},
    body=BODY,
    habits=HABITS,
)


@pytest.fixture
def others(tmp_path: Path) -> str:
    """Open strings and features."""
    path = tmp_path / "others.toml"
    path.write_text(OTHERS, encoding="utf-8")
    return str(path)


def test_open_strings_are_found_or_not_and_shown_with_the_truth(typed: Type, others: str) -> None:
    """Two intervals at 0.9999: with another seed, one of them would miss 2 times in 10,000."""
    words = (
        "simulate", others, "word", "--n", "100000", "--seed", "3", "--level", "0.9999",
        "--truth", "often=60", "--truth", "less often=39", "--truth", "hardly=0.01",
        "--candidates", "500",
    )  # fmt: skip
    printed = typed(*words, "--json").json
    often, less, hardly = printed["values"]

    assert [row["value"] for row in (often, less, hardly)] == ["often", "less often", "hardly"]
    assert all(row["local"]["low"] < row["truth"] < row["local"]["high"] for row in (often, less))
    assert hardly["truth"] < printed["search"]["least_share"] < 0.02
    assert hardly["local"] is None
    assert (printed["search"]["found"], printed["search"]["false"]) == (2, 0)
    assert printed["search"]["candidates"] == 500


def test_a_curator_releases_strings_that_local_reports_do_not_show(
    typed: Type, others: str
) -> None:
    """One interval at 0.9999: with another seed it would miss 1 time in 10,000."""
    words = (
        "simulate", others, "curated", "--n", "100000", "--seed", "3", "--level", "0.9999",
        "--truth", "often=999", "--truth", "rarely=1", "--candidates", "500",
    )  # fmt: skip
    printed, text = typed(*words, "--json").json, typed(*words).out
    _, rarely = printed["values"]

    assert rarely["central"]["low"] <= rarely["truth"] <= rarely["central"]["high"]
    assert rarely["local"] is None
    assert (printed["search"]["found"], printed["local"]["found"]) == (2, 1)
    assert (printed["release"]["threshold"], printed["release"]["epsilon"]) == (8, "2")
    assert "epsilon 2 and delta 0.000001 (add-remove)" in text
    assert "released half of the time if 8 people have it" in text


def test_a_distribution_of_invented_strings_shows_how_many_are_found(
    typed: Type, others: str
) -> None:
    """With 100,000 reports at epsilon 2 a string of 1.2 % is found half of the time."""
    words = ("simulate", others, "word", "--n", "100000", "--seed", "1", "--strings", "100")
    printed = typed(*words, "--truth", "zipf:1", "--top", "100", "--candidates", "300").out

    assert re.search("string 3 +6.43% +6.", printed)
    assert re.search("string 100 +0.19% +not found", printed)
    assert re.search("found: [0-9]+ of the 100 strings .*, 10 of the 10 most frequent", printed)
    assert "0 of 200 candidates" in printed


def test_moments_are_shown_with_the_true_ones_in_their_units(typed: Type, others: str) -> None:
    """Eight intervals at 0.9999: with another seed, one of them would miss 8 times in 10,000."""
    words = (
        "simulate", others, "body", "--n", "200000", "--seed", "2", "--level", "0.9999",
        "--correlation", "0.3", "--regress", "hours",
    )  # fmt: skip
    printed, table = typed(*words, "--json").json, typed(*words).out
    rows = {(row["kind"], *row["of"]): row for row in printed["moments"]}

    assert rows["mean", "age"]["truth"] == pytest.approx(50)
    assert rows["deviation", "hours"]["truth"] == pytest.approx(60 / 12**0.5)
    assert rows["correlation", "age", "hours"]["truth"] == pytest.approx(0.3)
    assert rows["coefficient", "hours", "age"]["truth"] == pytest.approx(0.3 * 60 / 100)
    assert all(row["low"] < row["truth"] < row["high"] for row in rows.values())
    assert "the truth is in 8 of 8 intervals stated" in table
    assert "of everybody who could have been asked" in table


def test_tables_are_shown_with_the_true_ones(typed: Type, others: str) -> None:
    """40 intervals at 0.9999: with another seed, one of them would miss 4 times in 1,000."""
    words = (
        "simulate", others, "habits", "--n", "200000", "--seed", "3", "--level", "0.9999",
        "--association", "0.4",
    )  # fmt: skip
    printed, table = typed(*words, "--json").json, typed(*words).out
    rows = {(row["kind"], str(row["of"])): row for row in printed["tables"]}

    assert rows["share", "{'theme': 'dark'}"]["truth"] == pytest.approx(0.5)
    assert rows["cell", "{'theme': 'dark', 'walk': 'yes'}"]["truth"] == pytest.approx(0.35)
    assert rows["within", "{'theme': 'dark', 'walk': 'yes'}"]["truth"] == pytest.approx(0.7)
    assert rows["odds_ratio", "['theme', 'walk']"]["truth"] == pytest.approx((0.35 / 0.15) ** 2)
    assert all(row["low"] < row["truth"] < row["high"] for row in rows.values())
    assert "the truth is in 40 of 40 intervals stated" in table
    assert typed(*words, "--pair", "walk,theme", "--truth", "zipf:1").code == 2
    assert len(typed(*words, "--pair", "walk,theme", "--json").json["tables"]) == 13


def test_weights_are_shared_out_without_loss() -> None:
    assert sorted(apportion(10, np.array([1.0, 1.0, 1.0]))) == [3, 3, 4]
    assert apportion(7, np.array([0.1, 0.2])).sum() == 7


def test_strings_are_found_letter_by_letter(typed: Type, others: str) -> None:
    """Two intervals at 0.9999, as above; the words have letters that no dictionary has taught."""
    words = (
        "simulate", others, "letters", "--n", "200000", "--seed", "3", "--level", "0.9999",
        "--truth", "otters=60", "--truth", "badger=39", "--truth", "hardly=0.01",
    )  # fmt: skip
    printed, table = typed(*words, "--json").json, typed(*words).out
    often, less, hardly = printed["values"]

    assert all(row["local"]["low"] < row["truth"] < row["local"]["high"] for row in (often, less))
    assert hardly["local"] is None
    assert (printed["search"]["found"], printed["search"]["candidates"]) == (2, 0)
    assert "found: 2 of the 3 strings that devices have" in table
    assert "found, but nobody has it: 0\n" in table


def test_the_periods_of_a_trend_are_shown_with_the_true_shares(typed: Type, others: str) -> None:
    """Twelve intervals at 0.9999; half of the people have changed their state in the end."""
    words = ("simulate", others, "state", "--n", "200000", "--seed", "2", "--level", "0.9999")
    rows, table = typed(*words, "--json").json["periods"], typed(*words, "--top", "2").out

    assert [row["from"] for row in rows[:2]] == ["2026-11-01", "2026-12-01"]
    assert [row["truth"] for row in rows] == pytest.approx([n / 24 for n in range(1, 13)], abs=0.01)
    assert all(row["local"]["low"] < row["truth"] < row["local"]["high"] for row in rows)
    assert "all reports together at epsilon 4" in table
    assert "the truth is in 12 of 12 intervals, of 12 periods" in table
    assert "2027-01-31" not in table


def among(covers: int, **keys: object) -> dict[str, object]:
    """Return the keys of a question whose reports travel among covers."""
    batch = {"epsilon": 1, "delta": 1e-6, "covers": covers}
    return {"model": "shuffled", "epsilon": 4, "batch": batch, "presence": "public"} | keys


THEMES = {"values": ["light", "dark", "system"], "presence": "hidden"}
SHUFFLED = definitions_text(
    "acme",
    YEAR,
    theme=among(142, **THEMES),
    minutes=among(142, range=[0, 240], measure="mean"),
    travelling={"batch": {"least": 50}},
    body=among(600, **BODY),
    habits=among(600, **HABITS),
    word=among(463, **OPEN),
    letters=among(463, **LETTERS),
    wide=among(2000, **THEMES),
    ages=among(400, range=[0, 240], measure="distribution"),
)


@pytest.fixture
def shuffled(tmp_path: Path) -> str:
    """Collections that travel by shuffler."""
    path = tmp_path / "shuffled.toml"
    path.write_text(SHUFFLED, encoding="utf-8")
    return str(path)


def by_model(typed: Type, *words: str) -> dict[str, dict[str, float]]:
    errors = typed("simulate", *words, "--json").json["errors"]
    return {row["model"]: row for row in errors}


@pytest.mark.parametrize("n", [1_000, 10_000])
def test_batches_are_simulated_with_their_covers(typed: Type, shuffled: str, n: int) -> None:
    """Errors within a tenth of the predicted; 600 intervals at .95: within 5 deviations.

    The prediction is that of these shares; over all cells of equal shares it is a little less.
    """
    words = (shuffled, "theme", "--n", str(n), "--seed", "1", "--runs", "200")
    rows = by_model(typed, *words)
    of_equal_shares = shuffled_error(SubsetSelection.for_epsilon(Fraction(4), 4, 1), n, 142)

    assert 1 < rows["shuffled"]["predicted"] / of_equal_shares < 1.15
    for row in rows.values():
        assert row["error"] == pytest.approx(row["predicted"], rel=0.1)
        assert 0.905 < row["coverage"] < 0.985
    assert 5 < rows["local"]["error"] / rows["shuffled"]["error"] < 9
    assert (rows["shuffled"]["epsilon"], rows["local"]["epsilon"]) == (4, 1)


def test_a_mean_is_simulated_with_its_covers(typed: Type, shuffled: str) -> None:
    """200 intervals at .95: within 5 deviations."""
    words = (shuffled, "minutes", "--n", "1000", "--seed", "1", "--runs", "200")
    rows = by_model(typed, *words)

    assert rows["shuffled"]["error"] == pytest.approx(rows["shuffled"]["predicted"], rel=0.2)
    assert rows["shuffled"]["error"] < rows["local"]["error"] / 3
    assert 0.87 < rows["shuffled"]["coverage"] <= 1


def test_covers_that_are_not_subtracted_are_noticed(
    typed: Type, shuffled: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted: covers are drawn, and estimated as if they were reports."""
    words = (shuffled, "theme", "--n", "1000", "--seed", "1", "--runs", "50")
    monkeypatch.setattr(shuffled_simulation, "Tally", lambda counters, _=0: Tally(counters))
    row = by_model(typed, *words)["shuffled"]

    assert row["error"] > 3 * row["predicted"]
    assert row["coverage"] < 0.7


def test_covers_of_one_message_are_noticed(
    typed: Type, shuffled: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted: a shuffler whose covers are all alike."""
    monkeypatch.setattr(SubsetSelection, "cover", lambda *_: 0)
    row = by_model(typed, shuffled, "theme", "--n", "1000", "--seed", "1", "--runs", "20")

    assert row["shuffled"]["coverage"] < 0.5


@pytest.mark.parametrize("planted", [False, True])
def test_moments_are_simulated_with_their_covers(
    typed: Type, shuffled: str, monkeypatch: pytest.MonkeyPatch, *, planted: bool
) -> None:
    """800 intervals at .95, of 8 figures that hang together: within 5 deviations of 100 batches.

    Planted: covers that count as reports pull every moment to the middle of its range.
    """
    if planted:
        means = MomentsHandler.means
        monkeypatch.setattr(
            MomentsHandler, "means", lambda self, counters, _=0: means(self, counters)
        )
    words = (shuffled, "body", "--n", "600", "--seed", "1", "--correlation", "1")
    rows = by_model(typed, *words, "--regress", "hours")

    assert (rows["shuffled"]["epsilon"], rows["local"]["epsilon"]) == (4, 1)
    if planted:
        assert rows["shuffled"]["coverage"] < 0.75
        return
    assert rows["shuffled"]["error"] < rows["local"]["error"]
    assert all(0.87 < row["coverage"] <= 1 for row in rows.values())


@pytest.mark.parametrize("planted", [False, True])
def test_open_strings_are_simulated_with_their_covers(
    typed: Type, shuffled: str, monkeypatch: pytest.MonkeyPatch, *, planted: bool
) -> None:
    """2 intervals at .9999; planted: covers that count as reports make both shares too small."""
    if planted:
        evidence = HashedStringsHandler.evidence
        monkeypatch.setattr(
            HashedStringsHandler, "evidence", lambda self, *about: evidence(self, *about[:2])
        )
    words = (
        "simulate", shuffled, "word", "--n", "1000", "--seed", "1", "--runs", "1", "--level",
        "0.9999", "--truth", "often=80", "--truth", "less often=20", "--candidates", "300",
    )  # fmt: skip
    printed = typed(*words, "--json").json
    rows = {row["model"]: row for row in printed["errors"]}

    assert printed["runs"] == 1
    assert (rows["shuffled"]["found"], rows["shuffled"]["false"]) == (2, 0)
    assert rows["local"]["found"] < 2
    assert (rows["shuffled"]["coverage"] == 1) is not planted


def test_tables_among_covers_cover_the_truth_and_err_less_than_local_noise(
    typed: Type, shuffled: str
) -> None:
    words = ("simulate", shuffled, "habits", "--n", "20000", "--seed", "1", "--runs", "10")
    reports, local = typed(*words, "--json").json["errors"]

    assert (reports["model"], local["model"]) == ("shuffled", "local")
    assert reports["error"] < local["error"] / 3
    assert min(reports["coverage"], local["coverage"]) > 0.9


def test_strings_are_found_letter_by_letter_among_covers(typed: Type, shuffled: str) -> None:
    """Two intervals at .9999."""
    words = (
        "simulate", shuffled, "letters", "--n", "20000", "--seed", "1", "--runs", "1", "--level",
        "0.9999", "--truth", "otters=60", "--truth", "badger=40",
    )  # fmt: skip
    rows = typed(*words, "--json").json["values"]

    assert all(row["shuffled"]["low"] < row["truth"] < row["shuffled"]["high"] for row in rows)


def test_what_is_not_simulated_is_refused_by_name(typed: Type, shuffled: str, others: str) -> None:
    distribution = typed("simulate", shuffled, "ages", "--n", "1000").err
    runs = typed("simulate", others, "body", "--n", "1000", "--runs", "2").err
    many = typed("simulate", shuffled, "wide", "--n", "1000", "--runs", "10000").err
    small = typed("simulate", shuffled, "theme", "--n", "99", "--runs", "2").out
    local = typed("simulate", shuffled, "travelling", "--n", "1000", "--json").json

    assert 'has measure = "distribution"' in distribution
    assert "batches with covers are drawn again: remove it" in runs
    assert "each has 2,000 covers" in many
    assert "is never handed over" in small
    assert local["n"] == 1000
