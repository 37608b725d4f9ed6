"""Central collections to ask, and small databases of their answers."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from veilcount_analysis.releases import NoiseKind, PricedQuery, price_query
from veilcount_analysis.releases.noise import noise_distribution
from veilcount_analysis.releases.opendp_noise import NoiseSource
from veilcount_analysis.releases.query import ParallelQuery
from veilcount_shared import Collection
from veilcount_shared.collection import Adjacency, Model, Noise
from veilcount_shared.domain import Boolean, Choice, Cross, Number, OpenStrings
from veilcount_shared.periods import Unit

ADD_REMOVE, SUBSTITUTE = Adjacency.ADD_REMOVE, Adjacency.SUBSTITUTE

Counters = NDArray[np.int64]


def collection(
    domain: Boolean | Choice | Cross | Number | OpenStrings,
    adjacency: Adjacency = ADD_REMOVE,
    *,
    unit: Unit = Unit.MONTH,
    budget: Fraction = Fraction(2),
    per_day: int = 1,
    answers: int | None = None,
    delta: Fraction | None = None,
    noise: Noise | None = None,
) -> Collection:
    return Collection(
        app="acme",
        name="age",
        question="Which?",
        domain=domain,
        unit=unit,
        start=date(2026, 1, 10),
        until=date(2026, 4, 1),
        per_day=per_day,
        answers=answers,
        model=Model.CENTRAL,
        budget=budget,
        delta=delta,
        noise=noise,
        adjacency=adjacency,
    )


def whole(low: int, high: int) -> Number:
    return Number(Fraction(low), Fraction(high))


def true_values(question: PricedQuery, counters: NDArray[np.int64]) -> list[list[int]]:
    """The true integers of each part, of a query whose parts do not depend on each other."""
    assert isinstance(question.query, ParallelQuery)
    return question.query.true_values(question.collection, counters)


def simulated(kind: NoiseKind, seed: int, wrong: float = 1.0) -> NoiseSource:
    """Return seeded noise, of a scale that is wrong by a factor."""
    generator = np.random.default_rng(seed)

    def noise(true: Sequence[int], scale: float) -> list[int]:
        drawn = noise_distribution(kind, scale * wrong).draw(len(true), generator)
        return [one + two for one, two in zip(true, drawn, strict=True)]

    return noise


def exactly(true: Sequence[int], scale: float) -> list[int]:
    """Add no noise."""
    return list(true)


def ask(
    which: Collection, query: object, epsilon: object = 1, *, month: int | None = None
) -> PricedQuery:
    days = {1: ("2026-01-10", "2026-01-31"), 2: ("2026-02-01", "2026-02-28")}
    dates = dict(zip(("from", "to"), days[month], strict=True)) if month else {}
    return price_query({"query": query, "epsilon": epsilon, **dates}, which)
