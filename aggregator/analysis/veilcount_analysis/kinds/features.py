"""Several numbers of one person, in their units: means, spread, correlations, a regression."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from numpy.random import Generator

from veilcount_shared.domain import Features

from ..errors import QueryError
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
from .moment_figures import MomentTerms, moment_figures
from .numbers import ONE_LOOK, UNTESTED
from .panels import Form, Panel
from .results import SEPARATOR, Figure, RangeFigures
from .simulated_rows import DrawnRows, simulate_rows
from .source import SelectedValues, Tally
from .time_ranges import TimeRange
from .values import UNLISTED

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
