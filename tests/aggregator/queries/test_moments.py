"""Several numbers, from counters in a store to correlations and a regression."""

from __future__ import annotations

from collections.abc import Iterator
from csv import reader
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

from veilcount_analysis.errors import QueryError
from veilcount_analysis.mechanisms.moments import moments_handler
from veilcount_analysis.series.packed_rows import rows_from_numbers
from veilcount_shared.domain import GRID

from ...client.device_fixtures import definitions_text
from ..web.api.deployment_fixtures import Deployment, deployment
from ..web.dashboard.page_fixtures import logged_in
from .simulated_reports import compare, counted, estimate, send_rows

FILE = definitions_text(
    "acme",
    {"measure": "moments", "unit": "month", "from": "2026-11-01", "until": "2027-01-01"},
    body={
        "question": "How old, how many hours, how many steps?",
        "features": {"age": [0, 100], "hours": [0, 60], "steps": [0, 20000]},
        "epsilon": 8,
        "answers": 1,
    },
    few={"question": "How many?", "features": {"a": [0, 1], "b": [0, 1]}},
)
N = 30_000
LOW, HIGH = np.array([0, 0, 0]), np.array([100, 60, 20_000])


def people() -> np.ndarray:
    """Age, hours that rise by a fifth a year, and steps that fall with both."""
    generator = np.random.default_rng(1)
    age = generator.uniform(10, 90, N)
    hours = 10 + 0.2 * age + generator.normal(0, 8, N)
    steps = 12_000 - 60 * age + 50 * hours + generator.normal(0, 1500, N)
    return np.clip(np.stack([age, hours, steps], axis=1), LOW, HIGH)


