"""A yes or no over all periods at one epsilon for the whole campaign: which way errs least.

One answer of each person in one of the periods, or a trend of a state that changes at most so
often. A person who is drawn for a period is a sample of all, so that counts as error too.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import sqrt

from veilcount_shared.mechanisms import TrendMechanism
from veilcount_shared.periods import Unit

from ..mechanisms import handler_of
from ..privacy.trust_models.quantity import two_sided
from .solvers import YES_OR_NO, QuestionShape, TrustedParty

CHANGES = (1, 3)
SAMPLING = 1 / 4  # n times the variance of a sampled share, at most


@dataclass(frozen=True, slots=True)
class TimeStrategy:
    """Half of an interval of the share of each period, averaged over them."""

    definition: str
    changes: int | None  # at most; None: any number
    half_width: float


def time_strategies(
    question: QuestionShape, trust: TrustedParty, devices: int, epsilon: Fraction
) -> tuple[TimeStrategy, ...]:
    """Return the strategies, the best of each number of changes; none for other questions."""
    periods = question.number_of_periods
    one_state = question.values == YES_OR_NO and question.arms == 1 and trust is TrustedParty.LOCAL
    one_state &= question.design_effect == 1  # a trend has no segments
    if not one_state or periods == 1 or question.unit in {Unit.EVENT, Unit.USER}:
        return ()
    alone = periods * (question.quantity.variance(epsilon) + SAMPLING)
    reach = two_sided(question.level) / sqrt(devices)
    trends = {changes: _trend_variance(epsilon, periods, changes) for changes in CHANGES}
    return (
        TimeStrategy("answers = 1", None, reach * sqrt(alone)),
        *(
            TimeStrategy(f'measure = "trend", changes = {changes}', changes, reach * sqrt(variance))
            for changes, variance in trends.items()
        ),
    )


def _trend_variance(epsilon: Fraction, periods: int, changes: int) -> float:
    return handler_of(TrendMechanism.for_epsilon(epsilon, periods, changes)).noise_variance()
