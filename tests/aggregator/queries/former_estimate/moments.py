"""The figures of several numbers, in their units: means, spread, correlations, regression."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from math import inf, isfinite

import numpy as np

from veilcount_aggregator.queries.estimate_schema import MomentRow
from veilcount_analysis.errors import QueryError
from veilcount_analysis.estimation import poisoning_band
from veilcount_analysis.estimation.confidence_intervals import Counts, Floats
from veilcount_analysis.estimation.moment_poisoning import MomentFigures, deviations, slopes
from veilcount_analysis.estimation.moments import (
    Figures,
    Function,
    MomentMeans,
    Numbers,
    correlations,
    covariances,
    means,
    regression,
)
from veilcount_analysis.estimation.poisoning import PoisoningBand
from veilcount_analysis.kinds.estimate_query import EstimateQuery
from veilcount_analysis.mechanisms.moments import moments_handler
from veilcount_shared import Collection
from veilcount_shared.domain import Features


def check_moments(collection: Collection, query: EstimateQuery) -> None:
    """Refuse what features cannot answer."""
    ways: dict[str, object] = {
        "top": query.top,
        "group": list(query.groups),
        "values": list(query.values),
    }
    for name, value in ways.items():
        if value:
            raise QueryError(name, value, "features have no values to select: remove it")
    names = features_of(collection).names
    if query.regress and query.regress not in names:
        raise QueryError("regress", query.regress, f"give one of {', '.join(names)}")


def features_of(collection: Collection) -> Features:
    """Return the features of a collection, or refuse any other."""
    if not isinstance(collection.domain, Features):
        raise TypeError(f"{collection.name}: it has no features")
    return collection.domain


@dataclass(frozen=True, slots=True, eq=False)
class Units:
    """What -1 to 1 is in the units of each feature."""

    middles: Floats
    halves: Floats

    @classmethod
    def from_features(cls, domain: Features) -> Units:
        """Return the middle and half the width of each range."""
        ends = np.array([[float(each.low), float(each.high)] for _, each in domain.features])
        return cls(ends.mean(axis=1), np.ptp(ends, axis=1) / 2)

    def of(self, function: Function) -> Function:
        """Return a function of the numbers in their units."""

        def converted(numbers: Numbers) -> Floats:
            scale = np.outer(self.halves, self.halves)
            moved = Numbers(self.middles + self.halves * numbers.means, numbers.covariances * scale)
            return function(moved)

        return converted


def moment_rows(collection: Collection, counters: Counts, query: EstimateQuery) -> list[MomentRow]:
    """Return the figures of one time range; without enough reports of each moment none."""
    found = moments_handler(collection).means(counters)
    if not found.complete:
        return []
    terms = MomentTerms(query.level, query.fakes, query.regress)
    return list(figure_rows(features_of(collection), found, terms))


@dataclass(frozen=True, slots=True)
class MomentTerms:
    """The level of the intervals, the share of fakes of the bands, and what is regressed."""

    level: float
    fakes: Fraction = Fraction(0)
    regress: str | None = None


def figure_rows(domain: Features, found: MomentMeans, terms: MomentTerms) -> Iterator[MomentRow]:
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


def _figures(
    kind: str, names: Sequence[tuple[str, ...]], found: Figures, band: PoisoningBand
) -> Iterator[MomentRow]:
    for place, of in enumerate(names):
        ends = (found.points, found.low, found.high, band.low, band.high)
        point, low, high, *fakes = (float(each[place]) for each in ends)
        if not (isfinite(point) and isfinite(low) and isfinite(high)):
            yield MomentRow(kind, list(of), None, None, None)
        elif all(map(isfinite, fakes)):
            yield MomentRow(kind, list(of), point, low, high, *fakes)
        else:
            yield MomentRow(kind, list(of), point, low, high)
