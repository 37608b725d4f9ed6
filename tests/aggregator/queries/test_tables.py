"""Several questions, from reports in a store to tables of two and which answers go together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

from veilcount_analysis.errors import QueryError
from veilcount_analysis.mechanisms.pair_tables import tables_handler

from ...client.device_fixtures import definitions_text
from ..web.api.deployment_fixtures import Deployment, deployment
from ..web.dashboard.page_fixtures import logged_in
from .simulated_reports import compare, counted, estimate, send_rows

FILE = definitions_text(
    "acme",
    {"tables": True, "unit": "month", "from": "2026-11-01", "until": "2027-01-01"},
    habits={
        "question": "What do you do?",
        "questions": {
            "theme": ["light", "dark"],
            "walk": ["no", "yes"],
            "pet": ["cat", "dog", "none"],
        },
        "epsilon": 2,
        "answers": 1,
    },
    few={"question": "What do you do?", "questions": {"a": [1, 2], "b": [1, 2]}},
)
N = 40_000
PET, THEME, WALK = range(3)  # in the order of the names


def people() -> np.ndarray:
    """Pets; themes, which do not depend on them; walks, which dark users resume more often."""
    generator = np.random.default_rng(1)
    theme = generator.random(N) < 0.4
    walk = generator.random(N) < np.where(theme, 0.45, 0.24)
    return np.stack([generator.choice(3, N, p=[0.2, 0.3, 0.5]), theme, walk])


@pytest.fixture(scope="module")
def habits(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    now = datetime(2026, 12, 10, 12, tzinfo=UTC)
    with deployment(tmp_path_factory.mktemp("tables"), FILE, now=now) as made:
        handler = tables_handler(made.series("habits").collection)
        points = np.ravel_multi_index(tuple(people()), handler.mechanism.sizes)
        generator = np.random.default_rng(2)
        rows = handler.draw_rows(handler.draw_inputs(points, generator), generator)
        counted(send_rows(made, "habits", rows[: N // 2], period=0))
        counted(send_rows(made, "habits", rows[N // 2 :], period=1))
        yield made


def figures(habits: Deployment, **params: str) -> dict[Any, Any]:
    (series,) = estimate(habits, "habits", **params).series
    return {(row.kind, key(row.of)): row for row in series.ranges[-1].figures}


def key(value: object) -> object:
    return tuple(value.values()) if isinstance(value, Mapping) else value


def covers(row: Any, value: float) -> bool:
    return bool(row.low < value < row.high)


def test_shares_cells_and_dependence_have_intervals_that_cover_the_exact_ones(
    habits: Deployment,
) -> None:
    """One report a person; the exact figures are those of a curator who sees all answers."""
    found, (pet, theme, walk) = figures(habits, level="0.999"), people()
    together = np.array([[np.mean((theme == a) & (walk == b)) for b in (0, 1)] for a in (0, 1)])
    odds = together[0, 0] * together[1, 1] / together[0, 1] / together[1, 0]

    assert covers(found["share", ("dark",)], np.mean(theme))
    assert covers(found["share", ("dog",)], np.mean(pet == 1))
    assert covers(found["cell", ("dark", "yes")], together[1, 1])
    assert covers(found["cell", ("dog", "yes")], np.mean((pet == 1) & walk.astype(bool)))
    assert covers(found["within", ("dark", "yes")], together[1, 1] / np.mean(theme))
    assert covers(found["odds_ratio", "theme, walk"], odds)
    assert not covers(found["odds_ratio", "theme, walk"], 1)
    assert found["independence", "theme, walk"].figure < 1e-6
    assert found["independence", "pet, theme"].figure > 0.01
    assert ("odds_ratio", "pet, walk") not in found, "it has more than four cells"


def test_fakes_widen_every_band_and_could_have_made_the_dependence(habits: Deployment) -> None:
    none, some, many = (figures(habits, fakes=fakes) for fakes in ("0", "0.01", "0.1"))
    walk = ("odds_ratio", "theme, walk")
    bands = [name for name, row in some.items() if row.fake_low is not None]

    assert set(bands) >= {("share", ("dark",)), ("cell", ("dark", "yes")), walk}
    for name in bands:
        assert none[name].fake_low <= none[name].figure <= none[name].fake_high, name
        assert some[name].fake_low <= none[name].fake_low, name
        assert some[name].fake_high > none[name].fake_high - 1e-9, name
    assert some[walk].fake_low > 1
    assert many[walk].fake_low is None, "any ratio: the fakes may be a whole cell"


def test_the_pair_that_is_named_is_shown_alone(habits: Deployment) -> None:
    one = figures(habits, pair="walk,theme")

    assert {name for kind, name in one if kind == "independence"} == {"theme, walk"}
    assert len([name for kind, name in one if kind == "cell"]) == 4
    assert len([name for kind, name in one if kind == "share"]) == 4
    assert one["independence", "theme, walk"] == figures(habits)["independence", "theme, walk"]


def test_faces_show_the_same_figures(habits: Deployment) -> None:
    """Page with heat maps, report to print, table; over time they are in the result."""
    visitor = logged_in(habits)
    page = visitor.get("/collections/habits")
    months = estimate(habits, "habits", by="month").series[0].ranges
    csv = visitor.get("/collections/habits/estimates.csv")

    assert page.status == 200
    assert "walk goes with theme: of those with theme light, 74 to 78 of 100 have" in page.text
    assert "1 of 3 pairs of questions depend" in page.text
    assert page.html.count('class="heat"') == 2 * (4 + 6 + 6)
    assert "theme: dark, walk: yes: 1" in page.html, "what is read out of a cell"
    assert "theme (rows) and walk (columns)" in page.text
    assert [len(month.figures) for month in months] == [7 + 2 * 16 + 4] * 2
    assert "of.theme" in csv.html
    assert 'odds_ratio,"theme, walk"' in csv.html
    for tab in ("contrast", "budget", "privacy", "definition", "report"):
        assert visitor.get(f"/collections/habits/{tab}").status == 200, tab
    assert visitor.get("/").status == 200
    assert visitor.get("/collections/few").status == 200
    assert visitor.get("/collections/habits?pair=theme,walk").html.count('class="heat"') == 8


def test_without_a_report_of_each_pair_nothing_is_stated(habits: Deployment) -> None:
    handler = tables_handler(habits.series("few").collection)
    generator = np.random.default_rng(3)

    assert estimate(habits, "few").series[0].ranges[-1].figures == ()
    rows = handler.draw_rows(np.zeros(60, np.int64), generator)
    counted(send_rows(habits, "few", rows, period=0))
    (series,) = estimate(habits, "few").series
    tests = [row for row in series.ranges[-1].figures if row.kind == "independence"]
    assert [row.figure for row in tests] == [None], "60 reports are too few to test"


@pytest.mark.parametrize(
    ("params", "name", "fix"),
    [
        ({"pair": "theme,weight"}, "pair", "pet,theme"),
        ({"pair": "theme"}, "pair", "give two of the questions"),
        ({"pair": "theme,theme"}, "pair", "give two of the questions"),
        ({"values": "dark"}, "values", "no values to select"),
        ({"view": "consistent"}, "view", "raw view"),
    ],
)
def test_a_query_that_has_no_answer_is_refused(
    habits: Deployment, params: dict[str, str], name: str, fix: str
) -> None:
    with pytest.raises(QueryError, match=fix) as refused:
        estimate(habits, "habits", **params)

    assert refused.value.field == name


def test_tables_are_not_compared(habits: Deployment) -> None:
    with pytest.raises(QueryError, match="estimate both"):
        compare(habits, "habits", a="2026-11-01..2026-11-30", b="2026-12-01..2026-12-31")
