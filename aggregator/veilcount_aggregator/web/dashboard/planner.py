"""The planner: devices, epsilon or margin from the other two, and the definition to copy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from fractions import Fraction

from flask import Response, request

from veilcount_analysis.errors import QueryError
from veilcount_analysis.planning import PlanResult, QuestionShape, TrustedParty
from veilcount_analysis.planning.plan import SOLVERS
from veilcount_analysis.query_params import parse_number
from veilcount_analysis.text import number_format
from veilcount_analysis.text.number_format import decimal, error_bar
from veilcount_shared.periods import Unit

from ... import queries
from ...queries import PlanQuery
from ...queries.plan_view import PlanView
from .charts import Axis, Chart, Lines, curves, figures_of, logarithmic_axis, table_rows
from .pages import Content, Context, page, render

POINTS = 100  # in a share of 1
VALUES, NUMBER, STRINGS, FEATURES = "values", "number", "strings", "features"
TABLES, SEVERAL = "tables", "several"
KINDS = (
    (VALUES, "one of several values"),
    (NUMBER, "a number"),
    (STRINGS, "any string"),
    (FEATURES, "several numbers"),
    (TABLES, "several questions, in tables of two"),
    (SEVERAL, "all that apply, of several values"),
)

#: the form's names of the query's fields
ENTRIES = {"error": "margin", "share": "margin", "range": "low", "plan": "devices"}
TWO = "give exactly two of people, epsilon and accuracy; leave the one to compute empty"
TRUSTED = {
    TrustedParty.LOCAL: "nobody",
    TrustedParty.SHUFFLED: "a shuffler",
    TrustedParty.CENTRAL: "a curator",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanForm:
    """The fields as typed; by default a common plan."""

    kind: str = VALUES
    values: str = "2"
    low: str = ""
    high: str = ""
    candidates: str = "1,000,000"
    features: str = "3"
    questions: str = "2 3 3"
    several: str = "12"
    most: str = "3"
    devices: str = ""
    epsilon: str = ""
    margin: str = ""
    unit: str = "month"
    periods: str = ""
    arms: str = "1"
    weights: str = "1"
    trust: str = "local"

    @classmethod
    def parse(cls, parameters: Mapping[str, str]) -> PlanForm:
        """Read the query string."""
        names = {field_.name for field_ in fields(cls)}
        typed = {name: word.strip() for name, word in parameters.items() if name in names}
        return cls(**typed) if typed else cls(devices="20,000", epsilon="1")

    def query(self) -> PlanQuery:
        """Return the query, or refuse."""
        margin = self.margin
        if margin and self.kind in {
            VALUES,
            STRINGS,
            TABLES,
            SEVERAL,
        }:  # those of shares are typed in points
            margin = decimal(Fraction(parse_number("margin", margin)) / POINTS)
        words = {
            "devices": self.devices.replace(",", ""),
            "epsilon": self.epsilon,
            "share" if self.kind == STRINGS else "error": margin,
            "unit": self.unit,
            "periods": self.periods,
            "arms": self.arms,
            "weights": self.weights,
            "trust": self.trust,
        }
        if self.kind == NUMBER:
            words["range"] = f"{self.low}..{self.high}"
        elif self.kind == TABLES:
            words["questions"] = ",".join(self.questions.replace(",", " ").split())
        else:
            named = {STRINGS: "candidates", FEATURES: "features", SEVERAL: "several"}
            name = named.get(self.kind, VALUES)
            words[name] = getattr(self, name).replace(",", "")
        if self.kind == SEVERAL and self.most:
            words["most"] = self.most
        return PlanQuery.parse({name: [word] for name, word in words.items()})


@page("/plan", tab="Planner", order=2, computes=True)
def planner(context: Context) -> Response | Content:
    """Show a plan for the two numbers that are typed."""
    form = PlanForm.parse(request.args)
    units = [(unit, unit) for unit in Unit]
    content = {"form": form, "kinds": KINDS, "units": units, "trusted": TRUSTED}
    try:
        query, today = form.query(), context.aggregator.today()
        planned = queries.plan(query, today)
    except QueryError as error:
        return render("planner", 400, **content, wrong=_field_error(error))
    chart = margin_chart(query.question(today), planned)
    return {**content, "plan": PlanView.from_result(planned), "chart": chart}


def _field_error(error: QueryError) -> Content:
    """Return a query error under the form's field names; `has_field`: it is shown at its field."""
    field = ENTRIES.get(error.field, error.field)
    has_field = field in {field_.name for field_ in fields(PlanForm)}
    return {
        "field": field,
        "fix": TWO if error.field == "plan" else error.fix,
        "has_field": has_field,
    }


USUAL_EPSILONS = (Fraction(1, 2), Fraction(1), Fraction(2), Fraction(4))
DECADES = range(2, 8)  # of devices
STEPS = (1, 2, 5)


# -- the chart -------------------------------------------------------------------------------------


def margin_chart(question: QuestionShape, planned: PlanResult) -> Chart:
    """Draw the margin over the number of devices, at the plan's epsilon and usual ones."""
    epsilons, sizes = _drawn_epsilons(planned), _sizes(planned)
    solver = SOLVERS[planned.trust](question)
    margins = {
        f"epsilon {number_format.epsilon(epsilon)}": [
            solver.error(devices, epsilon).accuracy for devices in sizes
        ]
        for epsilon in epsilons
    }
    rows = table_rows(sizes, margins, _shown(planned))
    several = ", at several epsilons; the solid line is the plan's" if len(margins) > 1 else ""
    is_open = planned.candidates is None
    figure = "Half of an interval" if is_open else "The smallest share that is found"
    caption = f"{figure} by the number of people{several}. Both axes are logarithmic."
    drawing = _drawing(planned, sizes, margins)
    return Chart("margins", drawing, caption, ("People", *margins), rows)


def _shown(planned: PlanResult) -> Callable[[float], str]:
    """Return how the chart's figures are written."""
    if planned.candidates is not None:
        return lambda share: number_format.share(share) if share <= 1 else "none"
    return lambda margin: error_bar(margin, planned.quantity)


def _drawn_epsilons(planned: PlanResult) -> list[Fraction]:
    """Return the epsilons drawn; with a shuffler below that of a report alone."""
    most = planned.device if planned.trust is TrustedParty.SHUFFLED else None
    usual = (epsilon for epsilon in USUAL_EPSILONS if most is None or epsilon < most)
    return sorted({*usual, planned.epsilon})


def _sizes(planned: PlanResult) -> list[int]:
    round_numbers = {step * 10**decade for decade in DECADES for step in STEPS}
    return sorted(round_numbers | {planned.devices})


def _drawing(planned: PlanResult, sizes: list[int], margins: dict[str, list[float]]) -> Lines:
    shares = planned.quantity not in number_format.NUMBERS
    shown = _shown(planned)
    scale, own = 100 if shares else 1, f"epsilon {number_format.epsilon(planned.epsilon)}"
    parts = curves(
        sizes,
        margins,
        lambda margin: None if shares and margin > 1 else scale * margin or None,
        lambda n, name, margin: f"{n:,} people, {name}: {shown(margin)}",
    )
    lines = tuple(replace(part, dashed=part.name != own) for part in parts)
    ticks = tuple((10**decade, f"{10**decade:,}") for decade in DECADES)
    unit = "+/- points" if shares else "+/-"
    y = logarithmic_axis(unit if planned.candidates is None else "percent", figures_of(parts))
    x = Axis("people", logarithmic=True, ticks=ticks)
    return Lines(lines, x, y, rule=(planned.devices, f"{planned.devices:,} people"))
