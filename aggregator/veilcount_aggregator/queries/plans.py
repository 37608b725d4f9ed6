"""A plan's answer: any of devices, epsilon and error from the other two."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from fractions import Fraction

from veilcount_shared.collection import Measure
from veilcount_shared.errors import EpsilonError
from veilcount_shared.periods import Unit

from ..analysis.planning import PlanRefused, PlanResult, TrustModel
from ..analysis.planning import QuestionShape as Planning
from ..analysis.planning import plan as planned
from ..analysis.trust_models.search import MOST
from ..errors import QueryError
from . import query_params as of
from .query_params import Parameters

PARAMETERS = (
    "trust", "devices", "epsilon", "error", "values", "range", "measure", "unit", "periods",
    "arms", "level", "delta", "fakes", "start",
)  # fmt: skip
LEAST_DELTA = Fraction(1, 10**30)
LEAST_SCALE, MOST_SCALE = Fraction(1, 10**12), 10**12
YES_OR_NO = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanQuery:
    """What is planned, and two of the three numbers."""

    planning: Planning
    trust: TrustModel = TrustModel.LOCAL
    devices: int | None = None
    epsilon: Fraction | None = None
    error: float | None = None

    def __post_init__(self) -> None:
        """Refuse numbers that no plan needs."""
        if self.devices is not None and not 1 <= self.devices <= MOST:
            raise QueryError("devices", self.devices, f"give 1 to {MOST:,}")
        if self.planning.delta < LEAST_DELTA:
            raise QueryError("delta", self.planning.delta, "give at least 1e-30")

    @classmethod
    def read(cls, given: Parameters, today: date) -> PlanQuery:
        """Return the question that parameters ask; it begins today unless told."""
        of.refuse_unknown(given, PARAMETERS)
        error = of.exact(given, "error")
        if error is not None and not LEAST_SCALE <= error <= MOST_SCALE:
            raise QueryError("error", error, "give half the width of an interval, such as 0.01")
        try:
            return cls(
                planning=_planning(given, today),
                trust=of.member(given, "trust", TrustModel, TrustModel.LOCAL),
                devices=of.whole(given, "devices"),
                epsilon=of.exact(given, "epsilon"),
                error=None if error is None else float(error),
            )
        except PlanRefused as refused:
            raise QueryError(refused.key, refused.value, refused.fix) from refused


def _planning(given: Parameters, today: date) -> Planning:
    values, bounds = of.whole(given, "values"), of.word(given, "range")
    if values is None and bounds is None:
        values = YES_OR_NO
    arms, delta, fakes = of.whole(given, "arms"), of.exact(given, "delta"), of.exact(given, "fakes")
    return Planning(
        start=of.day(given, "start") or today,
        values=values,
        range=None if bounds is None else of.between("range", bounds),
        measure=of.member(given, "measure", Measure, Measure.MEAN),
        unit=of.member(given, "unit", Unit, Unit.MONTH),
        periods=of.whole(given, "periods"),
        arms=1 if arms is None else arms,
        level=of.level_of(given),
        delta=Fraction(1, 10**6) if delta is None else delta,
        fakes=Fraction(1, 100) if fakes is None else fakes,
    )


def plan(asked: PlanQuery) -> PlanResult:
    """Return the plan."""
    try:
        return planned(
            asked.planning,
            trust=asked.trust,
            devices=asked.devices,
            epsilon=asked.epsilon,
            error=asked.error,
        )
    except PlanRefused as refused:
        raise QueryError(refused.key, refused.value, refused.fix) from refused
    except EpsilonError as refused:
        raise QueryError("epsilon", refused.epsilon, refused.fix) from refused
