"""The planner: devices, epsilon or margin from the other two, and the definition to copy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from fractions import Fraction

from flask import Response, request

from veilcount_analysis.errors import QueryError
from veilcount_analysis.planning import PlanResult, QuestionShape, TrustModel
from veilcount_analysis.planning.solvers import SOLVERS
from veilcount_analysis.query_params import parse_number
from veilcount_analysis.text import number_format
from veilcount_analysis.text.number_format import (
    error_bar,
    fake_share,
    level,
    sentence_case,
    unsigned_error,
)
from veilcount_shared.periods import Unit

from ... import queries
from ...queries import PlanQuery
from ...queries.json_encoding import decimal
from .charts import Axis, Chart, Lines, curves, figures_of, logarithmic_axis, table_rows
from .pages import Content, Context, page, render

POINTS = 100  # in a share of 1
VALUES, NUMBER, STRINGS, FEATURES = "values", "number", "strings", "features"
KINDS = (
    (VALUES, "one of several values"),
    (NUMBER, "a number"),
    (STRINGS, "any string"),
    (FEATURES, "several numbers"),
)

#: the form's names of the query's fields
ENTRIES = {"error": "margin", "share": "margin", "range": "low", "plan": "devices"}
TWO = "give exactly two of people, epsilon and accuracy; leave the one to compute empty"
TRUSTED = {
    TrustModel.LOCAL: "nobody",
    TrustModel.SHUFFLED: "a shuffler",
    TrustModel.CENTRAL: "a curator",
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
        margin = self.margin
        if margin and self.kind in {VALUES, STRINGS}:  # those of shares are typed in points
            margin = decimal(Fraction(parse_number("margin", margin)) / POINTS)
        words = {
            "devices": self.devices.replace(",", ""),
            "epsilon": self.epsilon,
            "share" if self.kind == STRINGS else "error": margin,
            "unit": self.unit,
            "periods": self.periods,
            "arms": self.arms,
            "trust": self.trust,
        }
        if self.kind == NUMBER:
            words["range"] = f"{self.low}..{self.high}"
        else:
            name = {STRINGS: "candidates", FEATURES: "features"}.get(self.kind, VALUES)
            words[name] = getattr(self, name).replace(",", "")
        return PlanQuery.parse({name: [word] for name, word in words.items()})


@page("/plan", tab="Planner", order=2, computes=True)
def planner(context: Context) -> Response | Content:
    """Show a plan for the two numbers that are typed."""
    form = PlanForm.parse(request.args)
    units = [(unit, unit) for unit in Unit]
    content = {"form": form, "kinds": KINDS, "units": units, "trusted": TRUSTED}
    try:
        query, today = form.query(), context.aggregator.today()
        plan = queries.plan(query, today)
    except QueryError as error:
        return render("planner", 400, **content, wrong=_field_error(error))
    return {**content, "plan": summary(plan), "chart": margin_chart(query.question(today), plan)}


def _field_error(error: QueryError) -> Content:
    """Return a query error under the form's field names; `has_field`: it is shown at its field."""
    field = ENTRIES.get(error.field, error.field)
    has_field = field in {each.name for each in fields(PlanForm)}
    return {
        "field": field,
        "fix": TWO if error.field == "plan" else error.fix,
        "has_field": has_field,
    }


PROTECTED_BY = {
    TrustModel.LOCAL: "",
    TrustModel.SHUFFLED: " behind an independent shuffler",
    TrustModel.CENTRAL: " spent by a trusted curator",
}
EACH = {"share": "each share", "mean": "the mean"}
USUAL_EPSILONS = (Fraction(1, 2), Fraction(1), Fraction(2), Fraction(4))
DECADES = range(2, 8)  # of devices
STEPS = {TrustModel.LOCAL: (1, 2, 5), TrustModel.SHUFFLED: (1,), TrustModel.CENTRAL: (1, 2, 5)}


