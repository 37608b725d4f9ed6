"""`veilcount simulate`: the truth with the estimates of two models."""

from __future__ import annotations

import numpy as np
import pytest

from veilcount_aggregator.cli.simulate import apportion

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
    for text in ("n = 999 devices, one answer each, epsilon 1", "of these n answers", "interval"):
        assert text in one


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


def test_weights_are_shared_out_without_loss() -> None:
    assert sorted(apportion(10, np.array([1.0, 1.0, 1.0]))) == [3, 3, 4]
    assert apportion(7, np.array([0.1, 0.2])).sum() == 7
