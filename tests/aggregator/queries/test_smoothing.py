"""The smooth view, from counters in a store to rows: what it states, leaves out and refuses."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest

from veilcount_aggregator.queries import EstimateResult
from veilcount_analysis.errors import QueryError
from veilcount_analysis.kinds.smoothing import BANDS

from ..web.api.deployment_fixtures import Deployment, deployment
from ..web.dashboard.page_fixtures import logged_in
from .simulated_reports import counted, estimate, figures_of, send, send_numbers

FILE = 'app = "acme"\n' + "".join(
    f'[{name}]\nquestion = "Which {name}?"\nepsilon = 1\n{rest}\n'
    for name, rest in {
        "rose": 'boolean = true\nunit = "day"\nanswers = 1\nfrom = 2026-11-01\nuntil = 2027-01-01',
        "often": 'boolean = true\nunit = "day"\nfrom = 2026-11-01\nuntil = 2027-01-01',
        "twice": 'boolean = true\nunit = "day"\nanswers = 2\nfrom = 2026-11-01\nuntil = 2027-01-01',
        "minutes": 'range = [0, 100]\nmeasure = "mean"\nunit = "day"\nanswers = 1\n'
        "from = 2026-11-01\nuntil = 2027-01-01",
        "hidden": 'values = ["a", "b"]\npresence = "hidden"\nunit = "day"\nanswers = 1\n'
        "from = 2026-11-01\nuntil = 2027-01-01",
    }.items()
)
START = datetime(2026, 11, 1, 12, tzinfo=UTC)
DAYS, DAILY, EMPTY = 30, 1000, 12
RISE = (300, 380)  # how many of a day's devices say yes, before and from the 15th day on


@pytest.fixture(scope="module")
def daily(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """Thirty days, one of them without reports."""
    generator = np.random.default_rng(3)
    with deployment(tmp_path_factory.mktemp("smooth"), FILE, now=START) as made:
        for day in (each for each in range(DAYS) if each != EMPTY):
            made.clocks.now = START + timedelta(days=day)
            yes = RISE[day >= DAYS // 2]
            places = {"period": day, "seed": day}
            for name in ("rose", "often", "twice"):
                counted(send(made, name, (DAILY - yes, yes), **places))
            counted(send(made, "hidden", (yes, DAILY // 2 - yes // 2, 200), **places))
            numbers = generator.uniform(0.2, 0.6, DAILY)
            counted(send_numbers(made, "minutes", numbers, **places))
        yield made


def ask(daily: Deployment, name: str, view: str, **more: str) -> EstimateResult:
    return estimate(daily, name, view=view, **{"by": "day", "to": "2026-11-30"} | more)


def shares(result: EstimateResult, row: int = -1) -> list[Any]:
    return [figures_of(each)[row] for each in result.series[0].ranges if each.n]


def width(row: Any) -> float:
    return float(row.high - row.low)


def test_figures_are_known_better_and_a_jump_is_followed(daily: Deployment) -> None:
    raw, smooth = (shares(ask(daily, "rose", view)) for view in ("raw", "smooth"))
    true = [RISE[day >= DAYS // 2] / DAILY for day in range(DAYS) if day != EMPTY]
    missed = [t for t, row in zip(true, smooth, strict=True) if not row.low <= t <= row.high]

    assert len(missed) <= 3
    assert np.median(list(map(width, smooth))) < 0.75 * np.median(list(map(width, raw)))
    assert {row.count for row in smooth} == {row.count for row in raw}
    assert all(row.simultaneous_low is None for row in smooth)
    for row, before in zip(smooth, raw, strict=True):
        assert row.figure is not None
        assert row.low < row.fake_low < row.figure < row.fake_high < row.high
        assert row.answers == pytest.approx(row.figure * DAILY)
        assert row.fake_high - row.fake_low < 1.2 * (before.fake_high - before.fake_low)


def test_a_note_states_with_the_bands_that_they_hold_over_all_periods_together(
    daily: Deployment,
) -> None:
    raw, smooth = (ask(daily, "rose", view).series[0] for view in ("raw", "smooth"))

    assert BANDS not in raw.notes
    assert smooth.notes == [*raw.notes, BANDS]
    assert "over all periods together; after a sudden change read the raw figure" in BANDS


def test_a_day_without_reports_stays_without_a_figure(daily: Deployment) -> None:
    time_range = ask(daily, "rose", "smooth").series[0].ranges[EMPTY]

    assert (time_range.n, figures_of(time_range)[-1].figure) == (0, None)


def test_means_and_absent_devices_are_smoothed_too(daily: Deployment) -> None:
    means = [
        [figures_of(part, "mean")[0] for part in ask(daily, "minutes", view).series[0].ranges]
        for view in ("raw", "smooth")
    ]
    absent = [
        [
            figures_of(part, "absent")[0]
            for part in ask(daily, "hidden", view).series[0].ranges
            if part.n
        ]
        for view in ("raw", "smooth")
    ]
    for raw, smooth in (*zip(*means, strict=True), *zip(*absent, strict=True)):
        assert smooth == raw or smooth.high - smooth.low < raw.high - raw.low
    result = ask(daily, "minutes", "smooth").series[0].ranges[-1]
    (mean,) = figures_of(result, "mean")
    assert len(result.figures) == 1
    assert mean.low < 40 < mean.high
    assert result.estimand == "of everybody who could have been asked, smoothed over days"
    assert (result.bands, result.leader) == ("", None)


def test_persons_who_answer_twice_count_for_less(daily: Deployment) -> None:
    """What the sample errs is partly alike in the periods in which they answer."""
    once, twice, raw = (
        float(np.median(list(map(width, shares(ask(daily, name, view))))))
        for name, view in (("rose", "smooth"), ("twice", "smooth"), ("twice", "raw"))
    )

    assert 1.01 * once < twice < raw


@pytest.mark.parametrize(
    ("name", "more", "refusal"),
    [
        ("often", {}, 'view = "smooth": it takes a definition whose `answers` are fewer than'),
        ("rose", {"by": "all"}, 'by = "all": view=smooth is over time: give day, week or month'),
        ("rose", {"looks": "every"}, 'looks = "every": view=smooth holds at one look: looks=one'),
        ("rose", {"to": "2026-11-03"}, "it takes 4 time ranges, here are 3: give a shorter by"),
        ("twice", {"by": "week"}, "a person may answer 2 times in a time range: give a shorter by"),
    ],
)
def test_it_is_refused_where_it_would_be_wrong(
    daily: Deployment, name: str, more: dict[str, str], refusal: str
) -> None:
    with pytest.raises(QueryError) as refused:
        ask(daily, name, "smooth", **more)

    assert refusal in str(refused.value)


def test_the_page_offers_it_for_its_time_series(daily: Deployment) -> None:
    """Not where persons answer in all periods."""
    visitor = logged_in(daily)
    raw, smooth, often = (
        visitor.get(f"/collections/{address}").text
        for address in ("rose?by=day", "rose?by=day&over_time=smooth", "often?by=day")
    )
    note = "Smoothed: each figure also uses the reports of the times around it."

    assert "each from its own reports smoothed over time" in raw
    assert note not in raw
    assert BANDS not in raw
    assert f"{note} {BANDS}" in smooth
    assert "smoothed over time" not in often
