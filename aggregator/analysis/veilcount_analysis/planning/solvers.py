"""The planned question, and solvers: any of devices, epsilon and error from the other two, under
each trust model.

Epsilon is what the answer reveals to whoever sees it; `device` is what one report reveals to
whoever receives it. Solutions are found by searches over the mechanisms that would really be
selected: each result was checked.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta
from enum import StrEnum
from fractions import Fraction
from functools import partial
from math import sqrt

from veilcount_shared import periods
from veilcount_shared.collection import Measure
from veilcount_shared.domain import (
    FEWEST_MOST,
    MAX_FEATURES,
    MAX_LISTED,
    MAX_QUESTIONS,
    MAX_TABLE,
    MIN_FEATURES,
    MIN_QUESTIONS,
    Number,
)
from veilcount_shared.epsilon import EPSILON_GRAIN, EPSILON_MAX
from veilcount_shared.limits import MAX_SLOTS
from veilcount_shared.mechanisms import DrawnBit, SetSelection
from veilcount_shared.mechanisms.selection import MAX_INPUTS
from veilcount_shared.periods import Unit

from ..errors import QueryError
from ..estimation.find_budget import PRICES, chance_of_first
from ..estimation.open_strings import least_share
from ..kinds.registry import NUMBER_KINDS
from ..mechanisms import share_handler_of
from ..privacy.trust_models import ErrorEstimate, Quantity
from ..privacy.trust_models.quantity import two_sided
from ..releases.string_threshold import StringThreshold

USUAL = {Unit.EVENT: 30, Unit.DAY: 30, Unit.WEEK: 12, Unit.MONTH: 12, Unit.USER: 1}
YEAR = timedelta(days=365)
MOST_ARMS = 2
MOST_EFFECT = 100  # of weights
YES_OR_NO = 2
MAX_TESTED = int(PRICES[-1][0])  # candidates
#: what a question may be of; without any, it is a yes or no
KINDS = ("values", "range", "candidates", "features", "questions", "several")


REPORT_EPSILON = Fraction(4)  # the most that a definition has unless it is written out


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchTerms:
    """How the reports of a shuffled question are to travel; other questions have no use for it."""

    report_epsilon: Fraction = REPORT_EPSILON  # what shuffler and server learn together
    grace: int | None = None  # days; by default those of the unit
    public: bool = False  # presence; by default it is hidden, of values


def quantity_of_several(values: int, most: int | None) -> Quantity:
    """Return the share of one of several values, by the mechanism that a device uses."""
    if most is None:
        return Quantity.of_several(partial(DrawnBit.for_epsilon, k=values), values, values)
    sets = partial(SetSelection.for_epsilon, k=values, most=most)
    return Quantity.of_several(sets, values, most)


def check_questions(sizes: tuple[int, ...]) -> None:
    """Refuse questions with so many answers that no definition may have."""
    if not MIN_QUESTIONS <= len(sizes) <= MAX_QUESTIONS:
        fix = f"give the answers of {MIN_QUESTIONS} to {MAX_QUESTIONS} questions, such as 2,3,3"
        raise QueryError("questions", list(sizes), fix)
    first, second = sorted(sizes)[-2:]
    if min(sizes) < YES_OR_NO or first * second > MAX_TABLE:
        fix = f"give each {YES_OR_NO} answers or more, and any two at most {MAX_TABLE} cells"
        raise QueryError("questions", list(sizes), fix)


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionShape:
    """So many values (2 are a yes or no), a number between two bounds, open strings of which so
    many candidates are tested, the moments of so many numbers, tables of questions with so many
    answers each, or several values, of which a person ticks `most`, or without it any number.

    With two arms the error is that of their difference, half of the devices in each. Shares that
    are reweighted to margins have a design effect: so many times fewer devices would do without.
    `error` is half the width of the interval at `level`, of the noise alone: of a share, in the
    number's own units, of a moment of numbers from -1 to 1, or of a cell of two questions. Of open
    strings it is the smallest share found.
    """

    start: date
    values: int | None = None
    range: tuple[Fraction, Fraction] | None = None
    candidates: int | None = None
    features: int | None = None
    questions: tuple[int, ...] | None = None  # how many answers each has
    several: int | None = None
    most: int | None = None
    measure: Measure = Measure.MEAN
    unit: Unit = Unit.MONTH
    periods: int | None = None
    arms: int = 1
    level: float = 0.95
    delta: Fraction = Fraction(1, 10**6)
    fakes: Fraction = Fraction(1, 100)
    design_effect: float = 1.0
    batch: BatchTerms = BatchTerms()
    rho: Fraction | None = None  # of one release of open strings, of a budget in rho

    def __post_init__(self) -> None:
        self._check_enums()
        self._check_domain()
        self._check_numbers()

    def _check_enums(self) -> None:
        """Refuse a plain string, which would never be equal to a member."""
        for key, word, kind in (("unit", self.unit, Unit), ("measure", self.measure, Measure)):
            if not isinstance(word, kind):
                raise QueryError(key, word, "give one of " + ", ".join(map(str, kind)))

    def _check_domain(self) -> None:
        kinds = [getattr(self, kind) for kind in KINDS]
        if sum(kind is not None for kind in kinds) != 1:
            fix = "give one of values, a range, candidates, features, questions and several"
            raise QueryError("values", self.values, fix)
        if self.candidates is not None and not 1 <= self.candidates <= MAX_TESTED:
            raise QueryError("candidates", self.candidates, f"give 1 to {MAX_TESTED:,}")
        if self.features is not None and not MIN_FEATURES <= self.features <= MAX_FEATURES:
            fix = f"give {MIN_FEATURES} to {MAX_FEATURES}"
            raise QueryError("features", self.features, fix)
        if self.questions is not None:
            check_questions(self.questions)
        self._check_several()
        if self.values is not None and not YES_OR_NO <= self.values <= MAX_INPUTS:
            raise QueryError("values", self.values, f"give {YES_OR_NO} to {MAX_INPUTS:,}")
        if self.range is not None and not self.range[0] < self.range[1]:
            raise QueryError("range", self.range, "give low below high")
        if self.range is not None and any(EPSILON_GRAIN % end.denominator for end in self.range):
            raise QueryError("range", self.range, "give at most six decimals")

    def _check_several(self) -> None:
        if self.several is not None and not YES_OR_NO <= self.several <= MAX_LISTED:
            raise QueryError("several", self.several, f"give {YES_OR_NO} to {MAX_LISTED}")
        if self.most is None:
            return
        if self.several is None:
            raise QueryError("most", self.most, "of several values that are ticked: give several")
        if not FEWEST_MOST <= self.most < self.several:
            fix = f"give {FEWEST_MOST} or more, fewer than there are values; or leave it out"
            raise QueryError("most", self.most, fix)

    def _check_numbers(self) -> None:
        if not 1 <= self.arms <= MOST_ARMS:
            raise QueryError("arms", self.arms, f"give 1 or {MOST_ARMS}")
        if self.arms > 1 and (self.candidates or self.features or self.questions):
            raise QueryError(
                "arms", self.arms, "two arms are compared in values or a number: give 1"
            )
        most = 1 if self.unit is Unit.USER else MAX_SLOTS
        if not 1 <= self.number_of_periods <= most:
            raise QueryError(
                "periods", self.number_of_periods, f"give 1 to {most:,} for a {self.unit}"
            )
        if not 1 <= self.design_effect <= MOST_EFFECT:
            fix = f"give 1 to {MOST_EFFECT}: of an estimate, its weighting"
            raise QueryError("weights", self.design_effect, fix)
        if self.design_effect > 1 and self.values is None and self.several is None:
            fix = "shares of values are reweighted: give 1"
            raise QueryError("weights", self.design_effect, fix)
        for key, share in (("level", self.level), ("delta", self.delta)):
            if not 0 < share < 1:
                raise QueryError(key, share, "give a number between 0 and 1")
        if not 0 <= self.fakes < 1:
            raise QueryError("fakes", self.fakes, "give a share from 0 up, below 1")

    @property
    def number_of_periods(self) -> int:
        """The number of periods; by default what is usual for the unit."""
        return USUAL[self.unit] if self.periods is None else self.periods

    @property
    def until(self) -> date:
        """The first day after the periods; a campaign that is one period lasts a year."""
        if self.unit is Unit.USER:
            return self.start + YEAR
        return periods.first_day(self.unit, self.start, self.number_of_periods)

    @property
    def quantity(self) -> Quantity:
        """What is estimated."""
        if self.range is not None:
            return NUMBER_KINDS[self.measure].quantity_of(Number(*self.range))
        if self.candidates is not None:
            return Quantity.of_strings()
        if self.features is not None:
            return Quantity.of_features(self.features)
        if self.questions is not None:
            return Quantity.of_tables(self.questions)
        if self.several is not None:
            return quantity_of_several(self.several, self.most)
        return Quantity.of_values(self.values or YES_OR_NO)

    @property
    def accuracy(self) -> str:
        """The name of what is asked to be small."""
        return "error" if self.candidates is None else "share"

    def least_share(self, n: int, device: Fraction) -> float | None:
        """Return the share of an open string that is found half of the time; None: of no string."""
        if self.candidates is None:
            return None
        response = share_handler_of(self.quantity.family(device)).response
        return least_share(response, n, chance_of_first(self.candidates))


MOST = 10**12  # devices; there are not that many
NEAR = [1 - Fraction(1, 2**power) for power in range(1, 7)]

Allowed = Callable[[Fraction], bool]


def least_epsilon(allowed: Allowed, grain: int = EPSILON_GRAIN) -> Fraction | None:
    """Return an epsilon that will do, such that one grain less does not; None if none will.

    Error falls as epsilon grows, but for small steps where mechanisms change or reach their own
    floor. So smaller ones are tried, at a few distances below what was found.
    """
    if not allowed(EPSILON_MAX):
        return None
    step = _crossing(allowed, int(EPSILON_MAX * grain), grain)
    lower = [place for part in NEAR if (place := int(step * part)) > 0]
    while place := next((place for place in lower if allowed(Fraction(place, grain))), 0):
        step = _crossing(allowed, place, grain)
        lower = [place for part in NEAR if (place := int(step * part)) > 0]
    return Fraction(step, grain)


def _crossing(allowed: Allowed, high: int, grain: int) -> int:
    """Return one that is allowed, next to one that is not, by halving from one that is."""
    return bisect_left(range(high), True, lo=1, key=lambda step: allowed(Fraction(step, grain)))


def fewest_devices(enough: Callable[[int], bool]) -> int | None:
    """Return the least number of devices that is enough; None if none is."""
    high = 1
    while not enough(high):
        high *= 2
        if high > MOST:
            return None
    return bisect_left(range(high), True, lo=high // 2 + 1, key=enough)


class TrustedParty(StrEnum):
    """Who is trusted with what."""

    LOCAL = "local"  # nobody
    SHUFFLED = "shuffled"  # an independent shuffler, with who sent what and when
    CENTRAL = "central"  # a curator, with every true value


@dataclass(frozen=True, slots=True)
class Solution:
    """Three numbers that belong together, and the local epsilon behind them (None: no noise)."""

    devices: int
    epsilon: Fraction
    device: Fraction | None
    error: ErrorEstimate
    least_share: float | None = None  # of an open string that is found half of the time
    covers: int = 0  # cover reports of a batch
    threshold: StringThreshold | None = None  # of open strings that a curator releases

    @property
    def accuracy(self) -> float:
        """What is asked to be small: half of an interval, or the smallest share that is found."""
        return self.error.half_width if self.least_share is None else self.least_share


@dataclass(frozen=True, slots=True)
class Solver(ABC):
    """One trust model, for one question."""

    question: QuestionShape

    @property
    def quantity(self) -> Quantity:
        """What is estimated, as this model collects it."""
        return self.question.quantity

    @abstractmethod
    def error(self, devices: int, epsilon: Fraction) -> Solution:
        """Return the error of so many devices at this epsilon."""

    def epsilon(self, devices: int, error: float) -> Solution:
        """Return the epsilon at which so many devices reach the error."""
        least = least_epsilon(lambda tried: self.error(devices, tried).accuracy <= error)
        if least is None:
            raise unreachable(self.question, error)
        return self.error(devices, least)

    def devices(self, epsilon: Fraction, error: float) -> Solution:
        """Return how many devices reach the error at this epsilon."""
        arms = self.question.arms
        devices_needed = fewest_devices(lambda n: self.error(n * arms, epsilon).accuracy <= error)
        if devices_needed is None:
            raise unreachable(self.question, error)
        return self.error(devices_needed * arms, epsilon)

    def each(self, devices: int) -> int:
        """Return how many devices each arm has, in devices that weigh the same."""
        return max(1, int(devices / self.question.arms / self.question.design_effect))


def unreachable(question: QuestionShape, error: float) -> QueryError:
    """Return the refusal of an error that no epsilon or number of devices reaches."""
    fix = f"out of reach even at epsilon {EPSILON_MAX}: give more devices or a wider one"
    return QueryError(question.accuracy, error, fix)


class LocalSolver(Solver):
    """The device adds the noise. Arms are independent: variances add up."""

    def error(self, devices: int, epsilon: Fraction) -> Solution:
        return self.solution(devices, epsilon, epsilon)

    def solution(self, devices: int, epsilon: Fraction, device: Fraction) -> Solution:
        """Return the error of so many devices at this local epsilon."""
        question, n = self.question, self.each(devices)
        rmse = sqrt(question.quantity.variance(device) * question.arms / n)
        error = ErrorEstimate(rmse, two_sided(question.level) * rmse)
        return Solution(devices, epsilon, device, error, question.least_share(n, device))


class CentralSolver(Solver):
    """A curator adds the noise, to each arm's own answer: a person is in one arm only."""

    def error(self, devices: int, epsilon: Fraction) -> Solution:
        question, quantity = self.question, self.question.quantity
        noise = quantity.curator(epsilon)
        of_one = question.arms == 1
        width = (noise.half_width if of_one else noise.difference_half_width)(1 - question.level)
        error = ErrorEstimate(noise.deviation * sqrt(question.arms), width)
        scale = quantity.count / self.each(devices)
        return Solution(devices, epsilon, None, error.times(scale))
