"""The plan of a shuffled question: covers alone give the central epsilon, whoever else lies.

The report's epsilon is fixed: it is what shuffler and server learn together. The central epsilon
and delta decide how many covers there are; two of devices, central epsilon and error, the third.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from fractions import Fraction

from veilcount_shared.mechanisms import Randomizer

from ..errors import QueryError
from ..privacy.shuffled import least_covers, shuffled_error
from ..privacy.trust_models import Quantity
from .solvers import QuestionShape, fewest_devices

REPORT_EPSILON = Fraction(4)
GRAIN = 100  # central epsilons are planned in hundredths


@dataclass(frozen=True, slots=True)
class CoverPlan:
    """Devices, central (epsilon, delta) and error that belong together, and what they take."""

    devices: int
    epsilon: Fraction
    delta: Fraction
    report_epsilon: Fraction
    covers: int
    error: float  # standard error, in the quantity's own units


@dataclass(frozen=True, slots=True)
class CoverPlanner:
    """One question, at one epsilon of a report.

    Of values, absence is one more unless presence is public: it is reported and mixed like them.
    """

    question: QuestionShape
    report_epsilon: Fraction = REPORT_EPSILON
    hidden: bool = True

    def __post_init__(self) -> None:
        """Refuse arms: segments would split a batch."""
        if self.question.arms > 1:
            raise QueryError("arms", self.question.arms, "a batch is not split: give 1")

    @property
    def quantity(self) -> Quantity:
        """What is estimated, with the cell of absence."""
        values = self.question.values
        if values is None:
            return self.question.quantity
        return Quantity.of_values(values + self.hidden)

    @property
    def mechanism(self) -> Randomizer:
        """What a device reports by: the local choice, within 2 % of the best with covers."""
        return self.quantity.family(self.report_epsilon)

    def error(self, devices: int, epsilon: Fraction) -> CoverPlan:
        """Return the error of so many devices at a central epsilon."""
        covers = least_covers(self.mechanism, epsilon, self.question.delta)
        error = shuffled_error(self.mechanism, devices, covers) * self.quantity.width
        return CoverPlan(devices, epsilon, self.question.delta, self.report_epsilon, covers, error)

    def epsilon(self, devices: int, error: float) -> CoverPlan:
        """Return the least central epsilon, in hundredths, at which devices reach the error."""
        steps = range(int(self.report_epsilon * GRAIN) + 1)
        least = bisect_left(
            steps,
            True,
            lo=1,
            key=lambda step: self.error(devices, Fraction(step, GRAIN)).error <= error,
        )
        if least == len(steps):
            raise QueryError("error", error, "out of reach without covers: give more devices")
        return self.error(devices, Fraction(least, GRAIN))

    def devices(self, epsilon: Fraction, error: float) -> CoverPlan:
        """Return how many devices reach the error at a central epsilon."""
        needed = fewest_devices(lambda n: self.error(n, epsilon).error <= error)
        if needed is None:
            raise QueryError("error", error, "out of reach of any number of devices")
        return self.error(needed, epsilon)


def cover_plan(
    question: QuestionShape,
    *,
    devices: int | None = None,
    epsilon: Fraction | None = None,
    error: float | None = None,
    share: float = 1.0,
    report_epsilon: Fraction = REPORT_EPSILON,
    hidden: bool = True,
) -> CoverPlan:
    """Return the plan: give exactly two of devices, central epsilon and error.

    The error is a standard error, relative to `share` if one is stated.
    """
    if (epsilon is not None and not epsilon > 0) or (error is not None and not error > 0):
        raise QueryError("plan", None, "give numbers above 0")
    planner = CoverPlanner(question, report_epsilon, hidden)
    match devices, epsilon, error:
        case int(n), Fraction() as central, None:
            return planner.error(n, central)
        case int(n), None, float(relative):
            return planner.epsilon(n, relative * share)
        case None, Fraction() as central, float(relative):
            return planner.devices(central, relative * share)
    raise QueryError("plan", None, "give exactly two of devices, epsilon and error")
