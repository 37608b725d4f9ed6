"""`veilcount simulate`: the truth with the estimates of two models."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from veilcount_aggregator.cli.simulate import apportion

from .conftest import Type
from .store_fixtures import written


@pytest.fixture
def file(tmp_path: Path) -> str:
    return str(written(tmp_path))


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
    assert all(row["local"]["low"] <= row["truth"] <= row["local"]["high"] for row in rows.values())
    assert all(abs(row["central"]["value"] - row["truth"]) < 1e-3 for row in rows.values())


def test_local_intervals_are_wider_than_central_ones(typed: Type, file: str) -> None:
    for row in typed("simulate", file, "theme", "--n", "10000", "--seed", "1", "--json").json[
        "values"
    ]:
        widths = [row[model]["high"] - row[model]["low"] for model in ("local", "central")]

        assert widths[0] > 10 * widths[1]


def test_a_seed_gives_the_same_figures_and_none_gives_others(typed: Type, file: str) -> None:
    one, same = (typed("simulate", file, "theme", "--n", "999", "--seed", "5").out for _ in "ab")
    other = typed("simulate", file, "theme", "--n", "999", "--json").json

    assert one == same
    assert other["seed"] != typed("simulate", file, "theme", "--n", "999", "--json").json["seed"]


def test_intervals_cover_about_as_often_as_they_say(typed: Type, file: str) -> None:
    """40 runs of 3 values at 95 %: 120 intervals, of which 99 or more hold but 1 time in 1e6."""
    runs = [
        typed("simulate", file, "theme", "--n", "5000", "--seed", str(seed), "--json").json
        for seed in range(40)
    ]
    rows = [row for run in runs for row in run["values"]]
    held = sum(row["local"]["low"] <= row["truth"] <= row["local"]["high"] for row in rows)

    assert len(rows) == 120
    assert 99 <= held < 120


def test_a_number_shows_its_mean(typed: Type, file: str) -> None:
    (row,) = typed(
        "simulate", file, "minutes", "--n", "50000", "--truth", "60=1", "--seed", "2", "--json"
    ).json["values"]

    assert row["truth"] == pytest.approx(60)
    assert row["local"]["low"] <= 60 <= row["local"]["high"]


def test_the_table_says_n_epsilon_and_of_whom(typed: Type, file: str) -> None:
    printed = typed("simulate", file, "theme", "--n", "5000", "--seed", "1").out

    assert "n = 5,000 devices, one answer each, epsilon 1" in printed
    assert "of these n answers" in printed
    assert "interval" in printed


def test_weights_are_shared_out_without_loss() -> None:
    devices = apportion(10, np.array([1.0, 1.0, 1.0]))

    assert devices.sum() == 10
    assert sorted(devices) == [3, 3, 4]


def test_shares_that_are_no_decimals_add_up() -> None:
    assert Fraction(int(apportion(7, np.array([0.1, 0.2])).sum())) == 7
