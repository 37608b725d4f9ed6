"""The budget tab: the three epsilons, the counted spend, and what follows from them."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache

from flask import Response, request

from veilcount_analysis.errors import QueryError
from veilcount_analysis.privacy.budget import CollectionBudget, ComposedEpsilon, UnitComparison
from veilcount_analysis.privacy.budget.composition import compose_answers
from veilcount_analysis.privacy.trust_models import ErrorEstimate
from veilcount_analysis.text import number_format
from veilcount_analysis.text.number_format import decimal, error_bar
from veilcount_analysis.text.view_parts import Table
from veilcount_shared import Collection
from veilcount_shared.guessing import percent
from veilcount_shared.mechanisms import Randomizer

from ... import queries
from ...queries import BudgetQuery
from ...queries.budget_view import BudgetView, bar_slots, bar_text
from .charts import (
    Axis,
    Chart,
    Lines,
    StackedColumns,
    counts,
    curves,
    figures_of,
    logarithmic_axis,
    table_rows,
)
from .formatting import short_percent
from .pages import Content, Context, page, render, series_choice
from .scales import Tick
from .svg import HEADROOM, Gauge

FIELDS = ("delta", "n")


@page("/collections/<name>/budget", tab="Budget", order=3, computes=True)
def budget(context: Context, name: str) -> Response | Content:
    """Show what a person reveals to a collection."""
    snapshot = context.aggregator.snapshot()
    content = series_choice("budget", snapshot.named(name))
    typed = {field: request.args.get(field, "").strip() for field in FIELDS}
    content["typed"], series = typed, content["series"]
    parameters = {field: [word] for field, word in typed.items()}
    try:
        query = BudgetQuery.parse(parameters | {"series": [series.fingerprint]})
    except QueryError as error:
        return render("budget", 400, **content, wrong=error)
    result = queries.budget(snapshot, name, query)
    if not context.is_admin:
        result = queries.BUDGET.for_analysts(result)
    (row,) = result.series
    view = BudgetView.from_result(result, row)
    return content | {
        "view": view,
        "unit": row.budget.figures.unit,
        "gauge": spent_gauge(row.budget),
        "windows": view.windows and Chart.from_table("windows", view.windows),
        "spent": view.spent and spent_chart(row.budget, view.spent),
        "composition": composition_chart(series.collection, row.budget, query.delta),
        "attack": view.guesses and attack_chart(row.budget, view.guesses),
        "levels": row.levels,
        "unit_chart": unit_chart(row.levels, view.units),
    }


def spent_gauge(account: CollectionBudget) -> Gauge | None:
    """Return what one person can reveal, and what one has spent; None: it is not counted."""
    spent, most = account.spent, account.figures.user
    if spent is None or spent.worst is None:
        return None
    text = f"epsilon {number_format.epsilon(spent.worst)}"
    filled = round(100 * min(float(spent.worst / most), 1.0), 2)
    marks = (Tick(0.0, "0"), Tick(filled, text), Tick(100.0, f"epsilon {decimal(most)}"))
    legend = (
        f"Outlined: epsilon {decimal(most)}, which one person can reveal; filled: {text}, which one"
        " pseudonym has spent at most."
    )
    return Gauge(legend, filled, marks, legend)


def spent_chart(account: CollectionBudget, table: Table) -> Chart:
    """Draw how many pseudonyms have spent how many answers."""
    bars = account.spent.bars if account.spent else ()
    texts = [f"{bar.pseudonyms:,} pseudonyms: {bar_text(bar)}" for bar in bars]
    part = counts([bar.pseudonyms for bar in bars], texts)
    x = Axis("answers spent", labels=tuple(map(bar_slots, bars)))
    return Chart.from_table("spent", table, StackedColumns((part,), x, Axis("pseudonyms")))


def unit_chart(levels: UnitComparison, table: Table) -> Chart:
    """Draw the error of each unit at one epsilon for a user."""
    shares, names = (
        levels.quantity not in number_format.NUMBERS,
        [str(row.unit) for row in levels.rows],
    )
    named: dict[str, list[ErrorEstimate | None]] = {
        "local, no one trusted": [row.local_campaign for row in levels.rows],
        "central, a curator trusted": [row.central_campaign for row in levels.rows],
    }

    def height(error: ErrorEstimate | None) -> float | None:  # 0 has no place on a logarithmic axis
        return (100 if shares else 1) * error.half_width or None if error else None

    def text(unit: str, name: str, error: ErrorEstimate | None) -> str:
        half_width = error.half_width if error else None
        return f"{unit}, {name}: {error_bar(half_width, levels.quantity)}"

    parts = curves(names, named, height, text, dots=True)
    y = logarithmic_axis("+/- points" if shares else "+/-", figures_of(parts))
    drawing = Lines(parts, Axis("unit of privacy", labels=tuple(names)), y)
    return Chart.from_table("units", table, drawing)


POINTS = 24  # of a line
MOST_DRAWN = 1000  # answers: above, the exact bound takes seconds


def composition_chart(
    collection: Collection, account: CollectionBudget, delta: Fraction
) -> Chart | None:
    """Draw the composed epsilon over the number of answers; None: one answer, or no noise."""
    most = min(account.figures.answers, MOST_DRAWN)
    if collection.trust.releases or most == 1:
        return None
    points = _composed(collection.randomizer, most, delta)
    x = [point.answers for point in points]
    named = {
        "plain sum, enforced": [point.plain for point in points],
        "any mechanism, at best": [point.optimal or point.plain for point in points],
        "this mechanism": [point.specific or point.plain for point in points],
    }
    parts = curves(
        x,
        _distinct(named),
        float,
        lambda n, name, figure: f"{n:,} answers, {name}: epsilon {number_format.epsilon(figure)}",
    )
    y = Axis("epsilon", ends=(0.0, HEADROOM * float(points[-1].plain)))
    return Chart(
        "composed",
        Lines(parts, Axis("answers of one person"), y),
        "Epsilon of several answers together. The plain sum always holds, and is enforced; the"
        f" other two hold with delta = {decimal(delta)}, on a schedule fixed in advance.",
        ("Answers", "Plain sum", "Any mechanism", "This mechanism"),
        table_rows(x, named, number_format.epsilon),
    )


@lru_cache(maxsize=64)
def _composed(mechanism: Randomizer, most: int, delta: Fraction) -> tuple[ComposedEpsilon, ...]:
    return tuple(compose_answers(mechanism, times, delta) for times in _places(most))


def _places(most: int) -> list[int]:
    """Return numbers of answers from 1 on, each as many times more than the last."""
    if most <= POINTS:
        return list(range(1, most + 1))
    return sorted({round(most ** (place / (POINTS - 1))) for place in range(POINTS)})


def _distinct(named: Mapping[str, list[Fraction]]) -> dict[str, list[Fraction]]:
    """Return the lines that differ: of two that are the same, the later."""
    later = {tuple(figures): name for name, figures in named.items()}
    return {name: figures for name, figures in named.items() if later[tuple(figures)] == name}


def attack_chart(account: CollectionBudget, table: Table) -> Chart:
    """Draw how often a constant yes or no is guessed right."""
    curve = account.guessing_curve
    x = [point.answers for point in curve]
    named = {
        "fresh noise, any mechanism": [point.fresh for point in curve],
        "fresh noise, this mechanism": [point.mechanism for point in curve],
        "one answer, frozen": [curve[0].mechanism for _ in curve],
    }
    parts = curves(
        x,
        _distinct(named),
        float,
        lambda n, name, chance: f"{n:,} seen, {name}: {percent(chance)}",
        dots=True,
    )
    y = Axis("guessed right, at most", short_percent, ends=(0.48, 1.02))
    ticks = tuple((n, f"{n:,}") for n in x)
    x_axis = Axis("answers seen", logarithmic=True, ticks=ticks)
    return Chart.from_table("attack", table, Lines(parts, x_axis, y))
