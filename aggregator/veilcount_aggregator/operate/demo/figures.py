"""The truth with its local and central estimates, for the summary.

Local figures are the aggregator's own. Central ones are simulated: the same true answers under a
curator's noise at the same epsilon. The release of the one central collection is a real one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.random import Generator

from veilcount_analysis.kinds.labels import value_at
from veilcount_analysis.kinds.results import Figure
from veilcount_analysis.simulation import Population, Simulation, compare_local_and_central
from veilcount_analysis.text.result_columns import spelled
from veilcount_shared import Collection
from veilcount_shared.collection import Measure

from ...queries import EstimateQuery, estimate
from ...queries.estimate_schema import RangeResult
from .campaign import SCREEN, SCREENS, Question
from .population import TrueAnswers
from .run import DemoResult
from .simulated_devices import inputs

MOST = 4  # values of a long list: those that are truly the most common
MEAN = "mean"


@dataclass(frozen=True, slots=True)
class EstimatedFigure:
    """A share or a mean, and its interval."""

    value: float
    low: float
    high: float

    def covers(self, truth: float) -> bool:
        """Whether the interval covers it."""
        return self.low <= truth <= self.high


@dataclass(frozen=True, slots=True)
class TrustModelFigures:
    """One true figure, its local estimate and its simulated central one."""

    collection: str
    segment: str
    value: str
    n: int
    truth: float
    local: EstimatedFigure
    central: EstimatedFigure


@dataclass(frozen=True, slots=True)
class CuratorFigure:
    """One figure of the curator's release, and the true one."""

    value: str
    truth: float
    figure: EstimatedFigure


def rows(result: DemoResult, level: float, generator: Generator) -> Iterator[TrustModelFigures]:
    """Yield the figures of each local question."""
    comparison = _TruthComparison(result, level, generator)
    yield from comparison.shares(Question.DARK_MAP, [1])
    for cell, screen in enumerate(SCREENS):
        yield from comparison.shares(Question.FIRST_TAP, [0, 2], cell, screen)
    trails = np.bincount(result.truth(Question.TRAIL).values)
    yield from comparison.shares(Question.TRAIL, np.argsort(-trails, kind="stable")[:MOST].tolist())
    yield comparison.mean(Question.WALK_MINUTES)
    yield from comparison.shares(
        Question.WAY_THERE, range(result.series(Question.WAY_THERE).collection.inputs)
    )
    if len(result.truth(Question.SHARED_POSITION)):
        yield from comparison.shares(Question.SHARED_POSITION, [1])


def released(result: DemoResult) -> list[CuratorFigure]:
    """Return the released figures as shares, each with the truth of the same month."""
    release = result.released.release
    truth = result.truth(Question.WAY_THERE_CENTRAL)
    months = truth.where(
        (truth.periods >= release.first_period) & (truth.periods <= release.last_period)
    )
    n, counts = len(months), np.bincount(months.values, minlength=len(release.labels)).tolist()
    columns = zip(release.labels, counts, release.values, release.low, release.high, strict=True)
    return [
        CuratorFigure(
            spelled(label), count / n, EstimatedFigure(*(each / n for each in (value, low, high)))
        )
        for label, count, value, low, high in columns
    ]


@dataclass(frozen=True, slots=True)
class _TruthComparison:
    """Estimates and simulations at one level, next to the truth."""

    result: DemoResult
    level: float
    generator: Generator

    def shares(
        self, name: str, places: Iterable[int], cell: int = 0, screen: str = ""
    ) -> Iterator[TrustModelFigures]:
        """Yield the shares of some values, of one home screen if it is named."""
        collection, truth = self.result.series(name).collection, self.result.truth(name)
        answers = truth.where(truth.segments == cell)
        words = [spelled(value_at(collection, place)) for place in places]
        found = self._estimate(name, words, screen)
        simulation = self._simulate(collection, answers)
        for word, place, local in zip(words, places, found.figures, strict=True):
            yield TrustModelFigures(
                collection=name,
                segment=screen,
                value=word,
                n=found.n,
                truth=float(simulation.truth[place]),
                local=_figure(local),
                central=_central(simulation, place),
            )

    def mean(self, name: str) -> TrustModelFigures:
        """Return the mean of a number."""
        collection, answers = self.result.series(name).collection, self.result.truth(name)
        found = self._estimate(name)
        simulation = self._simulate(replace(collection, measure=Measure.MEAN), answers)
        return TrustModelFigures(
            collection=name,
            segment="",
            value=MEAN,
            n=found.n,
            truth=float(answers.values.mean()),
            local=_figure(next(row for row in found.figures if row.kind == MEAN)),
            central=_central(simulation, 0),
        )

    def _estimate(self, name: str, words: Iterable[str] = (), screen: str = "") -> RangeResult:
        query = EstimateQuery(
            values=tuple(words),
            segments=((SCREEN, screen),) if screen else (),
            level=self.level,
        )
        return estimate(self.result.snapshot, name, query).series[0].ranges[0]

    def _simulate(self, collection: Collection, answers: TrueAnswers) -> Simulation:
        population = Population(*np.unique(inputs(collection, answers.values), return_counts=True))
        return compare_local_and_central(collection, population, self.generator, self.level)


def _figure(row: Figure) -> EstimatedFigure:
    assert row.figure is not None  # noqa: S101 - every question has answers
    return EstimatedFigure(row.figure, *row.interval)


def _central(simulation: Simulation, place: int) -> EstimatedFigure:
    central = simulation.central
    columns = (central.value, central.low, central.high)
    return EstimatedFigure(*(float(each[place]) for each in columns))
