"""Accuracy under each unit of privacy, event to user, at the same user epsilon.

A person answers in every period of the campaign, once a period (events: `per_day` times a day), so
that all units spend the same user epsilon. The smaller the unit, the less each answer may say, and
the more answers there are. Where epsilon shared out falls below a millionth, there is no answer.
All epsilons are of substitution, local and central, so that they promise the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from veilcount_shared import Collection, periods
from veilcount_shared.collection import Adjacency
from veilcount_shared.composition import MAX_ANSWERS, guessing_probability
from veilcount_shared.epsilon import EPSILON_GRAIN, EPSILON_MAX
from veilcount_shared.guessing import two_values_epsilon
from veilcount_shared.periods import Unit

from ..trust_models import ErrorEstimate, Quantity

STOPS = {
    Unit.EVENT: (
        "inferring a value from one event",
        "averaging a day's events, or a habit's; counts and times are public",
    ),
    Unit.DAY: (
        "averaging the events of one day",
        "averaging a habit over days; a day's difference between two dates",
    ),
    Unit.WEEK: (
        "averaging the days of a week, and the rhythm of weekdays",
        "averaging a habit over weeks",
    ),
    Unit.MONTH: (
        "averaging the weeks of a month",
        "averaging over months, and seeing when something changed",
    ),
    Unit.USER: (
        "averaging altogether: one answer, frozen, however often it is sent",
        "what the one answer says; who takes part",
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitAccuracy:
    """One unit. Errors are of the cohort, by n persons: of one period, and of the whole campaign.

    The trusted curator releases each period at the same share of the user epsilon, or the campaign
    once at all of it.
    """

    unit: Unit
    answers: int
    periods: int
    epsilon: Fraction | None
    day: Fraction | None
    user: Fraction | None
    local_period: ErrorEstimate | None
    local_campaign: ErrorEstimate | None
    central_period: ErrorEstimate
    central_campaign: ErrorEstimate
    guess_one: Fraction | None
    guess_all: Fraction | None
    stops: str
    does_not_stop: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitComparison:
    """One collection under each unit."""

    collection: str
    n: int
    user: Fraction
    adjacency: Adjacency
    quantity: str
    level: float
    rows: tuple[UnitAccuracy, ...]


def levels(
    collection: Collection,
    quantity: Quantity,
    n: int,
    *,
    user: Fraction | None = None,
    level: float = 0.95,
) -> UnitComparison:
    """Return the table for a collection's campaign, by default at its own user epsilon."""
    user = two_values_epsilon(collection, collection.epsilon_user) if user is None else user
    setting = _Setting(collection, quantity, n, user, level)
    return UnitComparison(
        collection=collection.name,
        n=n,
        user=user,
        adjacency=Adjacency.SUBSTITUTE,
        quantity=setting.quantity.name,
        level=level,
        rows=tuple(_row(setting, unit) for unit in Unit),
    )


@dataclass(frozen=True, slots=True)
class _Setting:
    """What all rows share."""

    collection: Collection
    quantity: Quantity
    n: int
    user: Fraction
    level: float

    def local(self, epsilon: Fraction | None, contributions: int) -> ErrorEstimate | None:
        if epsilon is None:
            return None
        return self.quantity.local(epsilon, self.n * contributions, self.level)

    def central(self, epsilon: Fraction, contributions: int) -> ErrorEstimate:
        """Return a curator's error on the share among all answers, each person giving several.

        A person's answers together move the release by so many times as much: its noise is that of
        an epsilon divided among them, spread over as many times more answers.
        """
        return self.quantity.central(epsilon / contributions, self.n * contributions, self.level)


def _row(setting: _Setting, unit: Unit) -> UnitAccuracy:
    collection, user = setting.collection, setting.user
    count = periods.count_periods(unit, collection.start, collection.until)
    a_period = collection.per_day if unit is Unit.EVENT else 1
    answers = count * a_period
    epsilon = _shared_out(user, answers)
    stops, does_not_stop = STOPS[unit]
    return UnitAccuracy(
        unit=unit,
        answers=answers,
        periods=count,
        epsilon=epsilon,
        day=epsilon and epsilon * a_period,
        user=epsilon and epsilon * answers,
        local_period=setting.local(epsilon, a_period),
        local_campaign=setting.local(epsilon, answers),
        central_period=setting.central(user / count, a_period),
        central_campaign=setting.central(user, answers),
        guess_one=epsilon and guessing_probability(epsilon, 1),
        guess_all=epsilon and guessing_probability(epsilon, min(answers, MAX_ANSWERS)),
        stops=stops,
        does_not_stop=does_not_stop,
    )


def _shared_out(user: Fraction, answers: int) -> Fraction | None:
    """Return the largest epsilon in millionths that so many answers may each have."""
    millionths = int(user / answers * EPSILON_GRAIN)
    return min(Fraction(millionths, EPSILON_GRAIN), EPSILON_MAX) if millionths else None
