"""A plan as it is shown: the figure that was computed, what it reveals, and what else to know."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from veilcount_analysis.estimation import View
from veilcount_analysis.planning import PlanResult, TrustedParty
from veilcount_analysis.releases.string_threshold import StringThreshold
from veilcount_analysis.text import number_format
from veilcount_analysis.text.number_format import (
    decimal,
    error_bar,
    fake_share,
    level,
    sentence_case,
    unsigned_error,
)
from veilcount_analysis.text.view_parts import Part, Table
from veilcount_shared.periods import Unit

from .batch_view import batch_tables, batch_terms

PROTECTED_BY = {
    TrustedParty.LOCAL: "",
    TrustedParty.SHUFFLED: " behind an independent shuffler",
    TrustedParty.CENTRAL: " spent by a trusted curator",
}
STRINGS = "How many people must have a string so that a release shows it"
STRING_COLUMNS = ("noise", "a release pays", "half of the time", "95% of the time", "then known to")
EACH = {"share": "each share", "mean": "the mean"}


@dataclass(frozen=True, slots=True)
class PlanView:
    """The plan in a sentence, its figures, what a person reveals, and further terms."""

    headline: str
    details: str
    figures: tuple[tuple[str, str, str, bool], ...]  # each with a note, and whether it was computed
    epsilons: tuple[tuple[str, str, str], ...]
    terms: tuple[tuple[str, str], ...]
    tables: tuple[Table, ...]  # of a batch, or of the strings that a curator releases
    toml: str

    @classmethod
    def from_result(cls, planned: PlanResult) -> PlanView:
        """Return the view of a plan."""
        return cls(
            headline=_headline(planned),
            details=f"{sentence_case(planned.sentence)}.",
            figures=_figures(planned),
            epsilons=_epsilons(planned),
            terms=tuple(_terms(planned)),
            tables=tuple(_tables(planned)),
            toml=planned.toml,
        )

    @property
    def parts(self) -> Iterator[Part]:
        """What a terminal shows before the definition."""
        yield f"{self.headline} {self.details}"
        rows = [
            (name, figure, "computed" if computed else "", note)
            for name, figure, note, computed in self.figures
        ]
        rows += [(f"Epsilon, {unit}", epsilon, "", of) for unit, epsilon, of in self.epsilons]
        yield Table("", ("", "Figure", "", ""), rows)
        yield from (f"{term}: {text}" for term, text in self.terms)
        yield from self.tables


def _headline(planned: PlanResult) -> str:
    known = EACH.get(planned.quantity, f"each {planned.quantity}")
    if planned.arms > 1:
        known = f"the difference of two arms in {known.removeprefix('the ')}"
    per = "" if planned.composition.answers == 1 else f" {_a(planned.unit)}"
    sentence = f"{known} is known to {error_bar(planned.error.half_width, planned.quantity)}"
    if planned.candidates is not None:
        share, tested = number_format.share(planned.detectable or 1), f"{planned.candidates:,}"
        sentence = f"a string that {share} of them have is found half of the time"
        sentence += f", among {tested} candidates"
    if planned.strings:
        people = f"{planned.strings[0].threshold:,}"
        sentence = f"a string is found half of the time if {people} of them have it"
    own = f" {decimal(planned.device)} a report," if planned.batch and planned.device else ""
    return (
        f"With {planned.devices:,} people and epsilon{own}"
        f" {decimal(planned.epsilon)}{per}{PROTECTED_BY[planned.trust]}, {sentence}."
    )


def _a(unit: Unit) -> str:
    return f"an {unit}" if unit is Unit.EVENT else f"a {unit}"


def _figures(planned: PlanResult) -> tuple[tuple[str, str, str, bool], ...]:
    """Return devices, epsilon and margin, each with a note, and whether it was computed."""
    margin, sample = (
        error_bar(error.half_width, planned.quantity)
        for error in (planned.error, planned.population)
    )
    of, computed = (
        f"at {level(planned.level)}; as a sample of the population {sample}",
        planned.found,
    )
    third = ("Accuracy", margin, of, computed == "error")
    if planned.candidates is not None:
        share = number_format.share(planned.detectable or 1)
        known = f"found half of the time; its share is then known to {margin}"
        third = ("Smallest share", share, known, computed == "share")
    return (
        ("People", f"{planned.devices:,}", "who take part", computed == "devices"),
        ("Epsilon", decimal(planned.epsilon), _whose(planned), computed == "epsilon"),
        third,
    )


def _tables(planned: PlanResult) -> Iterator[Table]:
    if planned.batch:
        yield from batch_tables(planned.batch, planned.quantity)
    if planned.strings:
        yield Table(STRINGS, STRING_COLUMNS, list(map(_string_row, planned.strings)))


def _string_row(threshold: StringThreshold) -> tuple[str, ...]:
    cost = f"epsilon {decimal(threshold.epsilon)}" if threshold.epsilon else ""
    return (
        str(threshold.noise),
        cost or f"rho {number_format.epsilon(threshold.rho or 0)}",
        f"{threshold.threshold:,}",
        f"{threshold.nearly_always:,}",
        f"+/- {threshold.half_width:,}",
    )


def _whose(planned: PlanResult) -> str:
    if planned.strings and planned.strings[0].rho:
        return f"of all releases of a {planned.unit}, at delta {decimal(planned.delta)}"
    if planned.strings:
        return f"of one release by a curator, at delta {decimal(planned.delta)} in all"
    if planned.trust is TrustedParty.CENTRAL:
        return "of one release, made by a curator who holds every true value"
    if planned.trust is TrustedParty.LOCAL:
        return "of one answer, against anyone who receives it"
    device = decimal(planned.device or Fraction(0))
    return (
        f"of one batch against the server alone, at delta {decimal(planned.delta)}; of the report,"
        f" {device}"
    )


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
    if planned.design_effect > 1:
        alike = f"{planned.devices / planned.design_effect:,.0f}"
        terms.append(("Weights", f"So many people say as much as {alike} like the population."))
    if planned.correlation is not None:
        width = error_bar(planned.correlation, planned.quantity)
        spread = "Two numbers that are spread evenly over their ranges: known to"
        terms.insert(0, ("Correlation", f"{spread} {width}."))
    if planned.answer is not None:
        width = error_bar(planned.answer, planned.quantity)
        terms.insert(0, ("Answers", f"The share of an answer to one question: known to {width}."))
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
    if planned.batch is not None:
        terms += batch_terms(planned.batch, planned.unit, planned.delta)
    elif composed := _composed(planned):
        terms.append(("Composition", composed))
    if planned.over_time:
        terms.append(("Over time", _over_time(planned)))
    return terms


def _over_time(planned: PlanResult) -> str:
    """Return how well each period is known if all of them together cost the epsilon of one."""
    ways = "; ".join(
        f"{error_bar(way.half_width, planned.quantity)} ({way.name})" for way in planned.over_time
    )
    best = min(planned.over_time, key=lambda way: way.half_width)
    single = min(
        (way for way in planned.over_time if way.view is View.RAW), key=lambda way: way.half_width
    )
    choice = f"The least error: {best.name}"
    if best is not single:
        choice += (
            "; its intervals hold for all periods together. Where each period must be right by"
            f" itself: {single.name}"
        )
    periods = f"{planned.composition.answers:,} {planned.unit}s"
    return (
        f"All {periods} together can cost this epsilon. Each share is then known to {ways}."
        f" {choice}."
    )


def _composed(planned: PlanResult) -> str:
    """Return the composed (epsilon, delta) of all answers; nothing if it is not below the sum."""
    composition = planned.composition
    least = composition.plain if composition.specific is None else composition.specific
    less = number_format.epsilon(least)
    if composition.answers == 1 or less == number_format.epsilon(composition.plain):
        return ""
    return (
        f"Epsilon {less} for all {composition.answers:,} answers at delta"
        f" {decimal(composition.delta)}, on a schedule fixed in advance."
    )
