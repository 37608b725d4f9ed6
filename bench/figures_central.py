"""Central figures where n is secret: mean, variance, median, and strings that few have."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import date
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from veilcount_analysis.releases import NoiseKind, draw_release, part_noise, price_query
from veilcount_analysis.releases.noise import simulated_source
from veilcount_shared import Collection
from veilcount_shared.collection import Adjacency, Model, Noise
from veilcount_shared.domain import Number, OpenStrings
from veilcount_shared.periods import Unit

from .measured_figures import Measured, intervals

CELLS = ((50, "0.5"), (300, "0.2"), (5000, "1"))
TRUTHS: dict[str, Callable[[NDArray[np.int64]], float]] = {
    "mean": lambda ages: float(ages.mean()),
    "variance": lambda ages: float(ages.var()),
    "median": lambda ages: float(np.sort(ages)[(len(ages) - 1) // 2]),
}
AGES = Collection(
    app="bench",
    name="age",
    question="How old?",
    domain=Number(Fraction(0), Fraction(99)),
    unit=Unit.USER,
    start=date(2026, 1, 1),
    until=date(2027, 1, 1),
    model=Model.CENTRAL,
    budget=Fraction(4),
    adjacency=Adjacency.ADD_REMOVE,
)
#: what a release costs, and how many people have a string: from which on it was found half of the
#: time, by two hashed halves, by one hash, and in epsilon and delta
STRINGS: tuple[tuple[str, str, tuple[int, ...]], ...] = (
    ("rho", "0.02", (15, 27, 61)),
    ("epsilon", "1", (15, 27, 61)),
    *(("epsilon", "0.1", (110,)), ("epsilon", "0.5", (26,)), ("epsilon", "2", (8,))),
)


def words(cost: str, amount: str) -> Collection:
    """Return open strings with a budget of (1, 1e-6) in rho, or of this epsilon and 1e-6."""
    return replace(
        AGES,
        name="word",
        domain=OpenStrings("bench"),
        budget=Fraction(1 if cost == "rho" else amount),
        delta=Fraction(1, 10**6),
        noise=None if cost == "rho" else Noise.LAPLACE,
    )


def central_releases(rounds: int) -> Iterator[Measured]:
    """Release ages from 0 to 99 under Laplace noise, seeded."""
    for query, truth in TRUTHS.items():
        for n, epsilon in CELLS:
            generator = np.random.default_rng(n)
            ages = np.clip(np.rint(generator.gamma(4, 10, n)), 0, 99).astype(np.int64)
            counters = np.bincount(ages, minlength=100)
            noise = simulated_source(NoiseKind.LAPLACE, generator)
            priced = price_query({"query": query, "epsilon": epsilon}, AGES)
            found = [draw_release(priced, counters, noise=noise) for _ in range(rounds)]
            points, low, high = (
                np.array([getattr(each, name)[0] for each in found])
                for name in ("values", "low", "high")
            )
            yield intervals(f"central {query}, n secret", n, points, (low, high), truth(ages))


def central_strings(rounds: int) -> Iterator[Measured]:
    """Release strings that so many people have each, seeded, and count those that are found."""
    for cost, amount, sizes in STRINGS:
        priced = price_query({"query": "strings", cost: amount}, words(cost, amount))
        for n in sizes:
            kind = part_noise(priced)[0].distribution
            noise = simulated_source(kind, np.random.default_rng(n))
            counters = np.array([range(rounds), [n] * rounds])
            found = len(draw_release(priced, counters, noise=noise).labels) / rounds
            yield Measured(f"central string, {cost} {amount}", n, found=found)
