"""A state over time, from the reports of devices' own code to the share at the end of each day."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, cast

import numpy as np
import pytest

from veilcount_analysis.errors import QueryError
from veilcount_analysis.kinds.smoothing import BANDS
from veilcount_analysis.series.packed_rows import rows_from_numbers
from veilcount_client.testing import SeededRandomSource
from veilcount_shared.mechanisms import TrendMechanism

from ...client.device_fixtures import definitions_text
from ..web.api.deployment_fixtures import Deployment, deployment
from ..web.dashboard.page_fixtures import logged_in
from .simulated_reports import compare, counted, estimate, figures_of, send_rows

FILE = definitions_text(
    "acme",
    {"measure": "trend"},
    premium={"changes": 1, "epsilon": 4, "until": "2026-12-13"},
    idle={"changes": 3, "unit": "month", "until": "2027-12-01"},
)
PEOPLE, DAYS = 6_000, 9  # that are over on the tenth
BECOMES_TRUE = np.random.default_rng(1).geometric(0.12, PEOPLE) - 1  # on this day, and stays


def share(day: int) -> float:
    return float((day >= BECOMES_TRUE).mean())


@pytest.fixture(scope="module")
def premium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    now = datetime(2026, 12, 10, 12, tzinfo=UTC)
    with deployment(tmp_path_factory.mktemp("trends"), FILE, now=now) as made:
        trend = cast("TrendMechanism", made.series("premium").collection.mechanism)
        randomness = SeededRandomSource(2)
        messages: list[list[int]] = [[] for _ in range(DAYS)]
        for begins in BECOMES_TRUE.tolist():
            state = trend.draw_state(randomness)
            for day in range((1 << state.level) - 1, DAYS, 1 << state.level):
                message, state = trend.report(state, int(day >= begins), randomness)
                messages[day].append(message)
        for day, sent in enumerate(messages):
            rows = rows_from_numbers(np.array(sent), 1)
            counted(send_rows(made, "premium", rows, period=day))
        yield made


def true(rows: list[Any]) -> Any:
    return next(row for row in rows if row.of is True)


def test_each_day_has_the_share_at_its_end_with_an_interval_that_covers(
    premium: Deployment,
) -> None:
    (series,) = estimate(premium, "premium", by="day", level="0.999").series
    days = series.ranges

    assert series.counts == "people who report"
    assert {each.n for each in days[:DAYS]} == {PEOPLE}  # all of their reports are in each share
    assert [each.first.day for each in days] == list(range(1, DAYS + 2))
    for day, each in enumerate(days[:DAYS]):
        row = true(figures_of(each))
        assert row.low < share(day) < row.high, day
        assert row.high - row.low < 0.5
        assert row.figure is not None
        assert row.fake_low < row.figure < row.fake_high
        assert each.estimand.startswith(f"at the end of 2026-12-{day + 1:02}, of everybody")
    assert days[DAYS].n == 0  # today: its reports come at the end of it
    assert sum(row.figure or 0 for row in figures_of(days[3])) == pytest.approx(1)


def test_a_range_has_the_share_at_the_end_of_its_last_day_that_is_over(premium: Deployment) -> None:
    (whole,), (part,) = (
        estimate(premium, "premium", **days).series for days in ({}, {"to": "2026-12-06"})
    )
    days = estimate(premium, "premium", by="day").series[0].ranges

    assert figures_of(whole.ranges[0]) == figures_of(days[DAYS - 1])
    assert figures_of(part.ranges[0]) == figures_of(days[5])
    assert whole.ranges[0].usable


def test_the_smooth_view_has_the_same_days_and_says_what_its_bands_hold_for(
    premium: Deployment,
) -> None:
    raw, smooth = (
        estimate(premium, "premium", by="day", view=view).series[0] for view in ("raw", "smooth")
    )
    assert smooth.notes == [*raw.notes, BANDS]
    for day in range(DAYS):
        one, two = true(figures_of(raw.ranges[day])), true(figures_of(smooth.ranges[day]))

        assert two.high - two.low < 1.25 * (one.high - one.low)  # few gain at epsilon 4
        assert two.fake_low < two.figure < two.fake_high
        assert 0 < abs(two.figure - one.figure) < one.high - one.low
        assert smooth.ranges[day].estimand == f"{raw.ranges[day].estimand}, smoothed"
    assert BANDS in logged_in(premium).get("/collections/premium?by=day&over_time=smooth").text


def test_faces_show_the_same_figures(premium: Deployment) -> None:
    """Pages, table, figures of privacy: one epsilon for all reports."""
    visitor = logged_in(premium)
    for tab in ("", "/contrast", "/budget", "/privacy", "/definition", "/report", "/compare"):
        for name in ("premium", "idle"):
            page = visitor.get(f"/collections/{name}{tab}")
            assert page.status == (400 if tab == "/compare" and name == "premium" else 200), tab
    page = visitor.get("/collections/premium?by=day")
    csv = visitor.get("/collections/premium/estimates.csv?by=day")
    budget = visitor.get("/collections/premium/budget")

    assert page.status == 200
    assert "With all of your reports together" in visitor.get("/collections/premium/privacy").text
    assert csv.html.count("at the end of 2026-12-") == 2 * DAYS
    assert "epsilon 4 in the whole campaign: from all reports together" in budget.text
    assert 'measure = "trend" changes = 1' in visitor.get("/collections/premium/definition").text
    assert "yes" in visitor.get("/").text


@pytest.mark.parametrize(
    ("params", "field", "fix"),
    [
        ({"group": "a:true"}, "group", "remove it"),
        ({"top": "1"}, "top", "remove it"),
        ({"view": "consistent"}, "view", "view=raw"),
        ({"view": "smooth"}, "by", "give day, week or month"),
        ({"looks": "every"}, "looks", "looks=one"),
        ({"among": "answered"}, "among", "all"),
    ],
)
def test_a_query_that_a_state_cannot_answer_is_refused(
    premium: Deployment, params: dict[str, str], field: str, fix: str
) -> None:
    with pytest.raises(QueryError) as refused:
        estimate(premium, "premium", **params)

    assert refused.value.field == field
    assert fix in str(refused.value)


def test_sides_over_time_are_not_compared(premium: Deployment) -> None:
    with pytest.raises(QueryError, match="estimate both"):
        compare(premium, "premium", a="2026-12-01..2026-12-02", b="2026-12-03..2026-12-04")
