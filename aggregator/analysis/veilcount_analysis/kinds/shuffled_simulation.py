"""Simulated batches of a shuffled collection: their figures with the truth, again and again.

Who is asked is drawn from the population each time. Reports and covers are drawn from the
mechanism, covers by the code that a shuffler runs, and estimated as an aggregator estimates them.
Next to them the same devices answer by local noise and to a trusted curator, both at the epsilon
that the batch has against the server.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any, ClassVar, NoReturn

import numpy as np
from numpy.random import Generator

from veilcount_shared.definition_record import BatchRules
from veilcount_shared.mechanisms import Randomizer
from veilcount_shared.shuffling.times import batch_rules

from ..errors import QueryError
from ..estimation.confidence_intervals import Counts
from ..estimation.estimator import IntervalTarget
from ..mechanisms import handler_of
from ..mechanisms.handler import ShareHandler
from ..mechanisms.sampling import Floats
from ..privacy.trust_models import Quantity
from ..query_params import Parameters
from ..series.series import Series
from ..simulation.batch_models import (
    LOCAL,
    SHUFFLED,
    BatchModel,
    Runs,
    batch_models,
    run_count,
)
from ..simulation.local_vs_central import (
    AnswersSimulation,
    central_estimate,
    true_figures,
)
from ..simulation.population import Population, simulate
from ..simulation.simulated_figures import SimulatedEstimate, SimulatedFigures, truth_table
from ..text import number_format
from ..text.view_parts import Table
from .estimate import SeriesData, estimate_series
from .estimate_query import MOST_ROWS, EstimateQuery
from .kind import Kind
from .labels import value_at
from .registry import kind_of
from .results import Figure
from .scope import Scope
from .source import Tally

RUNS = 100
CENTRAL = "central"
MODELS = SHUFFLED, LOCAL, CENTRAL
ERRORS = ("model", "epsilon", "root mean square error", "predicted", "intervals with the truth")


@dataclass(frozen=True, kw_only=True)
class ShuffledSimulation(AnswersSimulation):
    """The options of a population, and how many batches of it are drawn."""

    subject: ClassVar[str] = "shuffled values and means"

    runs: Runs = None


@dataclass(frozen=True, slots=True)
class BatchSource:
    """One batch, as a kind reads it."""

    batch: Tally

    def tally(self, periods: range, cells: Sequence[int]) -> Tally:
        """Return the batch."""
        return self.batch

    def counters_by_period(self, periods: range, cells: Sequence[int]) -> Counts:
        """Return the counters of the only period."""
        return self.batch.counters[np.newaxis]

    def is_over(self, period: int) -> bool:
        """Whether its period has ended: always."""
        return True

    @property
    def searches(self) -> NoReturn:
        """Refuse: nothing is searched."""
        raise QueryError("collection", "a batch", "strings are not searched here")


def simulate_shuffled(
    kind: Kind[Any, Any], options: Parameters, generator: Generator
) -> SimulatedFigures:
    """Return the figures of the first batch, and errors and coverage of all of them."""
    query, rules = ShuffledSimulation.parse(options), batch_rules(kind.collection)
    number = run_count(batch_models(kind.collection), query.runs, RUNS)
    batches = SimulatedBatches(kind, kind.population(query.truth, query.n), rules, query.level)  # type: ignore[attr-defined] # of an `AnswersSimulation`
    runs = [batches.draw(generator) for _ in range(number)]
    return batches.figures(runs, query.top)


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """One batch: the true figures of its devices, and the estimates of each model."""

    truth: Floats
    estimates: dict[str, SimulatedEstimate]


@dataclass(frozen=True, slots=True, eq=False)
class SimulatedBatches:
    """A population, and batches of one report of each of its devices."""

    kind: Kind[Any, Any]
    population: Population
    rules: BatchRules
    level: float

    @property
    def truth(self) -> Floats:
        """The true figures of the population that is asked, without that of absence."""
        return self._true(self.population)

    def _true(self, devices: Population) -> Floats:
        figures = true_figures(self.kind.collection, devices)
        return figures if self.quantity.inputs is None else figures[: self.kind.domain.size]

    @property
    def quantity(self) -> Quantity:
        """What is estimated."""
        return self.kind.quantity

    def draw(self, generator: Generator) -> Run:
        """Draw who is asked, and return the estimates of their batch and under both models."""
        shares = self.population.devices / self.population.n
        cohort = Population(
            self.population.inputs, generator.multinomial(self.population.n, shares)
        )
        truth, models = self._true(cohort), batch_models(self.kind.collection)
        size = len(truth)
        estimates = {
            model.name: self._estimate(model, cohort, generator)[:size] for model in models
        }
        columns = {name: _columns(figures) for name, figures in estimates.items()}
        curated = central_estimate(models[-1].collection, cohort, generator, self.level)
        return Run(truth, columns | {CENTRAL: _first(curated, size)})

    def _estimate(
        self, model: BatchModel, cohort: Population, generator: Generator
    ) -> tuple[Figure, ...]:
        """Draw reports from the mechanism's distribution, and covers by the mechanism itself."""
        counters = simulate(model.collection, cohort, generator)
        batch = Tally(model.among_covers(counters, generator), model.covers)
        return batch_figures(kind_of(model.collection), batch, self.level)

    # -- what is shown -----------------------------------------------------------------------------

    def figures(self, runs: Sequence[Run], top: int) -> SimulatedFigures:
        """Return the first batch with the truth, and the errors of all."""
        of_shares, truth = self.quantity.inputs is not None, self.truth
        order = np.argsort(-truth, kind="stable")[:top].tolist()
        rows = [
            {"value": self._name(place), "truth": float(truth[place])}
            | {model: runs[0].estimates[model].at(place) for model in MODELS}
            for place in order
        ]
        errors = [self._errors(model, runs) for model in MODELS]
        return SimulatedFigures(
            n=self.population.n,
            level=self.level,
            facts={"values": rows, "runs": len(runs), "errors": errors},
            table=truth_table(rows, ("value",), of_shares=of_shares),
            closing=tuple(self._closing()),
            target=IntervalTarget.POPULATION,
            errors=_error_table(errors, len(runs), self.quantity.name),
        )

    def _name(self, place: int) -> object:
        if self.quantity.inputs is None:
            return "mean"
        return value_at(self.kind.collection, place)

    def _errors(self, model: str, runs: Sequence[Run]) -> dict[str, Any]:
        """Return how far off a model was of those asked, and how often its intervals held.

        A curator's intervals are of those asked, all others of the population.
        """
        estimates = [run.estimates[model] for run in runs]
        cohorts = [run.truth for run in runs]
        off = np.array(
            [estimate.value - truth for estimate, truth in zip(estimates, cohorts, strict=True)]
        )
        targets = cohorts if model == CENTRAL else [self.truth] * len(runs)
        hits = [
            (estimate.low <= truth) & (truth <= estimate.high)
            for estimate, truth in zip(estimates, targets, strict=True)
        ]
        collection = self.kind.collection
        epsilon = collection.unit_epsilon if model == SHUFFLED else self.rules.epsilon
        return {
            "model": model,
            "epsilon": float(epsilon or 0),
            "error": float(np.sqrt(np.mean(off**2))),
            "predicted": self._predicted()[model],
            "coverage": float(np.mean(hits)),
        }

    def _predicted(self) -> dict[str, float]:
        """Return the error of the noise that each model should have, for these shares."""
        n, epsilon, quantity = self.population.n, self.rules.epsilon, self.quantity
        assert epsilon is not None, "shuffled"  # noqa: S101 - narrows the type
        return {
            SHUFFLED: self._noise(self.kind.collection.randomizer, self.rules.covers),
            LOCAL: self._noise(quantity.family(epsilon)),
            CENTRAL: quantity.central(epsilon, n, self.level).rmse,
        }

    def _noise(self, mechanism: Randomizer, covers: int = 0) -> float:
        """Return the root mean square error of all figures, of reports among covers."""
        handler, n = handler_of(mechanism), self.population.n
        if isinstance(handler, ShareHandler):
            own = float(np.mean(handler.response.variance(self.truth, sampled=False)))
        else:
            own = handler.noise_variance()
        return sqrt(own / n + covers * handler.cover_variance() / n**2) * self.quantity.width

    def _closing(self) -> Sequence[str]:
        rules, n = self.rules, self.population.n
        lines = [
            (
                f"shuffled: each report at its own epsilon, among {rules.covers:,} covers; local"
                f" and central: at epsilon {number_format.epsilon(rules.epsilon or 0)}, the"
                " batch's against the server"
            ),
            (
                "errors are of those who answer, intervals of the population that they are drawn"
                " from; the curator's are of those who answer"
            ),
        ]
        if n < rules.least:
            lines.append(f"a batch of fewer than {rules.least:,} reports is never handed over")
        return lines


