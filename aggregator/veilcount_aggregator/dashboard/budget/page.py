"""The budget tab: the three epsilons, the counted spend, and what follows from them."""

from __future__ import annotations

from flask import Response, request

from ... import queries
from ...errors import QueryError
from ...queries import BudgetQuery
from ..pages import Content, Context, page, render
from ..series_choice import series_choice
from .composition_charts import attack_chart, composition_chart
from .view import epsilon_figures, headline, spend, unit_chart

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
        "headline": headline(account),
        "figures": account.figures,
        "epsilons": epsilon_figures(series.collection, account),
        "spend": spend(account, found.bars),
        "composition": composition_chart(series.collection, account, query.delta),
        "attack": attack_chart(account),
        "levels": found.levels,
        "unit_chart": unit_chart(found.levels, found.n_source),
        "cross_collection": result.cross_collection,
    }
