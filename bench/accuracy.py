"""The error of estimates: ours against their targets, and against other libraries.

The targets are for 100,000 answers. The competitors take minutes for that many, so all
libraries are compared on the same smaller populations, from one distribution: the i-th value has a
probability proportional to i^-1.3.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from veilcount_analysis import estimate
from veilcount_analysis.estimation import ShareEstimates
from veilcount_analysis.estimation.response_distribution import ResponseDistribution
from veilcount_analysis.simulation import simulate
from veilcount_shared.mechanisms import MeanMechanism, select_mechanism

from .competitors import Competitors, CompetitorsMissingError
from .definitions import choice
from .table import Cell, Row, Table, target

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
View = Literal["raw", "consistent"]

N = 100_000
ADULT, AGES = 48_842, 73  # persons, and the years from the youngest to the oldest
RAW = (
    *((2, 1, 0.31), (10, 1, 0.54), (256, 1, 0.61), (65_536, 1, 0.61)),
    *((2, 2, 0.135), (10, 2, 0.195), (256, 2, 0.27), (65_536, 2, 0.27), (256, 4, 0.083)),
)
CONSISTENT = ((64, 1, 1.9e-5), (1024, 1, 2.5e-6), (1024, 4, 2.0e-7), (65_536, 1, 5.0e-8))
MEANS = ((1, 4.05), (2, 0.88), (4, 0.135))
AGE = 0.335
ROUNDS = 40
COMPARED = ((10, 1), (64, 1), (64, 4), (256, 1), (256, 4))
#: the libraries' own names for what they do, and which of our views does the same
NAMES: dict[str, tuple[str, View]] = {
    "pure_oue": ("pure-ldp OUE", "raw"),
    "pure_olh": ("pure-ldp OLH", "raw"),
    "pure_hr": ("pure-ldp HR", "raw"),
    "multi_ss": ("multi-freq-ldpy SS", "consistent"),
    "multi_oue": ("multi-freq-ldpy OUE", "consistent"),
    "multi_olh": ("multi-freq-ldpy OLH", "consistent"),
}

NOTES = (
    "rare share, rmse %: of a value that hardly anybody holds, by the exact variance.",
    "raw and consistent mse: mean squared error of all shares; x ours is the ratio of two of them.",
    "multi-freq-ldpy only gives consistent shares (negative ones cut, the rest scaled to 1).",
)


@dataclass(frozen=True)
class Effort:
    """How many populations the competitors estimate, and of which size."""

    populations: int
    size: int


@dataclass(frozen=True)
class Case:
    """What is asked of how many."""

    k: int | None
    epsilon: int
    n: int

    @property
    def row(self) -> dict[str, Cell]:
        """What of it stands in a row."""
        return {"k": self.k, "eps": self.epsilon, "n": self.n}


def run(*, quick: bool) -> Table:
    """Measure ours, and the others if they can be installed."""
    effort = Effort(2, 2_000) if quick else Effort(5, 10_000)
    rows = [*_raw(), *_consistent(), *_means()]
    notes: tuple[str, ...] = NOTES
    try:
        with Competitors() as competitors:
            rows += [
                row for case in COMPARED for row in _compare_libraries(*case, effort, competitors)
            ]
    except CompetitorsMissingError as error:
        notes = (*NOTES, f"{error}: ours stand alone.")
    missing = {str(row["whose"]) for row in rows if row["value"] is None}
    notes = (*notes, *(f"{name} could not be installed." for name in sorted(missing)))
    return Table("accuracy: how far estimates are from the truth", rows, notes)


# -- ours against the targets ----------------------------------------------------------------------


def _raw() -> Iterator[Row]:
    for k, epsilon, most in RAW:
        variance = ResponseDistribution.from_mechanism(
            select_mechanism(k, epsilon).mechanism
        ).variance(np.zeros(1), sampled=False)[0]
        yield _row("rare share, rmse %", Case(k, epsilon, N), 100 * sqrt(variance / N), most)


def _consistent() -> Iterator[Row]:
    for k, epsilon, most in CONSISTENT:
        populations = (_population(k, N, seed) for seed in range(ROUNDS))
        errors = [
            _error(population, _ours(epsilon, population, seed, "consistent"))
            for seed, population in enumerate(populations)
        ]
        yield _row("consistent mse", Case(k, epsilon, N), float(np.mean(errors)), most)


def _means() -> Iterator[Row]:
    for epsilon, most in MEANS:
        worst = float(MeanMechanism.for_epsilon(Fraction(epsilon)).variance)
        yield _row("mean of [-1, 1], n x variance, worst", Case(None, epsilon, N), worst, most)
    worst = sqrt(float(MeanMechanism.for_epsilon(Fraction(1)).variance) * (AGES / 2) ** 2 / ADULT)
    yield _row("mean age of Adult, rmse years, worst", Case(None, 1, ADULT), worst, AGE)


def _row(what: str, case: Case, value: float, most: float) -> Row:
    return {"what": what, **case.row, "whose": "ours", "value": value, **target(value, most)}


# -- ours against others ---------------------------------------------------------------------------


def _compare_libraries(
    k: int, epsilon: int, effort: Effort, competitors: Competitors
) -> Iterator[Row]:
    """Estimate the same populations with all of them."""
    case = Case(k, epsilon, effort.size)
    populations = [_population(k, effort.size, seed) for seed in range(effort.populations)]
    ours: dict[View, float] = {}
    for view in ("raw", "consistent"):
        found = [_ours(epsilon, each, seed, view) for seed, each in enumerate(populations)]
        ours[view] = float(np.mean([*map(_error, populations, found)]))
        yield _shown(view, case, "ours", ours[view], None)
    for competitor, (name, view) in NAMES.items():
        estimates = [
            _theirs(competitors, competitor, epsilon, each, seed)
            for seed, each in enumerate(populations)
        ]
        errors = [
            _error(each, shares)
            for each, shares in zip(populations, estimates, strict=True)
            if shares is not None
        ]
        value = float(np.mean(errors)) if errors else None
        yield _shown(view, case, name, value, ours[view])


def _shown(view: View, case: Case, whose: str, value: float | None, ours: float | None) -> Row:
    times = value / ours if value is not None and ours is not None else None
    return {"what": f"{view} mse", **case.row, "whose": whose, "value": value, "x ours": times}


def _theirs(
    competitors: Competitors, competitor: str, epsilon: int, population: Ints, seed: int
) -> Floats | None:
    """Return a competitor's estimates of a population; None if it is not installed."""
    people = {"k": len(population), "people": population.tolist()}
    answer = competitors.ask("shares", competitor=competitor, epsilon=epsilon, seed=seed, **people)
    return np.array(answer["shares"]) if "shares" in answer else None


def _ours(epsilon: int, population: Ints, seed: int, view: View) -> Floats:
    collection = choice(len(population), epsilon)
    counters = simulate(collection, population, np.random.default_rng([seed, len(population)]))
    shown = estimate(collection, counters, view=view)
    assert isinstance(shown, ShareEstimates)
    return shown.frequency


def _population(k: int, n: int, seed: int) -> Ints:
    probabilities = np.arange(1, k + 1, dtype=np.float64) ** -1.3
    return np.random.default_rng(seed).multinomial(n, probabilities / probabilities.sum())


def _error(population: Ints, shares: Floats) -> float:
    return float(((shares - population / population.sum()) ** 2).mean())
