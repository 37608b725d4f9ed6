"""What is planned: the question, how often it is asked, and how sure the answer should be."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from fractions import Fraction

from veilcount_shared.collection import Measure
from veilcount_shared.collection.validation import MAX_SLOTS
from veilcount_shared.domain import Number
from veilcount_shared.epsilon import EPSILON_GRAIN
from veilcount_shared.errors import VeilcountError
from veilcount_shared.mechanisms.selection import MAX_INPUTS
from veilcount_shared.periods import Unit

from ..trust_models import Quantity

USUAL = {Unit.EVENT: 30, Unit.DAY: 30, Unit.WEEK: 12, Unit.MONTH: 12, Unit.USER: 1}
MOST_ARMS = 2
YES_OR_NO = 2


class PlanRefused(VeilcountError, ValueError):
    """A plan that cannot be: which entry, what stands there, what to write instead."""

    def __init__(self, key: str, value: object, fix: str) -> None:
        """Say what and the fix."""
        super().__init__(f"{key} = {value}: {fix}")
        self.key = key
        self.value = value
        self.fix = fix


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionShape:
    """So many values (2 are a yes or no), or a number between two bounds.

    With two arms the error is that of their difference, half of the devices in each. `error` is
    half the width of the interval at `level`, of the noise alone: of a share, or in the number's
    own units.
    """

    start: date
    values: int | None = None
    range: tuple[Fraction, Fraction] | None = None
    measure: Measure = Measure.MEAN
    unit: Unit = Unit.MONTH
    periods: int | None = None
    arms: int = 1
    level: float = 0.95
    delta: Fraction = Fraction(1, 10**6)
    fakes: Fraction = Fraction(1, 100)

    def __post_init__(self) -> None:
        """Refuse what nobody could ask."""
        self._check_words()
        self._check_domain()
        self._check_numbers()

    def _check_words(self) -> None:
        """A unit is Unit.MONTH: the string that looks like it would be compared in vain."""
        for key, word, kind in (("unit", self.unit, Unit), ("measure", self.measure, Measure)):
            if not isinstance(word, kind):
                raise PlanRefused(key, word, "give one of " + ", ".join(map(str, kind)))

    def _check_domain(self) -> None:
        if (self.values is None) == (self.range is None):
            raise PlanRefused("values", self.values, "give either values or a range")
        if self.values is not None and not YES_OR_NO <= self.values <= MAX_INPUTS:
            raise PlanRefused("values", self.values, f"give {YES_OR_NO} to {MAX_INPUTS:,}")
        if self.range is not None and not self.range[0] < self.range[1]:
            raise PlanRefused("range", self.range, "give low below high")
        if self.range is not None and any(EPSILON_GRAIN % end.denominator for end in self.range):
            raise PlanRefused("range", self.range, "give at most six decimals")

    def _check_numbers(self) -> None:
        if not 1 <= self.arms <= MOST_ARMS:
            raise PlanRefused("arms", self.arms, f"give 1 or {MOST_ARMS}")
        most = 1 if self.unit is Unit.USER else MAX_SLOTS
        if not 1 <= self.asked <= most:
            raise PlanRefused("periods", self.asked, f"give 1 to {most:,} for a {self.unit}")
        for key, share in (("level", self.level), ("delta", self.delta)):
            if not 0 < share < 1:
                raise PlanRefused(key, share, "give a number between 0 and 1")
        if not 0 <= self.fakes < 1:
            raise PlanRefused("fakes", self.fakes, "give a share from 0 up, below 1")

    @property
    def asked(self) -> int:
        """In how many periods it is asked."""
        return USUAL[self.unit] if self.periods is None else self.periods

    @property
    def quantity(self) -> Quantity:
        """What is asked for."""
        if self.range is not None:
            return Quantity.of_range(Number(*self.range), self.measure)
        assert self.values is not None, "__post_init__ has required it"  # noqa: S101 - told to the type checker
        return Quantity.of_values(self.values)
