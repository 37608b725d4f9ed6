"""The budget tab: the three epsilons, the counted spend, and what follows from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import lru_cache

from flask import Response, request

from veilcount_analysis.errors import QueryError
from veilcount_analysis.privacy.budget import (
    CollectionBudget,
    ComposedEpsilon,
    HistogramBar,
    UnitComparison,
)
from veilcount_analysis.privacy.budget.composition import compose_answers, guessing_chance
from veilcount_analysis.privacy.trust_models import ErrorEstimate
from veilcount_analysis.text import number_format
from veilcount_shared import Collection
from veilcount_shared.guessing import percent
from veilcount_shared.mechanisms import Randomizer

from ... import queries
from ...queries import BudgetQuery
from ...queries.json_encoding import decimal
from .charts import (
    Axis,
    Chart,
    Columns,
    Lines,
    counts,
    curves,
    figures_of,
    logarithmic_axis,
    table_rows,
)
from .formatting import error_bar, level, short_percent
from .pages import Content, Context, page, render, series_choice
from .scales import Tick
from .svg import Gauge

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
    result = queries.budget(snapshot, name, query, bars=context.is_admin)
    (found,) = result.series
    account = found.budget
    return content | {
        "headline": headline(series.collection, account),
        "figures": account.figures,
        "epsilons": epsilon_figures(series.collection, account),
        "gauge": spent_gauge(account),
        "spend": spend(account, found.bars),
        "composition": composition_chart(series.collection, account, query.delta),
        "attack": attack_chart(account),
        "windows": window_table(account),
        "levels": found.levels,
        "unit_chart": unit_chart(found.levels, found.n_source),
        "cross_collection": result.cross_collection,
        "released": result.released,
    }


NOT_COUNTED = (
    "No spend is counted: the aggregator cannot, or must not, link the reports of one person."
)
NARROW = 12  # percent of a gauge, in which two labels would overlap
TOO_SMALL = "too small to report"
UNIT_COLUMNS = (
    "Unit",
    "Answers",
    "Epsilon each",
    "Local, campaign",
    "Local, one period",
    "Central, campaign",
    "Central, one period",
    "All answers guessed",
)


def headline(collection: Collection, account: CollectionBudget) -> str:
    """Return the budget in one sentence."""
    figures = account.figures
    user = decimal(figures.user)
    if not account.guessing_curve:
        return f"Releases reveal at most epsilon {user} of one person in the whole campaign."
    last = account.guessing_curve[-1]
    seen = f"all {last.answers:,} answers" if last.answers > 1 else "the one answer"
    if collection.is_trend:
        seen = "all reports together"
    return (
        f"One person can reveal at most epsilon {user} in the whole campaign: from {seen}, a"
        f" constant yes or no is guessed right at most {percent(last.mechanism)} of the time."
    )


def spent_gauge(account: CollectionBudget) -> Gauge | None:
    """Return what one person can reveal, and what one has spent; None: it is not counted."""
    spent, most = account.spent, account.figures.user
    if spent is None or spent.worst is None:
        return None
    text = f"epsilon {number_format.epsilon(spent.worst)}"
    filled = round(100 * min(float(spent.worst / most), 1.0), 2)
    marks = [Tick(0.0, "0"), Tick(100.0, f"epsilon {decimal(most)}")]
    if NARROW < filled < 100 - NARROW:
        marks.insert(1, Tick(filled, text))
    legend = (
        f"Outlined: epsilon {decimal(most)}, which one person can reveal; filled: {text}, which one"
        " pseudonym has spent at most."
    )
    return Gauge(legend, filled, marks, legend)


def epsilon_figures(
    collection: Collection, account: CollectionBudget
) -> tuple[tuple[str, str, str, str], ...]:
    """Return three levels, each with its epsilon, what it covers, and what an attacker learns."""
    figures, day = account.figures, collection.per_period
    whole = f"{figures.answers:,} answers, all of them"
    if collection.is_trend:
        whole = "all reports of the campaign together"
    elif figures.answers == 1:
        whole = "one answer, the whole campaign"
    return (
        ("event", decimal(figures.event), "one answer", _guess(collection, 1)),
        ("day", decimal(figures.day), figures.day_is, _guess(collection, day)),
        ("user", decimal(figures.user), whole, _all(account)),
    )


WINDOW_COLUMNS = ("Within any", "Epsilon", "In as long a time from any moment on")


def window_table(account: CollectionBudget) -> Chart | None:
    """Return what a person reveals within a window of time; None: the campaign is one period."""
    if not account.windows:
        return None
    rows = [
        (each.window, decimal(each.epsilon), decimal(each.at_any_moment))
        for each in account.windows
    ]
    caption = "The most that one person reveals within a window of time"
    return Chart("windows", None, caption, WINDOW_COLUMNS, rows)


def _guess(collection: Collection, seen: int) -> str:
    if collection.trust.releases:
        return ""
    return _means(seen, guessing_chance(collection.randomizer, seen).mechanism)


def _all(account: CollectionBudget) -> str:
    if not account.guessing_curve:
        return ""
    last = account.guessing_curve[-1]
    return _means(last.answers, last.mechanism)


def _means(seen: int, chance: Fraction) -> str:
    whose = "it" if seen == 1 else f"all {seen:,}"
    return (
        f"Whoever sees {whose} guesses a constant yes or no right with at most {percent(chance)}."
    )


# -- the counted spend -----------------------------------------------------------------------------


#: a text, why it has no chart, and the chart: for admins, where it has two bars or more
Spend = tuple[str, str, Chart | None]


def spend(account: CollectionBudget, bars: str) -> Spend:
    """Describe the counted spend; `bars`: who may see its distribution."""
    spent = account.spent
    if spent is None:
        return NOT_COUNTED, "", None
    if spent.mean is None or spent.worst is None:
        return "Nothing is shown yet:", f"{bars}.", None
    text = (
        f"{spent.pseudonyms:,} pseudonyms have spent epsilon {number_format.epsilon(spent.mean)}"
        f" on average, {number_format.epsilon(spent.worst)} at most,"
        f" of the maximum {number_format.epsilon(spent.cap)}."
    )
    return text, _distribution(spent.bars), _spend_chart(spent.bars)


def _distribution(bars: Sequence[HistogramBar]) -> str:
    if not bars:
        return "Only admins see the distribution."
    return f"All of them: {_answers_spent(bars[0])}." if len(bars) == 1 else ""


def _spend_chart(bars: Sequence[HistogramBar]) -> Chart | None:
    if len(bars) < 2:  # noqa: PLR2004 - a sentence is enough for one
        return None
    texts = [f"{bar.pseudonyms:,} pseudonyms: {_answers_spent(bar)}" for bar in bars]
    part = counts([bar.pseudonyms for bar in bars], texts)
    x = Axis("answers spent", labels=tuple(_spent(bar) for bar in bars))
    return Chart(
        "spent",
        Columns((part,), x, Axis("pseudonyms")),
        "How many pseudonyms have spent how many answers; each bar has at least 20 of them.",
        ("Answers spent", "Epsilon, at most", "Pseudonyms"),
        [(_spent(bar), number_format.epsilon(bar.epsilon), f"{bar.pseudonyms:,}") for bar in bars],
    )


def _spent(bar: HistogramBar) -> str:
    return f"{bar.least:,}" if bar.least == bar.most else f"{bar.least:,} to {bar.most:,}"


def _answers_spent(bar: HistogramBar) -> str:
    answers = "answer" if bar.most == 1 else "answers"
    return f"{_spent(bar)} {answers}, at most epsilon {number_format.epsilon(bar.epsilon)} each"


# -- the cost of another unit ----------------------------------------------------------------------


def unit_chart(found: UnitComparison, n_source: str) -> Chart:
    """Draw the error of each unit at one epsilon for a user."""
    shares, names = (
        found.quantity not in number_format.NUMBERS,
        [str(row.unit) for row in found.rows],
    )
    named: dict[str, list[ErrorEstimate | None]] = {
        "local, no one trusted": [row.local_campaign for row in found.rows],
        "central, a curator trusted": [row.central_campaign for row in found.rows],
    }

    def height(error: ErrorEstimate | None) -> float | None:  # 0 has no place on a logarithmic axis
        return (100 if shares else 1) * error.half_width or None if error else None

    def text(error: ErrorEstimate | None) -> str:
        return error_bar(error.half_width if error else None, found.quantity)

    parts = curves(
        names, named, height, lambda unit, name, error: f"{unit}, {name}: {text(error)}", dots=True
    )
    y = logarithmic_axis("+/- points" if shares else "+/-", figures_of(parts))
    rows = [
        (
            row.unit,
            f"{row.answers:,}",
            TOO_SMALL if row.epsilon is None else number_format.epsilon(row.epsilon),
            text(row.local_campaign),
            text(row.local_period),
            text(row.central_campaign),
            text(row.central_period),
            "" if row.guess_all is None else percent(row.guess_all),
        )
        for row in found.rows
    ]
    caption = (
        f"Error of the {found.quantity} over the whole campaign by unit, for n = {found.n:,}"
        f" persons ({n_source}), at {level(found.level)}."
    )
    drawing = Lines(parts, Axis("unit of privacy", labels=tuple(names)), y)
    return Chart("units", drawing, caption, UNIT_COLUMNS, rows)


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
    return Chart(
        "composed",
        Lines(parts, Axis("answers of one person"), Axis("epsilon")),
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


def attack_chart(account: CollectionBudget) -> Chart | None:
    """Draw how often a constant yes or no is guessed right; None: one answer, or no noise."""
    found = account.guessing_curve
    if len(found) < 2:  # noqa: PLR2004 - two points make a line
        return None
    x = [point.answers for point in found]
    named = {
        "fresh noise, any mechanism": [point.fresh for point in found],
        "fresh noise, this mechanism": [point.mechanism for point in found],
        "one answer, frozen": [found[0].mechanism for _ in found],
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
    return Chart(
        "attack",
        Lines(parts, Axis("answers seen", logarithmic=True, ticks=ticks), y),
        "The probability of guessing a constant yes or no right after so many answers of one"
        " person; one half is a blind guess.",
        ("Answers seen", "Fresh, any mechanism", "Fresh, this mechanism", "Frozen"),
        table_rows(x, named, percent),
    )