def summary(planned: PlanResult) -> Content:
    """Describe a plan."""
    return {
        "headline": _headline(planned),
        "details": f"{sentence_case(planned.sentence)}.",
        "figures": _figures(planned),
        "epsilons": _epsilons(planned),
        "terms": _terms(planned),
        "toml": planned.toml,
    }


def _headline(planned: PlanResult) -> str:
    known = EACH.get(planned.quantity, f"each {planned.quantity}")
    if planned.arms > 1:
        known = f"the difference of two arms in {known.removeprefix('the ')}"
    per = "" if planned.composition.answers == 1 else f" {_a(planned.unit)}"
    found = f"{known} is known to {error_bar(planned.error.half_width, planned.quantity)}"
    if planned.candidates is not None:
        share, tested = number_format.share(planned.detectable or 1), f"{planned.candidates:,}"
        found = f"a string that {share} of them have is found half of the time"
        found += f", among {tested} candidates"
    return (
        f"With {planned.devices:,} people and epsilon"
        f" {decimal(planned.epsilon)}{per}{PROTECTED_BY[planned.trust]}, {found}."
    )


def _a(unit: Unit) -> str:
    return f"an {unit}" if unit is Unit.EVENT else f"a {unit}"


def _figures(planned: PlanResult) -> tuple[tuple[str, str, str, bool], ...]:
    """Return devices, epsilon and margin, each with a note, and whether it was computed."""
    margin, sample = (
        error_bar(each.half_width, planned.quantity) for each in (planned.error, planned.population)
    )
    of, found = f"at {level(planned.level)}; as a sample of the population {sample}", planned.found
    third = ("Accuracy", margin, of, found == "error")
    if planned.candidates is not None:
        share = number_format.share(planned.detectable or 1)
        known = f"found half of the time; its share is then known to {margin}"
        third = ("Smallest share", share, known, found == "share")
    return (
        ("People", f"{planned.devices:,}", "who take part", found == "devices"),
        ("Epsilon", decimal(planned.epsilon), _whose(planned), found == "epsilon"),
        third,
    )


def _whose(planned: PlanResult) -> str:
    if planned.trust is TrustModel.CENTRAL:
        return "of one release, made by a curator who holds every true value"
    if planned.trust is TrustModel.LOCAL:
        return "of one answer, against anyone who receives it"
    device = decimal(planned.device or Fraction(0))
    return f"of one answer after shuffling, at delta {decimal(planned.delta)}; before it, {device}"


def _epsilons(planned: PlanResult) -> tuple[tuple[str, str, str], ...]:
    """Return event, day and user of the definition, by substitution: one answer a period."""
    one = decimal(planned.epsilon if planned.device is None else planned.device)
    times = planned.composition.answers
    every = "one answer in total" if times == 1 else f"{times:,} answers, one {_a(planned.unit)}"
    return (
        ("event", one, "one answer"),
        ("day", one, "one UTC day; any 24 hours span two"),
        ("user", decimal(planned.composition.plain), every),
    )


def _terms(planned: PlanResult) -> list[tuple[str, str]]:
    """Return terms and descriptions: what else to know before asking."""
    fakes = fake_share(float(planned.headroom.fakes))
    push = unsigned_error(planned.headroom.push, planned.quantity)
    terms = [
        ("Poisoning", f"A fraction of {fakes} fake devices can shift an estimate by up to {push}.")
    ]
    if planned.correlation is not None:
        width = error_bar(planned.correlation, planned.quantity)
        spread = "Two numbers that are spread evenly over their ranges: known to"
        terms.insert(0, ("Correlation", f"{spread} {width}."))
    if planned.detectable is not None and planned.candidates is None:
        seen = number_format.share(planned.detectable)
        terms.insert(0, ("Detectable", f"A share of {seen} is distinguished from zero."))
    if planned.device is not None:
        bits = f"{planned.bits} bit{'s' * (planned.bits != 1)} a message"
        terms.append(("Mechanism", f"{sentence_case(planned.mechanism)}; {bits}."))
    if planned.excess is not None:
        least = number_format.excess(planned.excess)
        terms.append(
            ("Variance", f"{sentence_case(least)}, among all randomizers of this epsilon.")
        )
    if composed := _composed(planned):
        terms.append(("Composition", composed))
    if planned.over_time:
        terms.append(("Over time", _over_time(planned)))
    return terms


