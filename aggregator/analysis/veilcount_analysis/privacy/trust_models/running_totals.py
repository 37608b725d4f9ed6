"""Over time: the share of each period, and how many have answered so with every period that ends.

A curator who releases a running total after each period adds noise by the strategy that errs least
(`releases.prefix_sums`); local reports are added up. All protect one answer of one unit: a unit
lies in one period, so the releases of all periods together reveal no more than one.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import sqrt

from veilcount_shared import Collection

from ...releases.noise_kinds import NoiseKind
from ...releases.prefix_sums import MAX_PERIODS, best_strategy
from .quantity import Quantity

SUMMED = "summed"
LEVEL = 0.95  # of an interval that is not shown


@dataclass(frozen=True, slots=True)
class TimeLine:
    """How far off a model is, by its root mean square error."""

    model: str
    strategy: str
    share: float  # of one period
    total: float  # answers; the running total, over all periods


@dataclass(frozen=True, slots=True)
class TimeComparison:
    """The models over all periods of a campaign, each with n answers."""

    periods: int
    lines: tuple[TimeLine, ...]


def compare_over_time(
    collection: Collection, quantity: Quantity, n: int, epsilon: Fraction, delta: Fraction
) -> TimeComparison | None:
    """Return the models over time; None: one period, too many, or no shares of values."""
    periods = collection.periods
    if collection.is_trend:
        return None  # its shares over time are of the same reports
    if quantity.inputs is None or not 1 < periods <= MAX_PERIODS:
        return None
    local = sqrt(quantity.variance(epsilon))
    lines = [TimeLine("local", SUMMED, local / sqrt(n), local * sqrt(n * (periods + 1) / 2))]
    curators = {
        NoiseKind.LAPLACE: ("central", quantity.central(epsilon, 1, LEVEL)),
        NoiseKind.GAUSSIAN: (
            "central, Gaussian noise",
            quantity.gaussian(epsilon, delta, 1, LEVEL),
        ),
    }
    for kind, (model, one) in curators.items():
        best = best_strategy(periods, kind)
        total = one.rmse * best.predicted_error(kind)
        lines.append(TimeLine(model, best.name, one.rmse / n, total))
    return TimeComparison(periods, tuple(lines))