@pytest.fixture(scope="module")
def bodies(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    now = datetime(2026, 12, 10, 12, tzinfo=UTC)
    with deployment(tmp_path_factory.mktemp("moments"), FILE, now=now) as made:
        handler = moments_handler(made.series("body").collection)
        points = np.rint((people() - LOW) / (HIGH - LOW) * GRID).astype(np.int64)
        generator = np.random.default_rng(2)
        messages = handler.draw_messages(handler.draw_moments(points, generator), generator)
        rows = rows_from_numbers(messages, made.series("body").collection.message_bytes)
        counted(send_rows(made, "body", rows[: N // 2], period=0))
        counted(send_rows(made, "body", rows[N // 2 :], period=1))
        yield made


def figures(bodies: Deployment, **params: str) -> dict[tuple[str, ...], Any]:
    (series,) = estimate(bodies, "body", **params).series
    return {(row.kind, *str(row.of).split(", ")): row for row in series.ranges[-1].figures}


def covers(row: Any, value: float) -> bool:
    return bool(row.low < value < row.high)


def test_figures_in_their_own_units_have_intervals_that_cover_the_exact_ones(
    bodies: Deployment,
) -> None:
    """One report a person; the exact figures are those of a curator who sees all numbers."""
    found, exact = figures(bodies, regress="steps", level="0.999"), people()
    design = np.column_stack([exact[:, :2], np.ones(N)])
    slopes = np.linalg.lstsq(design, exact[:, 2], rcond=None)[0]
    together = np.corrcoef(exact.T)

    assert covers(found["mean", "hours"], exact[:, 1].mean())
    assert covers(found["deviation", "steps"], exact[:, 2].std())
    assert covers(found["covariance", "age", "hours"], np.cov(exact.T)[0, 1])
    assert covers(found["correlation", "age", "hours"], together[0, 1])
    assert covers(found["correlation", "age", "steps"], together[0, 2])
    assert covers(found["coefficient", "steps", "age"], slopes[0])
    assert covers(found["coefficient", "steps", "hours"], slopes[1])
    assert covers(found["intercept", "steps"], slopes[2])
    assert not covers(found["correlation", "age", "steps"], 0)


def test_faces_show_the_same_figures(bodies: Deployment) -> None:
    """Page, report to print, table; over time they are in the result, one list a month."""
    visitor = logged_in(bodies)
    page = visitor.get("/collections/body?regress=steps")
    months = estimate(bodies, "body", by="month").series[0].ranges
    csv = visitor.get("/collections/body/estimates.csv")

    assert page.status == 200
    assert "Correlation of age and steps -0." in page.text
    assert "Linear regression" in page.text
    assert [len(month.figures) for month in months] == [12, 12]
    assert 'correlation,"age, hours"' in csv.html
    for tab in ("contrast", "budget", "privacy", "definition", "report"):
        assert visitor.get(f"/collections/body/{tab}").status == 200, tab
    assert visitor.get("/").status == 200
    assert visitor.get("/collections/few").status == 200


def test_fake_reports_have_a_band_in_the_units_of_each_figure(bodies: Deployment) -> None:
    """1 % of all are 9 % of the reports of one of nine moments; a tenth of them moves a tenth."""
    none, few, many = (
        figures(bodies, regress="steps", fakes=each) for each in ("0", "0.001", "0.2")
    )
    mean, slope = ("mean", "steps"), ("coefficient", "steps", "age")
    handler = moments_handler(bodies.series("body").collection)
    push = float(max(handler.mechanism.mean.decoded)) * 20_000 * 0.009
    figure = few[mean].figure or 0.0

    for key, row in few.items():
        assert none[key].fake_low == none[key].fake_high == pytest.approx(row.figure)
        assert row.fake_low < row.figure < row.fake_high, key
    assert few[mean].fake_low == pytest.approx((figure - push) / 0.991, rel=0.05)
    assert (many[slope].fake_low, many[slope].fake_high) == (None, None)
    assert many[slope].figure == few[slope].figure
    together = many["correlation", "age", "steps"]
    assert (together.fake_low, together.fake_high) == (-1, 1)


def test_the_band_is_on_the_page_and_in_files(bodies: Deployment) -> None:
    visitor = logged_in(bodies)
    page = visitor.get("/collections/body?regress=steps&fakes=0.05")
    csv = visitor.get("/collections/body/estimates.csv?fakes=0.001").html.splitlines()
    header = csv[0].split(",")
    (row,) = [line for line in csv if "covariance" in line and "age, hours" in line]
    cells = next(reader([row]))
    low, high = (float(cells[header.index(name)]) for name in ("fake_low", "fake_high"))

    assert "If 5% were fake" in page.text
    assert "any number" in page.text
    assert "If 5% were fake" not in visitor.get("/collections/body?fakes=0").text
    assert low < float(cells[header.index("figure")]) < high


def test_without_enough_spread_no_quotient_is_stated(bodies: Deployment) -> None:
    """Of 900 reports at epsilon 1 no variance is above its noise: a deviation may be 0."""
    handler = moments_handler(bodies.series("few").collection)
    points, generator = np.full((900, 2), GRID // 2), np.random.default_rng(3)
    messages = handler.draw_messages(handler.draw_moments(points, generator), generator)
    counted(send_rows(bodies, "few", rows_from_numbers(messages, 1)))

    rows = estimate(bodies, "few", regress="a").series[0].ranges[-1].figures
    stated = {row.kind for row in rows if row.figure is not None}

    assert stated == {"mean", "deviation", "covariance"}
    assert logged_in(bodies).get("/collections/few?regress=a").status == 200


@pytest.mark.parametrize(
    ("params", "field", "fix"),
    [
        ({"regress": "weight"}, "regress", "age, hours, steps"),
        ({"values": "3"}, "values", "remove it"),
        ({"top": "3"}, "top", "remove it"),
        ({"view": "consistent"}, "view", "view=raw"),
        ({"view": "smooth", "by": "month"}, "view", "view=raw"),
        ({"looks": "every"}, "looks", "looks=one"),
        ({"candidates": "a"}, "candidates", "lists its values"),
    ],
)
def test_a_query_that_features_cannot_answer_is_refused(
    bodies: Deployment, params: dict[str, str], field: str, fix: str
) -> None:
    with pytest.raises(QueryError) as refused:
        estimate(bodies, "body", **params)

    assert refused.value.field == field
    assert fix in str(refused.value)


def test_sides_of_several_numbers_are_not_compared(bodies: Deployment) -> None:
    with pytest.raises(QueryError, match="estimate both"):
        compare(bodies, "body", a="2026-11-01..2026-11-30", b="2026-12-01..2026-12-31")
