"""The page: a form of three numbers of which two are given, and what follows."""

from __future__ import annotations

from typing import Any

from flask import Response, request

from veilcount_shared.periods import Unit

from ... import queries
from ...analysis.planning import TrustModel
from ...errors import QueryError
from ..layout import Frame
from .form import Form, wrong
from .margin_chart import falling
from .summary import told

TRUSTED = {
    TrustModel.LOCAL: "nobody",
    TrustModel.SHUFFLED: "a shuffler",
    TrustModel.CENTRAL: "a curator",
}


def pages(frame: Frame) -> None:
    """Add the page."""

    @frame.page("/plan", computes=True)
    def planner() -> Response:
        """How many devices, how much epsilon, how small a margin."""
        form = Form.read(request.args)
        shown: dict[str, Any] = {
            "form": form,
            "units": [(unit, unit) for unit in Unit],
            "trusted": TRUSTED,
        }
        try:
            query, today = form.query(), frame.aggregator.today()
            planned = queries.plan(query, today)
        except QueryError as error:
            return frame.told("planner.html", 400, **shown, wrong=wrong(error))
        curve = falling(query.question(today), planned)
        return frame.told("planner.html", **shown, told=told(planned), falling=curve)
