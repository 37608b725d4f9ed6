"""The page about very large fleets agrees with its arithmetic, and the arithmetic with draws."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
from bench.growth_fit import Growth
from bench.scale import BASE, COSTS, DAY, DEPLOYMENT, FLEETS, GRACE, HOUR, Fleet, Needs, lines
from bench.shuffler_scale import lines as shuffler_lines

from veilcount_analysis.series.series import Series
from veilcount_shared.periods import RECOVERABLE

from ..client.device_fixtures import one_collection

PAGE = Path(__file__).parents[2] / "docs" / "scale.md"


# -- the page --------------------------------------------------------------------------------------


def test_every_table_of_the_page_is_what_the_arithmetic_says() -> None:
    tables = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line[:1] == "|"]

    assert tables == [line for line in [*lines(), *shuffler_lines()] if line]


@pytest.mark.parametrize(
    "sentence",
    [
        f"{DEPLOYMENT.cores} cores, {DEPLOYMENT.memory} GB and {DEPLOYMENT.network} Gbit/s",
        f"{100 * DEPLOYMENT.full:g} % full",
        f"{DEPLOYMENT.core_hour} a core-hour and {DEPLOYMENT.gigabyte_hour} a GB-hour",
        f"{COSTS.row:g} bytes of Redis and a bit a slot",
        f"`late` + {GRACE} days: {BASE.rows} rows",
        f"some {Needs.from_fleet(BASE).machines()['memory']:.0f} machines",
        f"would fill {Needs.from_fleet(BASE).machines()['cores']:.0f}.",
    ],
)
def test_the_sentences_between_the_tables_hold_too(sentence: str) -> None:
    assert sentence in " ".join(PAGE.read_text(encoding="utf-8").split())


def test_memory_ends_first_by_default_and_not_with_one_row_a_campaign() -> None:
    first = {fleet.name: Needs.from_fleet(fleet).first for fleet in FLEETS}

    assert first[BASE.name] == "memory"
    assert first['`linkage = "collection"`, a year'] == "cores"
    assert Needs.from_fleet(replace(BASE, rows=1)).memory < Needs.from_fleet(BASE).memory / 10
    assert Needs.from_fleet(replace(BASE, rows=5)).memory < Needs.from_fleet(BASE).memory / 6


def test_relays_take_a_hundredth_of_the_requests_and_a_fortieth_of_the_computing() -> None:
    alone, relayed = Needs.from_fleet(BASE), Needs.from_fleet(replace(BASE, reports=100))
    computed = [each.proxy + each.server + each.store for each in (alone, relayed)]

    assert relayed.requests == alone.requests / 100
    assert 35 < computed[0] / computed[1] < 45
    assert relayed.memory == alone.memory


# -- the arithmetic --------------------------------------------------------------------------------


def test_rows_live_as_long_as_the_aggregator_keeps_them() -> None:
    """Counted over a real definition, on a day in the middle of its campaign."""
    for late in (3, 30):
        series = Series(one_collection("it", late=late, until="2027-06-01")["it"])
        day = series.collection.start + timedelta(days=100)
        begun = range(101)

        kept = sum(not series.over(epoch, day - RECOVERABLE) for epoch in begun)
        assert kept == late + GRACE


def arrivals(fleet: Fleet, chance: np.random.Generator) -> np.ndarray:
    """Return how many reports leave in each second of the busiest hour, drawn one by one."""
    reports = int(fleet.daily)
    herd = chance.random(int(fleet.midnight * reports)) * max(fleet.jitter, 1)
    share = fleet.busiest * HOUR / DAY
    others = chance.random(chance.binomial(reports - len(herd), share)) * HOUR
    seconds = np.concatenate([herd, others]).astype(np.int64)
    return np.bincount(seconds, minlength=HOUR)


def test_the_busiest_hour_is_as_busy_as_is_reckoned() -> None:
    """A million devices, drawn: each minute within six errors of the mean, and no second far."""
    fleet = replace(BASE, devices=1e6)
    found = arrivals(fleet, np.random.default_rng(7))
    minutes = found.reshape(-1, 60).sum(axis=1)
    expected = 60 * fleet.peak

    assert np.abs(minutes - expected).max() < 6 * expected**0.5
    assert found.max() < fleet.peak + 7 * fleet.peak**0.5


def test_without_the_jitter_a_second_would_be_a_thousand_times_as_busy() -> None:
    """So the jitter is what makes the figure, and the check above would notice its absence."""
    fleet = replace(BASE, devices=1e6, jitter=1)
    found = arrivals(fleet, np.random.default_rng(7))

    assert found.max() > 1000 * replace(fleet, jitter=HOUR).peak


# -- the fit ---------------------------------------------------------------------------------------


SIZES = np.geomspace(10, 10_000, 13)


def fitted(costs: np.ndarray, seed: int, noise: float = 0.02) -> Growth:
    """Return the fit of costs that are measured with errors of 2 %."""
    errors = np.random.default_rng(seed).normal(0, noise, len(costs))
    return Growth.fitted_to(SIZES.tolist(), (costs * np.exp(errors)).tolist())


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("fixed", [0, 500, 50_000])
def test_growth_is_distinguished_from_a_fixed_cost(fixed: float, seed: int) -> None:
    """What is in proportion is met. What is above it is not, even where n log n is the work."""
    linear = fitted(fixed + 50 * SIZES, seed)
    above = fitted(fixed + 50 * SIZES**1.2, seed)

    assert linear.is_met()
    assert linear.low <= 1.02
    assert linear.high >= 0.98
    assert above.is_narrow
    assert abs(above.exponent - 1.2) < 0.05
    assert not above.is_met(has_log=True)
    assert not fitted(fixed + 50 * SIZES**2, seed).is_met(has_log=True)


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("fixed", [0, 500])
def test_n_log_n_is_met_only_where_it_is_the_work(fixed: float, seed: int) -> None:
    growth = fitted(fixed + 50 * SIZES * np.log2(SIZES), seed)

    assert growth.exponent > 1.1
    assert growth.is_met(has_log=True)
    assert not growth.is_met()


def test_a_wide_interval_is_not_met() -> None:
    """Costs of a busy machine, by which n and its square could be confused, prove nothing."""
    growth = fitted(50 * SIZES, 1, noise=0.5)

    assert growth.high - growth.low > 0.15
    assert not growth.is_met(has_log=True)
