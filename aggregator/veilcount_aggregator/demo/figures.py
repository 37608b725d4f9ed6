"""Truth beside local beside central: what is shown at the end.

The local figures are what the aggregator answers to anybody who asks. The central ones beside them
are a picture: what a curator's noise would make of the same true answers at the same epsilon. One
question was truly asked of a curator too, and its release is a real one, paid for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.random import Generator

from veilcount_shared import Collection
from veilcount_shared.collection import Measure

from ..analysis.simulation import Population, Simulation, compare_local_and_central
from ..central import Release
from ..queries import EstimateQuery, estimate
from ..queries.domain_values import value_at
from ..queries.estimate_schema import TimeRangeEstimate
from ..text.result_columns import spelled
from .campaign import (
    DARK_MAP,
    FIRST_TAP,
    SCREEN,
    SCREENS,
    TRAIL,
    WALK_MINUTES,
    WAY_THERE,
    WAY_THERE_TOLD,
)
from .period_reports import TrueAnswers
from .run import DemoResult
from .simulated_devices import inputs

MOST = 4  # values of a long list that are shown: those that are truly the most common
MEAN = "mean"


@dataclass(frozen=True, slots=True)
class EstimatedFigure:
    """A share or a mean, and its interval."""

    value: float
    low: float
    high: float

    def holds(self, truth: float) -> bool:
        """Whether the interval covers it."""
        return self.low <= truth <= self.high


@dataclass(frozen=True, slots=True)
class TrustModelFigures:
    """One figure three times: as it is, as local reports say it, as a curator would."""

    collection: str
    segment: str
    value: str
    n: int
    truth: float
    local: EstimatedFigure
    central: EstimatedFigure


@dataclass(frozen=True, slots=True)
class CuratorFigure:
    """One figure of the curator's release, and the truth that the curator was told."""

    value: str
    truth: float
    figure: EstimatedFigure


def rows(ending: DemoResult, level: float, generator: Generator) -> Iterator[TrustModelFigures]:
    """Yield what is shown of each question."""
    desk = _Desk(ending, level, generator)
    yield from desk.shares(DARK_MAP, [1])
    for cell, screen in enumerate(SCREENS):
        yield from desk.shares(FIRST_TAP, [0, 2], cell, screen)
    trails = np.bincount(ending.truth(TRAIL).values)
    yield from desk.shares(TRAIL, np.argsort(-trails, kind="stable")[:MOST].tolist())
    yield desk.mean(WALK_MINUTES)
    yield from desk.shares(WAY_THERE, range(ending.series(WAY_THERE).collection.inputs))


def released(ending: DemoResult) -> list[CuratorFigure]:
    """Return the curator's figures as shares, each beside the truth of the same month."""
    release = ending.released.release
    told = ending.truth(WAY_THERE_TOLD)
    months = told.where(
        (told.periods >= release.first_period) & (told.periods <= release.last_period)
    )
    counts = np.bincount(months.values, minlength=len(release.labels))
    columns = zip(release.labels, counts.tolist(), _shares(release, len(months)), strict=True)
    return [
        CuratorFigure(spelled(label) or "", count / len(months), figure)
        for label, count, figure in columns
    ]


def _shares(release: Release, n: int) -> Iterator[EstimatedFigure]:
    for figure in zip(release.values, release.low, release.high, strict=True):
        yield EstimatedFigure(*(each / n for each in figure))


@dataclass(frozen=True, slots=True)
class _Desk:
    """What answers, at one level."""

    ending: DemoResult
    level: float
    generator: Generator

    def shares(
        self, name: str, places: Iterable[int], cell: int = 0, screen: str = ""
    ) -> Iterator[TrustModelFigures]:
        """Yield the shares of some values, among those who see one screen where that is told."""
        collection, truth = self._collection(name), self.ending.truth(name)
        answers = truth.where(truth.segments == cell)
        words = [spelled(value_at(collection, place)) or "" for place in places]
        found = self._estimate(name, words, screen)
        picture = self._picture(collection, answers)
        for word, place, local in zip(words, places, found.values, strict=True):
            yield TrustModelFigures(
                collection=name,
                segment=screen,
                value=word,
                n=found.n,
                truth=float(picture.truth[place]),
                local=_figure(local.frequency, local.low, local.high),
                central=_of(picture, place),
            )

    def mean(self, name: str) -> TrustModelFigures:
        """Return the mean of a number."""
        collection, answers = self._collection(name), self.ending.truth(name)
        found = self._estimate(name)
        assert found.mean is not None  # noqa: S101 - a number has one
        picture = self._picture(replace(collection, measure=Measure.MEAN), answers)
        return TrustModelFigures(
            collection=name,
            segment="",
            value=MEAN,
            n=found.n,
            truth=float(answers.values.mean()),
            local=_figure(found.mean.mean, found.mean.low, found.mean.high),
            central=_of(picture, 0),
        )

    def _collection(self, name: str) -> Collection:
        return self.ending.series(name).collection

    def _estimate(
        self, name: str, words: Iterable[str] = (), screen: str = ""
    ) -> TimeRangeEstimate:
        asked = EstimateQuery(
            values=tuple(words),
            segments=((SCREEN, screen),) if screen else (),
            level=self.level,
            simultaneous=True,
        )
        return estimate(self.ending.snapshot, name, asked).series[0].time_ranges[0]

    def _picture(self, collection: Collection, answers: TrueAnswers) -> Simulation:
        held = Population(*np.unique(inputs(collection, answers.values), return_counts=True))
        return compare_local_and_central(collection, held, self.generator, self.level)


def _figure(value: float | None, low: float, high: float) -> EstimatedFigure:
    assert value is not None  # noqa: S101 - only of no answers at all nothing is known
    return EstimatedFigure(value, low, high)


def _of(picture: Simulation, place: int) -> EstimatedFigure:
    said = picture.central
    return EstimatedFigure(*(float(each[place]) for each in (said.value, said.low, said.high)))
