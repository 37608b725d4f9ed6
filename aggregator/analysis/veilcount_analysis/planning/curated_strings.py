"""The solver of open strings that a curator releases: who must have one for it to be shown.

That number depends on the price of a release alone, not on how many people answer. The release that
is planned is one of the definition to copy: by default it pays a whole period, in epsilon and delta
with truncated Laplace noise; with `rho`, so much of a budget that other releases share.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

from veilcount_shared import Collection
from veilcount_shared.collection import Adjacency, Model, Noise
from veilcount_shared.domain import OpenStrings
from veilcount_shared.errors import DefinitionError
from veilcount_shared.models.central import LEAST_DELTA_BUDGET

from ..errors import QueryError
from ..privacy.trust_models import ErrorEstimate
from ..releases.priced_query import first_period_query
from ..releases.query_types.strings_query import StringsQuery
from ..releases.string_threshold import StringThreshold
from .solvers import QuestionShape, Solution, Solver

PLANNED = {"budget": "epsilon"}  # what a plan calls the keys of a definition


class CuratedStrings(Solver):
    """A curator releases the hashes that enough people have."""

    def error(self, devices: int, epsilon: Fraction) -> Solution:
        """Return the share of the people who reach the threshold, and the noise of a count."""
        threshold = string_threshold(self.question, epsilon)
        error = ErrorEstimate(threshold.deviation, threshold.half_width).times(1 / devices)
        share = threshold.threshold / devices
        return Solution(devices, epsilon, None, error, share, threshold=threshold)

    def epsilon(self, devices: int, error: float) -> Solution:
        """Return the epsilon at which so many reach it, where a release pays a whole period."""
        if (rho := self.question.rho) is not None:
            raise QueryError("rho", rho, "it is a part of a budget: give the budget's epsilon")
        return super().epsilon(devices, error)


def string_threshold(question: QuestionShape, epsilon: Fraction) -> StringThreshold:
    """Return the threshold of the release that is planned."""
    noise = Noise.LAPLACE if question.rho is None else None
    return _threshold(question, epsilon, noise, question.rho)


def string_thresholds(question: QuestionShape, choice: Solution) -> tuple[StringThreshold, ...]:
    """Return the threshold that is planned, and those of a whole budget; none of other questions.

    A budget in rho is what other queries of the same definition need.
    """
    if choice.threshold is None:
        return ()
    noises = (Noise.LAPLACE, None) if choice.epsilon >= LEAST_DELTA_BUDGET else (Noise.LAPLACE,)
    whole = (_threshold(question, choice.epsilon, noise) for noise in noises)
    return tuple(dict.fromkeys((choice.threshold, *whole)))


@lru_cache(maxsize=1 << 12)
def _threshold(
    question: QuestionShape, epsilon: Fraction, noise: Noise | None, rho: Fraction | None = None
) -> StringThreshold:
    collection = _definition(question, epsilon, noise)
    priced = first_period_query(collection, StringsQuery.kind, rho)
    return StringThreshold.from_query(priced, question.level)


def _definition(question: QuestionShape, epsilon: Fraction, noise: Noise | None) -> Collection:
    """Return the definition to copy, but for its texts, or refuse what no definition may have."""
    try:
        return Collection(
            app="my-app",
            name="planned",
            question="What would you like to know?",
            domain=OpenStrings("planned"),
            unit=question.unit,
            start=question.start,
            until=question.until,
            model=Model.CENTRAL,
            budget=epsilon,
            adjacency=Adjacency.SUBSTITUTE,
            delta=question.delta,
            noise=noise,
        )
    except DefinitionError as refused:
        field = PLANNED.get(refused.key, refused.key)
        raise QueryError(field, refused.value, refused.fix) from refused
