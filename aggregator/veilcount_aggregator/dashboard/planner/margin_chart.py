"""How the margin falls as more devices answer, at several epsilons."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from ...analysis.planning import PlanResult, QuestionShape, TrustModel
from ...analysis.planning.solvers import SOLVERS
from ...text import number_format
from ..charts import Drawn, axis, curve, lines, wide_axis

BESIDE = (Fraction(1, 2), Fraction(1), Fraction(2), Fraction(4))
DECADES = range(2, 8)  # of devices
STEPS = {TrustModel.LOCAL: (1, 2, 5), TrustModel.SHUFFLED: (1,), TrustModel.CENTRAL: (1, 2, 5)}


@dataclass(frozen=True, slots=True)
class Falling:
    """The chart, and its table by number of devices."""

    drawn: Drawn
    heads: tuple[str, ...]
    rows: list[tuple[str, ...]]


def falling(question: QuestionShape, planned: PlanResult) -> Falling:
    """Return the margins around a plan; its own epsilon is among those that are drawn."""
    shares = planned.quantity != "mean"
    epsilons, sizes = _epsilons(planned), _sizes(planned)
    solver = SOLVERS[planned.trust](question)
    margins = [
        [solver.error(devices, each).error.half_width for devices in sizes] for each in epsilons
    ]
    names = [f"epsilon {number_format.epsilon(each)}" for each in epsilons]
    drawn = _drawn(planned, names, sizes, margins)
    rows = [
        (f"{n:,}", *(number_format.around(column[place], of_shares=shares) for column in margins))
        for place, n in enumerate(sizes)
    ]
    return Falling(drawn, ("Devices", *names), rows)


def _epsilons(planned: PlanResult) -> list[Fraction]:
    """Return those that are drawn: behind a shuffler the plan's alone, each is a long search."""
    beside = () if planned.trust is TrustModel.SHUFFLED else BESIDE
    return sorted({*beside, planned.epsilon})


def _sizes(planned: PlanResult) -> list[int]:
    steps = STEPS[planned.trust]
    round_ones = {step * 10**decade for decade in DECADES for step in steps}
    return sorted(round_ones | {planned.devices})


def _drawn(
    planned: PlanResult, names: list[str], sizes: list[int], margins: list[list[float]]
) -> Drawn:
    shares = planned.quantity != "mean"
    scale, own = 100 if shares else 1, f"epsilon {number_format.epsilon(planned.epsilon)}"
    parts = [
        curve(
            sizes,
            [scale * each or None for each in column],
            [
                f"{n:,} devices, {name}: {number_format.around(each, of_shares=shares)}"
                for n, each in zip(sizes, column, strict=True)
            ],
            name,
            dash="solid" if name == own else "dot",
        )
        for name, column in zip(names, margins, strict=True)
    ]
    every = [each for part in parts for each in part["at"]]
    mark = {"x": planned.devices, "text": f"{planned.devices:,} devices"}
    ticks = [(10**decade, f"{10**decade:,}") for decade in DECADES]
    y = wide_axis("margin, +/- points" if shares else "margin, +/-", every)
    return lines(parts, axis("devices", type="log", ticks=ticks), y, [mark])
