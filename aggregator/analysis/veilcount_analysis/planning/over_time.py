"""A yes or no over all periods at one epsilon for the whole campaign: which way errs least.

One answer of each person in one of the periods, raw or smoothed, or a trend of a state that changes
at most so often. A person who is drawn for a period is a sample of all, so that counts as error
too. What smoothing gains depends on how the share moves: it is simulated, by what smooths the
figures themselves, where people change one after another, at once in the middle, and early.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import sqrt

import numpy as np

from veilcount_shared.mechanisms import TrendMechanism
from veilcount_shared.periods import Unit

from ..estimation import View
from ..estimation.confidence_intervals import Floats
from ..estimation.smoothing import FEWEST, Smoother
from ..mechanisms import handler_of
from ..privacy.trust_models.quantity import two_sided
from .solvers import YES_OR_NO, QuestionShape, TrustedParty

ONE_ANSWER = "answers = 1"
CHANGES = (1, 3)
SAMPLING = 1 / 4  # n times the variance of a sampled share, at most
CAMPAIGNS = 8  # of each course: the error is within some 5 %


@dataclass(frozen=True, slots=True)
class TimeStrategy:
    """Half of an interval of the share of each period, averaged over them.

    Smooth intervals hold over all periods together, others in each.
    """

    definition: str
    changes: int | None  # at most; None: any number
    half_width: float
    view: View = View.RAW

    @property
    def name(self) -> str:
        """The definition, and how it is read."""
        return self.definition + (", smoothed" if self.view is View.SMOOTH else "")


def time_strategies(
    question: QuestionShape, trust: TrustedParty, devices: int, epsilon: Fraction
) -> tuple[TimeStrategy, ...]:
    """Return the strategies, the best of each number of changes; none for other questions."""
    periods = question.number_of_periods
    one_state = question.values == YES_OR_NO and question.arms == 1 and trust is TrustedParty.LOCAL
    one_state &= question.design_effect == 1  # a trend has no segments
    if not one_state or periods == 1 or question.unit in {Unit.EVENT, Unit.USER}:
        return ()
    alone = sqrt(periods * (question.quantity.variance(epsilon) + SAMPLING) / devices)
    reach = two_sided(question.level)
    raw = TimeStrategy(ONE_ANSWER, None, reach * alone)
    trends = (_trend(epsilon, periods, changes, reach / sqrt(devices)) for changes in CHANGES)
    if periods < FEWEST:
        return (raw, *trends)
    half = reach * smoothed_error(periods, alone)
    return (raw, TimeStrategy(ONE_ANSWER, None, half, View.SMOOTH), *trends)


def _trend(epsilon: Fraction, periods: int, changes: int, reach: float) -> TimeStrategy:
    mechanism = TrendMechanism.for_epsilon(epsilon, periods, changes)
    half = reach * sqrt(handler_of(mechanism).noise_variance())
    return TimeStrategy(f'measure = "trend", changes = {changes}', changes, half)


def smoothed_error(periods: int, error: float) -> float:
    """Return the error of smoothed shares, whose raw ones have this error."""
    shares = np.repeat(courses(periods), CAMPAIGNS, axis=0)
    raw = np.random.default_rng(periods).normal(shares, error)
    smooth, _ = Smoother.fit(raw, np.full(raw.shape, error)).smooth(raw)
    return float(np.sqrt(np.mean((smooth - shares) ** 2)))


def courses(periods: int) -> Floats:
    """Return a share over time in each row: rising slowly, from a launch on, and early."""
    time = np.arange(1, periods + 1)
    slow = time / (1.5 * periods)
    launch = (1 - 0.7 ** np.maximum(time - periods // 2, 0)) / 2
    early = 0.6 * np.minimum(time / max(2, periods // 10), 1)
    return np.stack([slow, launch, early])
