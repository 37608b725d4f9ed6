"""A plan in words and figures."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from veilcount_shared.periods import Unit

from ...analysis.planning import PlanResult, TrustModel
from ...queries.json_encoding import decimal
from ...text import number_format
from ..collection.formatting import level_of, of_fakes

SEEN_BY = {
    TrustModel.LOCAL: "",
    TrustModel.SHUFFLED: " behind an independent shuffler",
    TrustModel.CENTRAL: " spent by a trusted curator",
}
EACH = {"share": "each share", "mean": "the mean"}


@dataclass(frozen=True, slots=True)
class Fact:
    """One of the three numbers; `found` is the one that was not given."""

    name: str
    figure: str
    more: str
    found: bool


@dataclass(frozen=True, slots=True)
class Told:
    """What the page says of a plan."""

    says: str
    more: str
    facts: tuple[Fact, ...]
    epsilons: tuple[tuple[str, str, str], ...]
    rest: tuple[tuple[str, str], ...]
    toml: str


def told(planned: PlanResult) -> Told:
    """Return a plan as the page tells it."""
    return Told(
        says=_says(planned),
        more=f"{planned.sentence[:1].upper()}{planned.sentence[1:]}.",
        facts=_facts(planned),
        epsilons=_epsilons(planned),
        rest=tuple(_rest(planned)),
        toml=planned.toml,
    )


def _says(planned: PlanResult) -> str:
    known = EACH.get(planned.quantity, f"each {planned.quantity}")
    if planned.arms > 1:
        known = f"the difference of two arms in {known.removeprefix('the ')}"
    per = "" if planned.together.answers == 1 else f" {_a(planned.unit)}"
    return (
        f"With {planned.devices:,} consenting devices and epsilon"
        f" {decimal(planned.epsilon)}{per}{SEEN_BY[planned.trust]}, {known} is known to"
        f" {_around(planned, planned.error.half_width)}."
    )


def _a(unit: Unit) -> str:
    return f"an {unit}" if unit is Unit.EVENT else f"a {unit}"


def _around(planned: PlanResult, half_width: float) -> str:
    return number_format.around(half_width, of_shares=planned.quantity != "mean")


def _facts(planned: PlanResult) -> tuple[Fact, ...]:
    sample = _around(planned, planned.population.half_width)
    of = f"at {level_of(planned.level)}; as a sample of all who could be asked {sample}"
    return (
        Fact("Devices", f"{planned.devices:,}", "that answer", planned.found == "devices"),
        Fact("Epsilon", decimal(planned.epsilon), _whose(planned), planned.found == "epsilon"),
        Fact("Margin", _around(planned, planned.error.half_width), of, planned.found == "error"),
    )


def _whose(planned: PlanResult) -> str:
    if planned.trust is TrustModel.CENTRAL:
        return "of one release, made by who has every true value"
    if planned.trust is TrustModel.LOCAL:
        return "of one answer, to whoever receives it"
    device = decimal(planned.device or Fraction(0))
    return f"of one answer in the crowd, at delta {decimal(planned.delta)}; alone it is {device}"


def _epsilons(planned: PlanResult) -> tuple[tuple[str, str, str], ...]:
    """Return event, day and user of the definition, by substitution: one answer a period."""
    one = decimal(planned.epsilon if planned.device is None else planned.device)
    times = planned.together.answers
    every = "one answer in all" if times == 1 else f"{times:,} answers, one {_a(planned.unit)}"
    return (
        ("event", one, "one answer"),
        ("day", one, "a UTC day; any 24 hours touch two"),
        ("user", decimal(planned.together.plain), every),
    )


def _rest(planned: PlanResult) -> list[tuple[str, str]]:
    """Return what else to know before asking."""
    shares = planned.quantity != "mean"
    fakes = of_fakes(float(planned.headroom.fakes))
    push = number_format.around(planned.headroom.push, of_shares=shares).removeprefix("+/- ")
    rest = [("Fakes", f"{fakes} of fake devices can add up to {push}.")]
    if planned.detectable is not None:
        seen = number_format.share(planned.detectable)
        rest.insert(0, ("Stands out", f"A share of {seen} is told from one that nobody has."))
    if planned.device is not None:
        bits = f"{planned.bits} bit{'s' * (planned.bits != 1)} a message"
        rest.append(("Design", f"{planned.mechanism[:1].upper()}{planned.mechanism[1:]}; {bits}."))
    if planned.excess is not None:
        least = number_format.excess(planned.excess)
        rest.append(
            ("Variance", f"{least[:1].upper()}{least[1:]}, of all randomizers of this epsilon.")
        )
    if all_of_them := _together(planned):
        rest.append(("Together", all_of_them))
    return rest


def _together(planned: PlanResult) -> str:
    """Return what all answers reveal but for a small chance; nothing where it is no less."""
    together = planned.together
    less = number_format.epsilon(together.plain if together.specific is None else together.specific)
    if less == number_format.epsilon(together.plain):
        return ""
    return (
        f"Epsilon {less} for all {together.answers:,} answers but for a chance of"
        f" {decimal(together.delta)}, on a schedule fixed in advance."
    )
