"""The page: a form of three numbers of which two are given, and what follows."""

from __future__ import annotations

from typing import Any

from flask import Response, request

from veilcount_shared.periods import Unit

from ... import answers
from ...errors import QueryError
from ...planning import Trust
from ..frame import Frame
from .falling import falling
from .form import Form, wrong
from .told import told

TRUSTED = {
    Trust.LOCAL: "nobody",
    Trust.SHUFFLED: "a shuffler",
    Trust.CENTRAL: "a curator",
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
            asked = form.question(frame.aggregator.today())
            planned = answers.plan(asked)
        except QueryError as error:
            return frame.told("planner.html", 400, **shown, wrong=wrong(error))
        curve = falling(asked.planning, planned)
        return frame.told("planner.html", **shown, told=told(planned), falling=curve)
