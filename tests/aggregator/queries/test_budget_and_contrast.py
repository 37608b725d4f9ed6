"""Budgets and trust-model comparisons: guaranteed and spent, predicted and observed."""

from __future__ import annotations

import json
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from veilcount_aggregator import queries
from veilcount_analysis.kinds.registry import kind_of
from veilcount_analysis.privacy.trust_models import compare_trust_models as contrasted
from veilcount_analysis.text.number_format import decimal
from veilcount_shared.periods import Unit

from ...client.device_fixtures import definitions_text
from ..web.api.deployment_fixtures import CENTRAL, Deployment, deployment
from .conftest import AFTER, BEFORE
from .simulated_reports import FILE, LISTS, counted, send, snapshot, typed


def budget(deployed: Deployment, name: str, n: str = "") -> queries.BudgetResult:
    read = queries.BudgetQuery.parse({"n": [n]})
    return queries.budget(snapshot(deployed), name, read)


def contrast(deployed: Deployment, name: str, **params: str | list[str]) -> queries.ContrastResult:
    return queries.contrast(snapshot(deployed), name, queries.ContrastQuery.parse(typed(**params)))


# -- budgets ---------------------------------------------------------------------------------------


def test_a_budget_has_three_figures_what_they_mean_and_the_sum_over_an_app(
    stocked: Deployment,
) -> None:
    found = budget(stocked, "theme")
    (series,), together = found.series, found.cross_collection
    figures = series.budget.figures

    assert (figures.event, figures.day, figures.user) == (Fraction(2), Fraction(2), Fraction(24))
    assert "in which months a person answered is public" in figures.scope
    assert series.budget.composition.plain == 24
    assert series.budget.guessing_curve[-1].answers == 12
    assert [row.unit for row in series.levels.rows] == list(Unit)
    assert series.levels.user == 24
    assert "opened" in together.collections
    assert [each.model for each in together.totals] == ["local", "central"]
    assert {each.adjacency for each in together.totals} == {"substitute"}


def test_a_group_costs_a_person_one_question_until_it_is_changed(tmp_path: Path) -> None:
    """Who answered one question of the first form may be drawn for another one of the next."""
    group = '[group.habits]\nquestions = ["a", "b"]\n'
    first, second, alone = (
        definitions_text(a={"late": late}, b={"late": 30}) + table
        for late, table in ((30, group), (20, group), (30, ""))
    )
    worst = []
    for number, files in enumerate(((first,), (alone,), (first, second), (alone, first))):
        place = tmp_path / str(number)
        place.mkdir()
        with deployment(place, *files) as deployed:
            (total,) = budget(deployed, "a").cross_collection.totals
            worst.append(total.worst)

    assert worst == [30, 60, 60, 60]


def test_the_spent_slots_are_counted_and_the_bars_are_for_admins(stocked: Deployment) -> None:
    result = budget(stocked, "theme")
    (analyst,), (admin,) = queries.BUDGET.for_analysts(result).series, result.series
    seen, all_seen = analyst.budget.spent, admin.budget.spent

    assert seen is not None
    assert all_seen is not None
    assert seen.mean == seen.worst == all_seen.mean == all_seen.worst == 2
    assert seen.bars == ()
    assert analyst.bars == "an admin sees them"
    assert [(bar.least, bar.pseudonyms) for bar in all_seen.bars] == [(1, 13_000)]


def test_few_pseudonyms_are_no_bar(empty: Deployment) -> None:
    """Nor is their mean shown: it would be of these few people."""
    for _ in range(19):
        empty.verdicts(empty.report("theme"))
    series = budget(empty, "theme").series[0]

    assert series.budget.spent is not None
    assert (series.budget.spent.bars, series.budget.spent.mean) == ((), None)
    assert series.bars == "fewer than 20 pseudonyms: none is shown"


def test_where_nobody_can_join_periods_the_cap_is_stated(stocked: Deployment) -> None:
    (series,) = budget(stocked, "opened").series

    assert series.budget.spent is None
    assert "the device alone enforces" in series.budget.figures.server


