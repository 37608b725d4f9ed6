"""The planner: devices, epsilon or margin from the other two, and the definition to copy."""

from __future__ import annotations

from flask import Response, request

from veilcount_shared.periods import Unit

from ... import queries
from ...analysis.planning import TrustModel
from ...errors import QueryError
from ..pages import Content, Context, page, render
from .form import PlanForm, form_error
from .view import margin_chart, summary

TRUSTED = {
    TrustModel.LOCAL: "nobody",
    TrustModel.SHUFFLED: "a shuffler",
    TrustModel.CENTRAL: "a curator",
}


@page("/plan", tab="Planner", order=2, computes=True)
def planner(context: Context) -> Response | Content:
    """Show a plan for the two numbers that are given."""
    form = PlanForm.parse(request.args)
    content = {"form": form, "units": [(unit, unit) for unit in Unit], "trusted": TRUSTED}
    try:
        query, today = form.query(), context.aggregator.today()
        plan = queries.plan(query, today)
    except QueryError as error:
        return render("planner", 400, **content, wrong=form_error(error))
    return {**content, "plan": summary(plan), "chart": margin_chart(query.question(today), plan)}
