"""Several numbers of one person, in their units: means, spread, correlations, a regression.

Each is a figure with its interval and band.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from math import inf, isfinite
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator

from veilcount_shared import Collection
from veilcount_shared.domain import Features

from ..errors import QueryError
from ..estimation import poisoning_band
from ..estimation.confidence_intervals import Floats
from ..estimation.moment_poisoning import MomentFigures, deviations, slopes
from ..estimation.moments import (
    Figures,
    Function,
    MomentMeans,
    Numbers,
    correlations,
    covariances,
    means,
    regression,
)
from ..estimation.poisoning import PoisoningBand
from ..estimation.results import ESTIMANDS
from ..mechanisms.estimates import target_of
from ..mechanisms.moments import moments_handler
from ..privacy.trust_models import Quantity
from ..query_params import Parameters
from ..simulation.batch_models import BatchModel
from ..simulation.correlated_numbers import FeaturesSimulation, simulate_numbers, true_moments
from ..simulation.simulated_figures import SimulatedFigures
from .estimate_query import EstimateQuery
from .headline import Headline
from .kind import NUMBER_ROWS, SummedKind
from .numbers import ONE_LOOK, UNTESTED
from .panels import Form, Panel
from .results import SEPARATOR, Figure, RangeFigures
from .simulated_rows import DrawnRows, simulate_rows
from .source import SelectedValues, Tally
from .time_ranges import TimeRange
from .values import UNLISTED


@dataclass(frozen=True, slots=True, eq=False)
class Units:
    """What -1 to 1 is in the units of each feature."""

    middles: Floats
    halves: Floats

    @classmethod
    def from_features(cls, domain: Features) -> Units:
        """Return the middle and half the width of each range."""
        ends = np.array(
            [
                [float(number_range.low), float(number_range.high)]
                for _, number_range in domain.features
            ]
        )
        return cls(ends.mean(axis=1), np.ptp(ends, axis=1) / 2)

    def of(self, function: Function) -> Function:
        """Return a function of the numbers in their units."""

        def converted(numbers: Numbers) -> Floats:
            scale = np.outer(self.halves, self.halves)
            moved = Numbers(self.middles + self.halves * numbers.means, numbers.covariances * scale)
            return function(moved)

        return converted


@dataclass(frozen=True, slots=True)
class MomentTerms:
    """The level of the intervals, the share of fakes of the bands, and what is regressed."""

    level: float
    fakes: Fraction = Fraction(0)
    regress: str | None = None


def moment_figures(domain: Features, found: MomentMeans, terms: MomentTerms) -> Iterator[Figure]:
    """Yield the figures of moments; with `regress`, those of a regression of it on all others."""
    names, units, level = domain.names, Units.from_features(domain), terms.level

    def figures(function: Function) -> Figures:
        return found.figures(units.of(function), level)

    def band(function: Function, limit: float = inf) -> PoisoningBand:
        return poisoning_band(MomentFigures(found, units.of(function), -limit, limit), terms.fakes)

    alone, pairs = [(name,) for name in names], list(combinations(names, 2))
    yield from _figures("mean", alone, figures(means), band(means))
    spread = scaled(found.deviations(level), units.halves)
    yield from _figures("deviation", alone, spread, band(deviations))
    yield from _figures("covariance", pairs, figures(covariances), band(covariances))
    yield from _figures("correlation", pairs, found.correlations(level), band(correlations, 1.0))
    if terms.regress:
        target = names.index(terms.regress)
        of = [(terms.regress, name) for name in names if name != terms.regress]
        others = np.delete(units.halves, target)
        found_slopes = found.coefficients(target, level)
        moved = band(slopes(target))
        scaled_slopes = scaled(found_slopes, units.halves[target] / others)
        yield from _figures("coefficient", of, scaled_slopes, moved)
        intercept = figures(lambda numbers: regression(target)(numbers)[-1:])
        if not np.isfinite(found_slopes.low).all():
            intercept = scaled(intercept, np.array([np.nan]))
        last = PoisoningBand(moved.fakes, moved.low[-1:], moved.high[-1:])
        yield from _figures("intercept", [(terms.regress,)], intercept, last)


def scaled(found: Figures, units: Floats) -> Figures:
    """Return figures in other units."""
    return Figures(found.points * units, found.low * units, found.high * units)


def features_of(collection: Collection) -> Features:
    """Return the features of a collection, or refuse any other."""
    if not isinstance(collection.domain, Features):
        raise TypeError(f"{collection.name}: it has no features")
    return collection.domain


def _figures(
    kind: str, names: Sequence[tuple[str, ...]], found: Figures, band: PoisoningBand
) -> Iterator[Figure]:
    for place, of in enumerate(names):
        ends = (found.points, found.low, found.high, band.low, band.high)
        point, low, high, fake_low, fake_high = (float(end[place]) for end in ends)
        name = SEPARATOR.join(of)
        if not (isfinite(point) and isfinite(low) and isfinite(high)):
            yield Figure(kind, name, None)
        elif isfinite(fake_low) and isfinite(fake_high):
            yield Figure(kind, name, point, low, high, fake_low, fake_high)
        else:
            yield Figure(kind, name, point, low, high)


REMOVE = "features have no values to select: remove it"
MOMENTS = ("mean", "deviation", "covariance", "correlation", "coefficient", "intercept")


class FeatureMoments(SummedKind[Features]):
    """Figures of one or two of the numbers, in their units."""

    name = "features"
    panels = (
        Panel(("correlation",), "Correlations", of_shares=False),
        Panel(("coefficient",), "Linear regression", of_shares=False),
        Panel(MOMENTS, "All figures", Form.TABLE, of_shares=False),
    )
    followed = ""
    comparison = "several numbers are not compared: estimate both"
    rows = NUMBER_ROWS
    figure = "moments of numbers from -1 to 1"
    untested = UNTESTED
    simulation = FeaturesSimulation
    accepted_parameters: ClassVar[frozenset[str]] = frozenset({"regress"})
    refused_parameters: ClassVar[Mapping[str, str]] = {
        **UNLISTED,
        "top": REMOVE,
        "group": REMOVE,
        "values": REMOVE,
        "view=consistent": "features have the raw view alone: view=raw",
        "view=smooth": "several numbers have no smooth view: give view=raw",
        "page": "features have one page",
        "looks=every": ONE_LOOK,
    }

    @property
    def quantity(self) -> Quantity:
        return Quantity.of_features(len(self.domain.features))

    def check(self, query: EstimateQuery) -> None:
        super().check(query)
        self._check_regress(query.regress)

    def _check_regress(self, regress: str | None) -> None:
        names = self.domain.names
        if regress and regress not in names:
            raise QueryError("regress", regress, f"give one of {', '.join(names)}")

    def headline(
        self, figures: Sequence[Figure], facts: Mapping[str, Any], *, leads: bool
    ) -> Headline:
        """Return the strongest correlation."""
        rows = [row for row in figures if row.kind == "correlation" and row.figure is not None]
        if not rows:
            return Headline("No two numbers vary enough for a correlation")
        row = max(rows, key=lambda row: abs(row.figure or 0.0))
        figure, low, high = (f"{end or 0.0:.2f}" for end in (row.figure, row.low, row.high))
        pair = str(row.of).replace(SEPARATOR, " and ")
        return Headline(f"Correlation of {pair} {figure}, {low} to {high}")

    def figures(
        self, data: Tally, query: EstimateQuery, selection: SelectedValues, time_range: TimeRange
    ) -> RangeFigures:
        target = target_of(self.collection, "auto", time_range.contributions(self.collection))
        n = max(int(data.counters.sum()) - data.covers, 0)
        if not n:
            return RangeFigures(n, ESTIMANDS[target], ())
        moments = moments_handler(self.collection).means(data.counters, data.covers)
        figures: tuple[Figure, ...] = ()
        if moments.complete:  # there are reports of each moment
            terms = MomentTerms(query.level, query.fakes, query.regress)
            figures = tuple(moment_figures(self.domain, moments, terms))
        return RangeFigures(n, ESTIMANDS[target], figures)

    def simulate(self, options: Parameters, generator: Generator) -> SimulatedFigures:
        query, collection = FeaturesSimulation.parse(options), self.collection
        self._check_regress(query.regress)
        terms = MomentTerms(query.level, regress=query.regress)

        def estimate(model: BatchModel) -> Sequence[Figure]:
            reports = simulate_numbers(model.collection, query.n, query.correlation, generator)
            counters = model.among_covers(reports, generator)
            means = moments_handler(model.collection).means(counters, model.covers)
            if not means.complete:
                raise QueryError("n", query.n, "too few for a report of each moment")
            return tuple(moment_figures(self.domain, means, terms))

        truth = moment_figures(self.domain, true_moments(collection, query.correlation), terms)
        facts = {"correlation": query.correlation}
        drawn = DrawnRows(tuple(truth), estimate, facts, "moments", "correlation")
        return simulate_rows(collection, query, query.runs, drawn)
