"""Moments as figures of the numbers in their units, each with its interval and band."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from math import inf, isfinite

import numpy as np

from veilcount_shared import Collection
from veilcount_shared.domain import Features

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
from .results import SEPARATOR, Figure


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