def _over_time(planned: PlanResult) -> str:
    """Return how well each period is known if all of them together cost the epsilon of one."""
    ways = ", ".join(
        f"{error_bar(each.half_width, planned.quantity)} with {each.definition}"
        for each in planned.over_time
    )
    periods = f"{planned.composition.answers:,} {planned.unit}s"
    return (
        f"If all {periods} together are to cost this epsilon, the share of each is known to {ways}."
    )


def _composed(planned: PlanResult) -> str:
    """Return the composed (epsilon, delta) of all answers; nothing if it is not below the sum."""
    composition = planned.composition
    least = composition.plain if composition.specific is None else composition.specific
    less = number_format.epsilon(least)
    if less == number_format.epsilon(composition.plain):
        return ""
    return (
        f"Epsilon {less} for all {composition.answers:,} answers at delta"
        f" {decimal(composition.delta)}, on a schedule fixed in advance."
    )


# -- the chart -------------------------------------------------------------------------------------


def margin_chart(question: QuestionShape, planned: PlanResult) -> Chart:
    """Draw the margin over the number of devices, at the plan's epsilon and usual ones."""
    epsilons, sizes = _drawn_epsilons(planned), _sizes(planned)
    solver = SOLVERS[planned.trust](question)
    margins = {
        f"epsilon {number_format.epsilon(each)}": [
            solver.error(devices, each).accuracy for devices in sizes
        ]
        for each in epsilons
    }
    rows = table_rows(sizes, margins, _shown(planned))
    several = ", at several epsilons; the solid line is the plan's" if len(margins) > 1 else ""
    found = planned.candidates is None
    figure = "Half of an interval" if found else "The smallest share that is found"
    caption = f"{figure} by the number of people{several}. Both axes are logarithmic."
    drawing = _drawing(planned, sizes, margins)
    return Chart("margins", drawing, caption, ("People", *margins), rows)


def _shown(planned: PlanResult) -> Callable[[float], str]:
    """Return how the chart's figures are written."""
    if planned.candidates is not None:
        return number_format.share
    return lambda margin: error_bar(margin, planned.quantity)


def _drawn_epsilons(planned: PlanResult) -> list[Fraction]:
    """Return the epsilons drawn: with a shuffler only the plan's, since each is a long search."""
    usual = () if planned.trust is TrustModel.SHUFFLED else USUAL_EPSILONS
    return sorted({*usual, planned.epsilon})


def _sizes(planned: PlanResult) -> list[int]:
    round_numbers = {step * 10**decade for decade in DECADES for step in STEPS[planned.trust]}
    return sorted(round_numbers | {planned.devices})


def _drawing(planned: PlanResult, sizes: list[int], margins: dict[str, list[float]]) -> Lines:
    shares = planned.quantity not in number_format.NUMBERS
    shown = _shown(planned)
    scale, own = 100 if shares else 1, f"epsilon {number_format.epsilon(planned.epsilon)}"
    parts = curves(
        sizes,
        margins,
        lambda margin: scale * margin or None,
        lambda n, name, margin: f"{n:,} people, {name}: {shown(margin)}",
    )
    lines = tuple(replace(part, dashed=part.name != own) for part in parts)
    ticks = tuple((10**decade, f"{10**decade:,}") for decade in DECADES)
    unit = "+/- points" if shares else "+/-"
    y = logarithmic_axis(unit if planned.candidates is None else "percent", figures_of(parts))
    x = Axis("people", logarithmic=True, ticks=ticks)
    return Lines(lines, x, y, rule=(planned.devices, f"{planned.devices:,} people"))
