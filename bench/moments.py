"""Moments of several numbers: the error of one, and a regression on real people."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from veilcount_analysis.estimation.confidence_intervals import Floats
from veilcount_analysis.estimation.moments import MomentMeans
from veilcount_analysis.estimation.moments import regression as regressed
from veilcount_analysis.kinds.features import Units, scaled
from veilcount_analysis.mechanisms.handler import handler_of
from veilcount_analysis.mechanisms.moments import MomentsHandler
from veilcount_shared.domain import GRID, Features, Number
from veilcount_shared.mechanisms import Moments

from .separate import ROOT
from .table import Row, Table, target

MILLION = 1_000_000
#: features, and the standard deviation of one moment that is to be met at epsilon 1
TARGETS = ((3, 0.0065), (10, 0.017))
ADULT = ROOT / "tests" / "data" / "adult_hours.csv.gz"
RANGES = {"age": (17, 90), "education": (1, 16), "hours": (1, 99)}
#: epsilon, and how often each person of Adult stands in the population
SETTINGS = ((8, 1), (4, 1), (1, 20), (1, 200))
HOURS, LEVEL = 2, 0.95

NOTES = (
    "One sampled report a person. sd of a moment: the largest, of numbers from -1 to 1. Adult: the",
    "  hours of a week by age and years of education; 48,842 persons, or each of them many times.",
)


def run(*, quick: bool) -> Table:
    """Measure the error of a moment, and the regression in each setting."""
    settings = SETTINGS[:2] if quick else SETTINGS
    rows = [_error(features, most) for features, most in TARGETS]
    adult = [row for epsilon, times in settings for row in _regression(epsilon, times)]
    return Table("moments: correlations and regression", [*rows, *adult], NOTES)


def handler(epsilon: int, features: int) -> MomentsHandler:
    """Return the handler of so many features."""
    found = handler_of(Moments.for_epsilon(Fraction(epsilon), features))
    if not isinstance(found, MomentsHandler):
        raise TypeError("moments have a handler of their own")
    return found


def estimated(epsilon: int, numbers: Floats) -> MomentMeans:
    """Return the moments from one sampled report of each person's numbers from -1 to 1."""
    of, generator = handler(epsilon, numbers.shape[1]), np.random.default_rng(1)
    points = np.rint((numbers + 1) / 2 * GRID).astype(np.int64)
    messages = of.draw_messages(of.draw_moments(points, generator), generator)
    return of.means(np.bincount(messages, minlength=of.mechanism.messages))


def _error(features: int, most: float) -> Row:
    numbers = np.random.default_rng(2).uniform(-1, 1, (MILLION, features))
    worst = float(np.sqrt(estimated(1, numbers).variances.max()))
    row: Row = {"what": f"{features} features", "n": MILLION, "eps": "1", "sd of a moment": worst}
    return {**row, **target(worst, most)}


def adult() -> Floats:
    """Return age, years of education and hours of each person."""
    with gzip.open(ADULT, "rt", encoding="ascii") as file:
        rows = np.array([list(map(int, row)) for row in list(csv.reader(file))[1:]])
    return np.repeat(rows[:, :3], rows[:, 3], axis=0).astype(np.float64)


def _regression(epsilon: int, times: int) -> Iterator[Row]:
    people = np.repeat(adult(), times, axis=0)
    ends = {name: Number(Fraction(low), Fraction(high)) for name, (low, high) in RANGES.items()}
    units = Units.from_features(Features(tuple(sorted(ends.items()))))
    found = estimated(epsilon, (people - units.middles) / units.halves)
    slopes = scaled(found.coefficients(HOURS, LEVEL), units.halves[HOURS] / units.halves[:HOURS])
    origin = found.figures(units.of(regressed(HOURS)), LEVEL)
    design = np.column_stack([people[:, :HOURS], np.ones(len(people))])
    exact = np.linalg.lstsq(design, people[:, HOURS], rcond=None)[0]
    stated = np.isfinite(slopes.low).all()
    low, high, points = (
        np.append(one, two[HOURS:])
        for one, two in (
            (slopes.low, origin.low),
            (slopes.high, origin.high),
            (slopes.points, origin.points),
        )
    )
    for place, name in enumerate(("age", "education", "intercept")):
        row: Row = {"what": f"hours, by {name}", "n": len(people), "eps": str(epsilon)}
        interval = f"{low[place]:.3f} to {high[place]:.3f}"
        shown = {"local": f"{points[place]:.3f}", "interval": interval}
        local = shown if stated else {"local": "not stated"}
        yield {**row, **local, "exact": float(exact[place])}
