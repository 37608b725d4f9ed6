"""The shape of a planned question: its domain, its periods, and the confidence level."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from fractions import Fraction

from veilcount_shared.collection import Measure
from veilcount_shared.collection.validation import MAX_SLOTS
from veilcount_shared.domain import Number
from veilcount_shared.epsilon import EPSILON_GRAIN
from veilcount_shared.mechanisms.selection import MAX_INPUTS
from veilcount_shared.periods import Unit

from ...errors import QueryError
from ..trust_models import Quantity

USUAL = {Unit.EVENT: 30, Unit.DAY: 30, Unit.WEEK: 12, Unit.MONTH: 12, Unit.USER: 1}
MOST_ARMS = 2
YES_OR_NO = 2


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
        self._check_enums()
        self._check_domain()
        self._check_numbers()

    def _check_enums(self) -> None:
        """Refuse a plain string, which would never be equal to a member."""
        for key, word, kind in (("unit", self.unit, Unit), ("measure", self.measure, Measure)):
            if not isinstance(word, kind):
                raise QueryError(key, word, "give one of " + ", ".join(map(str, kind)))

    def _check_domain(self) -> None:
        if (self.values is None) == (self.range is None):
            raise QueryError("values", self.values, "give either values or a range")
        if self.values is not None and not YES_OR_NO <= self.values <= MAX_INPUTS:
            raise QueryError("values", self.values, f"give {YES_OR_NO} to {MAX_INPUTS:,}")
        if self.range is not None and not self.range[0] < self.range[1]:
            raise QueryError("range", self.range, "give low below high")
        if self.range is not None and any(EPSILON_GRAIN % end.denominator for end in self.range):
            raise QueryError("range", self.range, "give at most six decimals")

    def _check_numbers(self) -> None:
        if not 1 <= self.arms <= MOST_ARMS:
            raise QueryError("arms", self.arms, f"give 1 or {MOST_ARMS}")
        most = 1 if self.unit is Unit.USER else MAX_SLOTS
        if not 1 <= self.number_of_periods <= most:
            raise QueryError(
                "periods", self.number_of_periods, f"give 1 to {most:,} for a {self.unit}"
            )
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
    def quantity(self) -> Quantity:
        """What is estimated."""
        if self.range is not None:
            return Quantity.of_range(Number(*self.range), self.measure)
        return Quantity.of_values(self.values or YES_OR_NO)