@pytest.mark.parametrize(
    ("name", "requested", "n", "n_source"),
    [
        ("theme", "", 13_000, "pseudonyms of the campaign"),
        ("opened", "", 100, "new pseudonyms of the fullest period"),
        ("theme", "500", 500, "as requested"),
        ("visits", "", 10_000, "assumed: no number of persons is known"),
    ],
)
def test_errors_are_for_a_number_of_persons_of_a_stated_source(
    stocked: Deployment, name: str, requested: str, n: int, n_source: str
) -> None:
    """Of a curator's collection no number may leave that depends on one person."""
    stocked.push(CENTRAL)
    (series,) = budget(stocked, name, n=requested).series

    assert (series.levels.n, series.n_source) == (n, n_source)
    assert name != "visits" or series.budget.spent is None


# -- contrasts -------------------------------------------------------------------------------------


def test_a_contrast_is_observed_where_there_are_answers(stocked: Deployment) -> None:
    """Of the fullest period: there each person answers once."""
    (series,) = contrast(stocked, "theme").series
    theme = stocked.series("theme").collection
    expected = contrasted(theme, kind_of(theme).quantity, 8000)

    assert (series.first, series.last) == (date(2026, 11, 1), date(2026, 11, 30))
    assert (series.contrast.n, series.contrast.basis) == (8000, "observed")
    assert series.n_source == "reports of the fullest period"
    assert [(line.row, line.cohort) for line in series.contrast.lines] == [
        (line.row, line.cohort) for line in expected.lines
    ]


@pytest.mark.parametrize(
    ("name", "basis"),
    [
        *((name, "observed") for name in ("quiet", "word", "spread", "ranges")),
        ("minutes", "predicted"),
    ],
)
def test_every_kind_of_question_has_a_contrast(stocked: Deployment, name: str, basis: str) -> None:
    """Shares of a mean are not observed: its sampling error is the most there can be."""
    (series,) = contrast(stocked, name).series

    assert series.contrast.basis == basis
    assert series.contrast.lines[3].cohort.rmse < series.contrast.lines[0].cohort.rmse


def test_with_n_it_is_predicted_and_without_answers_assumed(stocked: Deployment) -> None:
    predicted = contrast(stocked, "theme", n="1000").series[0]
    stocked.push(CENTRAL)
    assumed = contrast(stocked, "visits").series[0]

    assert (predicted.contrast.basis, predicted.contrast.n) == ("predicted", 1000)
    assert (assumed.contrast.n, assumed.first) == (10_000, None)
    assert assumed.n_source == "assumed: no report is counted yet"


def test_paired_collections_are_compared_over_the_released_periods(tmp_path: Path) -> None:
    """A quarter is dark in both halves: each with its own interval.

    The curator's noise cannot be seeded: it is five half-widths off once in three million times.
    """
    with deployment(tmp_path, now=BEFORE, journal=tmp_path / "journal") as made:
        made.push(FILE, **LISTS)
        for name in ("local", "curated"):
            counted(send(made, name, [3000, 1000], seed=3))
        before = contrast(made, "local").series[0].twin
        made.clocks.now = AFTER
        request = {"query": "histogram", "epsilon": "0.5"}
        made.aggregator.curator.answer(made.series("curated"), request, AFTER, "test")
        after = contrast(made, "local").series[0].twin
        same = contrast(made, "curated").series[0].twin

    assert before is not None
    assert after is not None
    assert "Nothing comparable was released yet" in before.units
    assert [row.central for row in before.rows] == [None, None]
    assert after == same
    assert (after.local, after.central) == ("local", "curated")
    assert after.n == after.central_n == 4000
    assert (after.central_epsilon, after.units) == ("0.5", "Both as shares.")
    dark = after.rows[1]
    assert dark.value is True
    assert dark.central is not None
    width = dark.central.high - dark.central.low
    assert dark.central.figure == pytest.approx(0.25, abs=5 * width / 2)
    assert dark.local.low < 0.25 < dark.local.high
    assert 0 < width < dark.local.high - dark.local.low


# -- JSON ------------------------------------------------------------------------------------------


def test_an_exact_number_is_a_decimal_rounded_up() -> None:
    texts = ["0", "12", "0.7", "0.000000001", "0." + "0" * 29 + "1"]

    assert [decimal(Fraction(text)) for text in texts] == texts
    assert decimal(Fraction(1, 3)) == "0.333333333334"


@pytest.mark.parametrize("ask", [budget, contrast])
def test_answers_are_json_with_exact_numbers_as_texts(stocked: Deployment, ask: Any) -> None:
    text = json.dumps(queries.plain(ask(stocked, "theme")))

    assert "Fraction" not in text
    assert "NaN" not in text
    assert '"epsilon": "2"' in text