def batch_figures(kind: Kind[Any, Any], batch: Tally, level: float) -> tuple[Figure, ...]:
    """Return the figures of one batch, by the entrance that a server uses."""
    series = Series(kind.collection)
    query = EstimateQuery(level=level, size=MOST_ROWS)
    scope = Scope.from_query(series, query, kind.collection.start)
    data = SeriesData.load(kind, BatchSource(batch), query, scope)
    (first,) = estimate_series(kind, query, data).ranges
    return first.result.figures


def _columns(figures: Sequence[Figure]) -> SimulatedEstimate:
    columns = (
        [_number(getattr(row, name)) for row in figures] for name in ("figure", "low", "high")
    )
    return SimulatedEstimate(*(np.array(column) for column in columns))


def _number(figure: float | None) -> float:
    return np.nan if figure is None else figure


def _first(estimate: SimulatedEstimate, size: int) -> SimulatedEstimate:
    return SimulatedEstimate(estimate.value[:size], estimate.low[:size], estimate.high[:size])


def _error_table(errors: Sequence[dict[str, Any]], runs: int, quantity: str) -> Table:
    rows = [
        (
            row["model"],
            number_format.epsilon(row["epsilon"]),
            number_format.unsigned_error(row["error"], quantity),
            number_format.unsigned_error(row["predicted"], quantity),
            f"{row['coverage']:.1%}",
        )
        for row in errors
    ]
    return Table(f"Over {runs:,} batches, all figures together", ERRORS, rows)
