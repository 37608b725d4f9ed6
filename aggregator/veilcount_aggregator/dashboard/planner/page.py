"""The planner: devices, epsilon or margin from the other two, and the definition to copy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from fractions import Fraction

from flask import Response, request

from veilcount_shared.periods import Unit

from ... import queries
from ...analysis.planning import TrustModel
from ...errors import QueryError
from ...queries import PlanQuery
from ...queries.json_encoding import decimal
from ...queries.query_params import parse_number
from ..pages import Content, Context, page, render
from .view import margin_chart, summary

POINTS = 100  # in a share of 1
VALUES, NUMBER = "values", "number"

#: the form's names of the query's fields
ENTRIES = {"error": "margin", "range": "low", "plan": "devices"}
TWO = "give exactly two of devices, epsilon and margin; leave the one to compute empty"
TRUSTED = {
    TrustModel.LOCAL: "nobody",
    TrustModel.SHUFFLED: "a shuffler",
    TrustModel.CENTRAL: "a curator",
}


@dataclass(frozen=True, slots=True)
class FieldError:
    """An error of a field: which, and how to correct it."""

    field: str
    fix: str

    @property
    def has_field(self) -> bool:
        """Whether the form has this field, so that the message is shown at it."""
        return self.field in {each.name for each in fields(PlanForm)}


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanForm:
    """The fields as typed; by default a common plan."""

    kind: str = VALUES
    values: str = "2"
    low: str = ""
    high: str = ""
    devices: str = ""
    epsilon: str = ""
    margin: str = ""
    unit: str = "month"
    periods: str = ""
    arms: str = "1"
    trust: str = "local"

    @classmethod
    def parse(cls, parameters: Mapping[str, str]) -> PlanForm:
        """Read the query string."""
        names = {each.name for each in fields(cls)}
        typed = {name: word.strip() for name, word in parameters.items() if name in names}
        return cls(**typed) if typed else cls(devices="20,000", epsilon="1")

    def query(self) -> PlanQuery:
        """Return the query, or refuse."""
        of_number = self.kind == NUMBER
        margin = self.margin
        if margin and not of_number:  # margins of shares are typed in points
            margin = decimal(Fraction(parse_number("margin", margin)) / POINTS)
        words = {
            "devices": self.devices.replace(",", ""),
            "epsilon": self.epsilon,
            "error": margin,
            "unit": self.unit,
            "periods": self.periods,
            "arms": self.arms,
            "trust": self.trust,
        }
        if of_number:
            words["range"] = f"{self.low}..{self.high}"
        else:
            words["values"] = self.values.replace(",", "")
        return PlanQuery.parse({name: [word] for name, word in words.items()})


@page("/plan", tab="Planner", order=2, computes=True)
def planner(context: Context) -> Response | Content:
    """Show a plan for the two numbers that are typed."""
    form = PlanForm.parse(request.args)
    content = {"form": form, "units": [(unit, unit) for unit in Unit], "trusted": TRUSTED}
    try:
        query, today = form.query(), context.aggregator.today()
        plan = queries.plan(query, today)
    except QueryError as error:
        return render("planner", 400, **content, wrong=_field_error(error))
    return {**content, "plan": summary(plan), "chart": margin_chart(query.question(today), plan)}


def _field_error(error: QueryError) -> FieldError:
    """Return a query error under the form's field names."""
    fix = TWO if error.field == "plan" else error.fix
    return FieldError(ENTRIES.get(error.field, error.field), fix)
