"""`docs/analysing.py` runs over the demo's data, and decides what is true there."""

from __future__ import annotations

import runpy
from collections.abc import Iterator
from contextlib import chdir
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt

from veilcount_aggregator.operate.demo.campaign import TRAILS, Campaign, Question
from veilcount_aggregator.operate.demo.deployment import DemoClock, deploy
from veilcount_aggregator.operate.demo.run import DemoResult, DemoRun
from veilcount_aggregator.records.api_keys import Role, create_key
from veilcount_analysis.kinds.moment_figures import MomentTerms, features_of, moment_figures

from .page_parser import ROOT

NEARBY = 2  # of what is tapped first
NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[dict[str, Any], DemoResult]]:
    """The names after its last cell, and the true answers, in the folder that it wrote to."""
    mpl.use("agg")
    campaign = Campaign(NOW)
    with (
        deploy(campaign, DemoClock(campaign.begins), clients=0) as place,
        pytest.MonkeyPatch.context() as environment,
        chdir(tmp_path_factory.mktemp("analysing")),
    ):
        demo = DemoRun.prepare(campaign, place, devices=4_000, clients=0, seed=2)
        result = demo.play(lambda *_: None)
        _, key = create_key(place.aggregator.store, Role.ANALYST, "analyst", NOW)
        place.aggregator.catalog_cache.refresh()
        environment.setenv("VEILCOUNT_URL", place.url)
        environment.setenv("VEILCOUNT_KEY", key)
        environment.setenv("ADULT", str(ROOT / "tests" / "data" / "adult_hours.csv.gz"))
        yield runpy.run_path(str(ROOT / "docs" / "analysing.py")), result
        plt.close("all")


def test_its_decisions_are_those_of_the_true_answers(
    ran: tuple[dict[str, Any], DemoResult],
) -> None:
    found, result = ran
    trails, taps = result.truth(Question.TRAIL), result.truth(Question.FIRST_TAP)
    screens = (taps.where(taps.segments == screen) for screen in (0, 1))
    on_list, on_map = (np.bincount(part.values)[NEARBY] / len(part) for part in screens)

    assert found["map_stays"] is bool(on_map - on_list > found["least"]) is True
    assert found["wanted"]["of"].iloc[0] == TRAILS[np.bincount(trails.values).argmax()]
    assert found["by_hand"] == pytest.approx(found["first"]["figure"])
    assert found["closed"]["figure"].is_monotonic_increasing
    assert not found["closed"]["open_period"].any()


def test_its_regression_is_that_of_all_persons_within_its_error(
    ran: tuple[dict[str, Any], DemoResult],
) -> None:
    """At 0.9999: with another seed, one of three intervals would miss 3 times in 10,000."""
    found, _ = ran
    terms = MomentTerms(level=0.9999, regress="hours")
    rows = list(moment_figures(features_of(found["work"]), found["moments"], terms))[-3:]
    age, education, intercept = found["exact"]

    assert (age, education) == pytest.approx((0.0607, 0.6825), abs=1e-4)
    for row, exact in zip(rows, (age, education, intercept), strict=True):
        assert row.low < exact < row.high
    assert not rows[0].low < education < rows[0].high
    assert found["regression"]["exact"].tolist() == found["exact"].tolist()


def test_it_writes_a_file_and_spends_nothing(ran: tuple[dict[str, Any], DemoResult]) -> None:
    found, _ = ran
    written = pd.read_parquet(Path("first_tap.parquet"))
    budget = found["reader"].releases("way_there_central").remaining()

    assert written["of"].tolist() == found["taps"].of
    assert budget.equals(found["budget"])
    assert "spends epsilon 0.5" in found["price"]
    assert len(plt.get_fignums()) == 3
