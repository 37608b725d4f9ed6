"""A number: its mean; with a finer measure its distribution, and the shares of ranges."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator

from veilcount_shared import SystemRandomSource
from veilcount_shared.domain import Number
from veilcount_shared.mechanisms import DistributionMechanism, MeanMechanism

from ..errors import QueryError
from ..estimation import MeanEstimate, NoReports, poisoning_band
from ..estimation.cdf import BucketHistogram
from ..estimation.confidence_intervals import Counts, Floats
from ..estimation.range_queries import RangeEstimator
from ..mechanisms import estimate_number
from ..mechanisms.estimates import estimate_mean
from ..privacy.trust_models import Quantity
from ..privacy.trust_models.quantity import QUARTERS
from ..query_params import Parameters, parse_number, parse_range
from ..simulation.local_vs_central import AnswersSimulation, compare_local_and_central
from ..simulation.population import Population
from ..simulation.simulated_figures import SimulatedFigures, SimulationQuery
from ..simulation.true_values import TrueValues
from .comparison import NUMBER, Comparison
from .estimate_query import EstimateQuery
from .headline import Headline, mean_text
from .kind import NUMBER_ROWS, SummedKind
from .panels import Form, Panel
from .results import Figure, RangeFigures
from .scope import Scope
from .source import SelectedValues, Source, Tally
from .time_ranges import TimeRange
from .two_groups import PARTS, equal_parts, two_groups
from .values import SHARES, UNLISTED

POINTS = 64  # evenly spread over the range, of a simulated distribution
QUANTILES = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95)
REMOVE = "this collection is of a number: remove it"
ONE_LOOK = (
    "the bands of a distribution or of ranges hold at one planned look: looks=one, or a collection"
    ' with measure = "mean"'
)
UNTESTED = (
    "Reports of numbers have no poisoning test: the band states how far fake reports could have"
    " moved them."
)
RANGES_ONLY = 'only a number with measure = "ranges" has shares: remove it'


def range_parts(figures: Sequence[Figure]) -> list[Figure]:
    """Return the shares of the parts of a range; none where shares of ranges are estimated."""
    return [] if any(figure.kind == "share" for figure in figures) else equal_parts(figures)


MEAN = Panel(("mean",), "The mean", of_shares=False)
BANDS = (
    Panel(("part",), "Shares of the parts of the range", band=True, pick=range_parts),
    Panel(("curve",), "Share of the answers below each number", Form.LINE, band=True),
    Panel(("quantile",), "Quantiles", Form.TABLE, of_shares=False, band=True),
)


class Mean(SummedKind[Number]):
    """The mean alone."""

    name = "mean"
    panels: ClassVar[tuple[Panel, ...]] = (MEAN,)
    followed = "mean"
    rows = NUMBER_ROWS
    figure = "means"
    released_as = "mean"
    simulation: ClassVar[type[SimulationQuery] | None] = AnswersSimulation
    untested = UNTESTED
    accepted_parameters: ClassVar[frozenset[str]] = frozenset({"view=smooth", "looks=every"})
    refused_parameters: ClassVar[Mapping[str, str]] = {
        **UNLISTED,
        "top": REMOVE,
        "group": REMOVE,
        "view=consistent": "a number has the raw view alone: view=raw",
        "page": "a number has one page",
        "values": RANGES_ONLY,
    }

    @classmethod
    def quantity_of(cls, domain: Number) -> Quantity:
        """Return what is estimated of a number between two bounds."""
        return Quantity.of_mean(MeanMechanism.for_epsilon, domain)

    @property
    def quantity(self) -> Quantity:
        return self.quantity_of(self.domain)

    @property
    def range_width(self) -> float:
        return float(self.domain.high - self.domain.low)

    def figures(
        self, data: Tally, query: EstimateQuery, selection: SelectedValues, time_range: TimeRange
    ) -> RangeFigures:
        number = self._number(data, query, time_range.contributions(self.collection))
        if isinstance(number, NoReports):
            low, high = float(number.low[0]), float(number.high[0])
            empty = Figure("mean", None, None, low, high, low, high)
            return RangeFigures(0, number.estimand, (empty,))
        mean = _mean(number, query)
        if isinstance(number, MeanEstimate):
            return RangeFigures(number.n, number.estimand, (mean,))
        figures = (mean, *self.finer(number, query))
        return RangeFigures(number.n, number.estimand, figures, bands=number.curve.covers)

    def _number(
        self, data: Tally, query: EstimateQuery, contributions: int
    ) -> MeanEstimate | BucketHistogram | NoReports:
        """Return the estimate of its measure."""
        return estimate_number(
            self.collection,
            data.counters,
            query.level,
            contributions=contributions,
            looks=query.looks,
            covers=data.covers,
        )

    def headline(
        self, figures: Sequence[Figure], facts: Mapping[str, Any], *, leads: bool
    ) -> Headline:
        (mean,) = (figure for figure in figures if figure.kind == "mean")
        unit = self.collection.measured_in
        texts = mean_text(mean, unit), two_groups(figures, mean.figure, unit)
        return Headline("; ".join(filter(None, texts)))

    @property
    def comparison(self) -> Comparison:
        return Comparison(NUMBER, lambda *_: None, self._side)

    def _side(
        self, tally: Tally, query: EstimateQuery, contributions: int, _: Counts | None
    ) -> MeanEstimate:
        """Return the mean, whatever the measure, from at least one report."""
        return estimate_mean(
            self.collection,
            tally.counters,
            query.level,
            contributions=contributions,
            looks=query.looks,
            covers=tally.covers,
        )

    def simulate(self, options: Parameters, generator: Generator) -> SimulatedFigures:
        query, collection = AnswersSimulation.parse(options), self.collection
        population = self.population(query.truth, query.n)
        simulated = compare_local_and_central(collection, population, generator, query.level)
        return simulated.figures(1, query.top, lambda _: "mean", of_shares=False)

    def population(self, truth: TrueValues, n: int) -> Population:
        """Return n devices that have these numbers; a distribution is of points of the range."""
        step = (self.domain.high - self.domain.low) / (POINTS - 1)
        points = np.array([self._input(self.domain.low + step * place) for place in range(POINTS)])
        return truth.population(n, points, self._typed_input)

    def _typed_input(self, word: str) -> int:
        number = parse_number("truth", word)
        if not self.domain.low <= number <= self.domain.high:
            low, high = float(self.domain.low), float(self.domain.high)
            raise QueryError("truth", word, f"give a number from {low:g} to {high:g}")
        return self._input(number)

    def _input(self, number: Fraction) -> int:
        return self.domain.input(number, SystemRandomSource())  # unused for points of the grid

    def finer(self, histogram: BucketHistogram, query: EstimateQuery) -> tuple[Figure, ...]:
        """Return the figures of a distribution."""
        return tuple(histogram_figures(histogram))


class MeanAlone(Mean):
    """The mean of a distribution, which takes longer."""

    def _number(
        self, data: Tally, query: EstimateQuery, contributions: int
    ) -> MeanEstimate | BucketHistogram | NoReports:
        if int(data.counters.sum()) <= data.covers:
            return super()._number(data, query, contributions)
        return self._side(data, query, contributions, None)


class Distribution(Mean):
    """The mean, a histogram, a curve and quantiles."""

    name = "distribution"
    panels: ClassVar[tuple[Panel, ...]] = (MEAN, *BANDS)
    simulation = None
    accepted_parameters: ClassVar[frozenset[str]] = frozenset({"view=smooth"})
    refused_parameters: ClassVar[Mapping[str, str]] = {
        **Mean.refused_parameters,
        "looks=every": ONE_LOOK,
    }

    @property
    def brief(self) -> Mean:
        return MeanAlone(self.collection)

    @classmethod
    def quantity_of(cls, domain: Number) -> Quantity:
        return Quantity.of_mean(DistributionMechanism.for_epsilon, domain)

    def frequencies(self, whole: Tally) -> tuple[float, ...] | None:
        histogram = estimate_number(self.collection, whole.counters, covers=whole.covers)
        if not isinstance(histogram, BucketHistogram) or histogram.frequency is None:
            return None
        return self.shown_shares(histogram.frequency)

    def shown_shares(self, buckets: Floats) -> tuple[float, ...]:
        """Return the shares that are compared, from those of the buckets."""
        return tuple(buckets.tolist())


class Ranges(Distribution):
    """The same, and the shares of any ranges."""

    name = "ranges"
    panels: ClassVar[tuple[Panel, ...]] = (MEAN, SHARES, *BANDS)
    figure = "quarters of the range"
    accepted_parameters: ClassVar[frozenset[str]] = frozenset({"view=smooth", "values"})

    @property
    def brief(self) -> Mean:
        """Itself: its curve is a sum of counters, without the iterations of a distribution."""
        return self

    @classmethod
    def quantity_of(cls, domain: Number) -> Quantity:  # noqa: ARG003 - a share has no unit
        return Quantity.of_quarters()

    def shown_shares(self, buckets: Floats) -> tuple[float, ...]:
        return tuple(float(quarter.sum()) for quarter in np.split(buckets, QUARTERS))

    @property
    def default_values(self) -> tuple[str, ...]:
        step = (self.domain.high - self.domain.low) / PARTS
        ends = [float(self.domain.low + step * place) for place in range(PARTS + 1)]
        return tuple(f"{low:.15g}..{high:.15g}" for low, high in pairwise(ends))

    def check(self, query: EstimateQuery) -> None:
        super().check(query)
        _bounds(query)

    def load(
        self, source: Source, query: EstimateQuery, scope: Scope, whole: Tally
    ) -> SelectedValues:
        return SelectedValues(tuple({"from": low, "below": high} for low, high in _bounds(query)))

    def finer(self, histogram: BucketHistogram, query: EstimateQuery) -> tuple[Figure, ...]:
        assert isinstance(histogram, RangeEstimator)  # noqa: S101 - narrows the type
        ranges = [_range(histogram, bounds, query) for bounds in _bounds(query)]
        return (*ranges, *histogram_figures(histogram))


def _bounds(query: EstimateQuery) -> list[tuple[float, float]]:
    ends = (parse_range("values", word) for word in query.values)
    return [(float(low), float(high)) for low, high in ends]


def _mean(number: MeanEstimate | BucketHistogram, query: EstimateQuery) -> Figure:
    low, high = number.low, number.high
    if number.evidence is not None:
        band = poisoning_band(number.evidence, query.fakes)
        low, high = float(band.low[0]), float(band.high[0])
    return Figure("mean", None, number.mean, number.low, number.high, low, high)


def _range(number: RangeEstimator, bounds: tuple[float, float], query: EstimateQuery) -> Figure:
    share, of = number.between(*bounds), {"from": bounds[0], "below": bounds[1]}
    if share.share is None or share.evidence is None:
        return Figure("share", of, None, share.low, share.high, 0.0, 1.0)
    band = poisoning_band(share.evidence, query.fakes)
    ends = (share.low, share.high, float(band.low[0]), float(band.high[0]))
    return Figure("share", of, share.share, *ends, None, share.share * number.n)


def histogram_figures(number: BucketHistogram) -> Iterator[Figure]:
    """Yield the buckets, the curve and the quantiles of a distribution."""
    curve = number.curve
    edges = curve.edges.tolist()
    shares = [None] * len(edges) if curve.share is None else curve.share.tolist()
    heights = [] if number.frequency is None else number.frequency.tolist()
    for (low, high), share in zip(pairwise(edges), heights, strict=False):
        yield Figure("bucket", {"from": low, "below": high}, share, at=low)
    for row in zip(edges, shares, curve.low.tolist(), curve.high.tolist(), strict=True):
        edge, share, low, high = row
        yield Figure("curve", None, share, low, high, at=edge)
    for quantile in map(curve.quantile, QUANTILES):
        ends = (quantile.low, quantile.high)
        yield Figure("quantile", None, quantile.value, *ends, at=quantile.share)
