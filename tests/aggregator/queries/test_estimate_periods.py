"""Periods of an estimate: which days it covers, and whom its interval is of."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from veilcount_aggregator.records.definitions import close_collection
from veilcount_analysis.kinds.results import Figure

from ..web.api.deployment_fixtures import Deployment, deployment
from .simulated_reports import FILE, LISTS, estimate, figures_of, only

COHORT = "of the answers in these n reports"
POPULATION = "of everybody who could have been asked"


def test_a_range_is_widened_to_whole_periods_that_have_begun_and_says_which(
    stocked: Deployment,
) -> None:
    _, some = only(estimate(stocked, "theme", from_="2026-10-20", to="2026-11-02"))
    _, everything = only(estimate(stocked, "theme"))

    assert (some.first, some.last) == (date(2026, 10, 1), date(2026, 11, 30))
    assert (some.first_period, some.last_period, some.n) == (0, 1, 12_000)
    assert (everything.first, everything.last) == (date(2026, 10, 1), date(2026, 12, 31))
    assert everything.n == 13_000


def test_an_open_period_is_marked(stocked: Deployment) -> None:
    """October closed ten days after its end; November closes on the tenth of December."""
    time_ranges = estimate(stocked, "theme", by="month").series[0].ranges

    assert [each.first.month for each in time_ranges] == [10, 11, 12]
    assert [each.open_period for each in time_ranges] == [False, True, True]
    assert [each.n for each in time_ranges] == [4000, 8000, 1000]


def test_a_closed_collection_has_no_open_period(empty: Deployment) -> None:
    open_period = only(estimate(empty, "once"))[1].open_period
    close_collection(empty.aggregator.store, "once", empty.clocks.now, "cli")
    empty.aggregator.catalog_cache.refresh()
    _, closed = only(estimate(empty, "once"))

    assert (open_period, closed.open_period) == (True, False)


@pytest.mark.parametrize(
    ("by", "firsts"),
    [
        ("day", ["2026-11-28", "2026-11-29", "2026-11-30", "2026-12-01"]),
        ("week", ["2026-11-28", "2026-11-30"]),
        ("month", ["2026-11-28", "2026-12-01"]),
        ("all", ["2026-11-28"]),
    ],
)
def test_days_are_grouped_by_the_unit(stocked: Deployment, by: str, firsts: list[str]) -> None:
    """Weeks are ISO's, and none is lost: time ranges add up to the whole."""
    answer = estimate(stocked, "opened", from_="2026-11-28", to="2026-12-01", by=by)
    time_ranges = answer.series[0].ranges

    assert [str(each.first) for each in time_ranges] == firsts
    assert sum(each.n for each in time_ranges) == 400
    assert time_ranges[-1].last == date(2026, 12, 1)


def test_weeks_are_shown_by_the_month_they_begin_in(stocked: Deployment) -> None:
    """The week of the thirtieth of November reaches into December."""
    time_ranges = estimate(stocked, "minutes", by="month").series[0].ranges

    assert [(each.first, each.last) for each in time_ranges] == [
        (date(2026, 11, 2), date(2026, 12, 6))
    ]


@pytest.mark.parametrize(
    ("name", "params", "contributions", "of"),
    [
        ("theme", {"to": "2026-10-31"}, 1, POPULATION),
        ("theme", {}, 3, COHORT),
        ("opened", {"from_": "2026-11-10", "to": "2026-11-11"}, 2, COHORT),
        ("once", {}, 1, POPULATION),
        ("spread", {}, 2, COHORT),
    ],
)
def test_only_one_answer_a_person_is_a_sample_of_a_population(
    stocked: Deployment, name: str, params: dict[str, str | list[str]], contributions: int, of: str
) -> None:
    """Otherwise the interval is of these answers; it always says which."""
    _, time_range = only(estimate(stocked, name, **params))

    assert (time_range.contributions, time_range.estimand) == (contributions, of)


def test_before_any_answer_nothing_is_claimed(empty: Deployment) -> None:
    """n is 0, no figure is given, and every one is still possible."""
    _, shares = only(estimate(empty, "theme"))
    (mean,) = only(estimate(empty, "minutes"))[1].figures
    _, spread = only(estimate(empty, "spread"))
    _, ranges = only(estimate(empty, "ranges", values="0..50"))
    _, top = only(estimate(empty, "word", top="3"))

    assert (shares.n, shares.estimand) == (0, "no reports yet")
    assert figures_of(shares)[0] == Figure("share", "light", None, 0.0, 1.0, 0.0, 1.0)
    assert (mean.figure, mean.low, mean.high) == (None, 0, 100)
    assert figures_of(spread, "bucket") == []
    assert figures_of(spread, "curve")[100].figure is None
    assert figures_of(ranges)[0].figure is None
    assert len(figures_of(top)) == 3


def test_a_campaign_that_has_not_begun_is_empty(tmp_path: Path) -> None:
    with deployment(tmp_path, now=datetime(2026, 9, 1, tzinfo=UTC)) as made:
        made.push(FILE, **LISTS)
        _, time_range = only(estimate(made, "theme"))

    assert (time_range.n, time_range.open_period, time_range.first) == (0, False, date(2026, 10, 1))
