"""The solver of a shuffled question: covers alone give the central epsilon, whoever else lies.

The report's epsilon is fixed: it is what shuffler and server learn together. The central epsilon
and delta decide how many covers there are; two of devices, central epsilon and error, the third.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import replace
from fractions import Fraction
from typing import Any

from veilcount_shared.collection import Model
from veilcount_shared.definition_record import default_grace
from veilcount_shared.mechanisms import Randomizer
from veilcount_shared.models import TRUST_MODELS
from veilcount_shared.periods import Unit

from ..errors import QueryError
from ..estimation.find_budget import chance_of_first
from ..estimation.open_strings import least_share
from ..estimation.response_distribution import ResponseDistribution
from ..mechanisms import share_handler_of
from ..mechanisms.handler import ShareHandler
from ..privacy.shuffled import least_covers, shuffled_error
from ..privacy.trust_models import ErrorEstimate, Quantity
from ..privacy.trust_models.quantity import two_sided
from .solvers import (
    REPORT_EPSILON,
    YES_OR_NO,
    QuestionShape,
    Solution,
    Solver,
    quantity_of_several,
    unreachable,
)

GRAIN = 100  # central epsilons are planned in hundredths
_SIZES = TRUST_MODELS[Model.SHUFFLED].batch_sizes
assert _SIZES is not None, "shuffled batches have sizes"  # noqa: S101 - narrows the type
SIZES = _SIZES


class CoverSolver(Solver):
    """The device adds noise, and the covers of a shuffler of another party hide its report."""

    def __init__(self, question: QuestionShape) -> None:
        _check(question)
        super().__init__(question)

    @property
    def report_epsilon(self) -> Fraction:
        """What shuffler and server learn of a report together."""
        return self.question.batch.report_epsilon

    @property
    def quantity(self) -> Quantity:
        """What is estimated; absence is reported and mixed like values."""
        values, several = self.question.values, self.question.several
        if not hides_presence(self.question):
            return self.question.quantity
        if several is not None:
            return quantity_of_several(several + 1, self.question.most)
        return Quantity.of_values((values or YES_OR_NO) + 1)

    @property
    def mechanism(self) -> Randomizer:
        """What a device reports by: the local choice, within 2 % of the best with covers."""
        return self.quantity.family(self.report_epsilon)

    def error(self, devices: int, epsilon: Fraction) -> Solution:
        """Return the error of so many devices among the covers that this epsilon takes."""
        if not epsilon < self.report_epsilon:
            fix = f"give less than a report's own epsilon, {float(self.report_epsilon):g}"
            raise QueryError("epsilon", epsilon, fix)
        covers = least_covers(self.mechanism, epsilon, self.question.delta)
        rmse = shuffled_error(self.mechanism, devices, covers) * self.quantity.width
        error = ErrorEstimate(rmse, two_sided(self.question.level) * rmse)
        share = self._least_share(devices, covers)
        return Solution(devices, epsilon, self.report_epsilon, error, share, covers)

    def epsilon(self, devices: int, error: float) -> Solution:
        """Return the least central epsilon, in hundredths, at which devices reach the error."""
        steps = range(int(self.report_epsilon * GRAIN))

        def is_enough(step: int) -> bool:
            return self.error(devices, Fraction(step, GRAIN)).accuracy <= error

        least = bisect_left(steps, True, lo=1, key=is_enough)
        if least == len(steps):
            raise unreachable(self.question, error)
        return self.error(devices, Fraction(least, GRAIN))

    def _least_share(self, devices: int, covers: int) -> float | None:
        """Return the share of an open string that is found half of the time; None: of no string."""
        candidates = self.question.candidates
        if candidates is None:
            return None
        response = among_covers(share_handler_of(self.mechanism), devices, covers)
        return least_share(response, devices, chance_of_first(candidates))


def among_covers(handler: ShareHandler[Any], n: int, covers: int) -> ResponseDistribution:
    """Add to the response of a report its part of the variance of covers."""
    response = handler.response
    if not covers:
        return response
    added = covers * handler.cover_variance() * response.gap**2 / n
    return replace(response, floor=response.floor + added)


def hides_presence(question: QuestionShape) -> bool:
    """Whether absence is reported as a value; of a list, if no bit is drawn."""
    has_cell = question.values is not None or question.most is not None
    return has_cell and not question.batch.public


def grace_of(question: QuestionShape) -> int:
    """Return the days that a batch waits for the devices of a period."""
    return question.batch.grace or default_grace(question.unit)


def least_reports(devices: int) -> int:
    """Return the least reports of a batch: the default, or half of fewer devices."""
    return max(SIZES.least, min(SIZES.default, devices // 2))


def _check(question: QuestionShape) -> None:
    """Refuse what a definition of this model refuses too."""
    batch = question.batch
    if question.arms > 1:
        raise QueryError("arms", question.arms, "a batch is not split: give 1")
    if question.unit is Unit.EVENT:
        raise QueryError("unit", question.unit, "a batch is of a period: give day, week or month")
    if not 0 < batch.report_epsilon <= REPORT_EPSILON:
        fix = f"give more than 0, and at most {float(REPORT_EPSILON):g}"
        raise QueryError("report", batch.report_epsilon, fix)
