"""Several questions in two-way tables: the shares of answers, and which go together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil, floor
from typing import Any, ClassVar

from numpy.random import Generator

from veilcount_shared.domain import Questions

from ..errors import QueryError
from ..estimation.results import ESTIMANDS
from ..mechanisms.estimates import target_of
from ..mechanisms.pair_tables import tables_handler
from ..privacy.trust_models import Quantity
from ..query_params import Parameters
from ..simulation.associated_answers import TablesSimulation, simulate_answers, true_tables
from ..simulation.batch_models import BatchModel
from ..simulation.simulated_figures import SimulatedFigures
from .estimate_query import EstimateQuery
from .headline import Headline
from .kind import SummedKind
from .labels import Value
from .numbers import ONE_LOOK
from .panels import Form, Panel
from .results import SEPARATOR, Figure, RangeFigures
from .scope import Scope
from .simulated_rows import DrawnRows, simulate_rows
from .source import SelectedValues, Source, Tally
from .table_figures import TableFigures, TableTerms
from .time_ranges import TimeRange
from .values import UNLISTED

REMOVE = "tables have no values to select: remove it, or give pair"
UNTESTED = (
    "Tables have no poisoning test: the band states how far fake reports could have moved them."
)
SIGNIFICANT_P = 0.05  # of all pairs together


class TwoWayTables(SummedKind[Questions]):
    """The table of each two questions, and the shares of each question's answers."""

    name = "tables"
    panels = (
        Panel(("share",), "Answers to each question"),
        Panel(("cell",), "Two answers together", Form.GRID),
        Panel(("within",), "The second answer, among those with the first", Form.GRID),
        Panel(("odds_ratio", "independence"), "Dependence", Form.TABLE, of_shares=False),
    )
    followed = ""
    comparison = "tables are not compared: estimate both"
    figure = "cells of a table"
    untested = UNTESTED
    simulation = TablesSimulation
    accepted_parameters: ClassVar[frozenset[str]] = frozenset({"pair"})
    refused_parameters: ClassVar[Mapping[str, str]] = {
        **UNLISTED,
        "top": REMOVE,
        "group": REMOVE,
        "values": REMOVE,
        "view=consistent": "tables have the raw view alone: view=raw",
        "view=smooth": "tables have no smooth view: give view=raw",
        "page": "tables have one page: give pair",
        "looks=every": ONE_LOOK,
    }

    @property
    def quantity(self) -> Quantity:
        return Quantity.of_tables(tuple(choice.size for _, choice in self.domain.questions))

    def check(self, query: EstimateQuery) -> None:
        super().check(query)
        self._names(query.pair)

    def _names(self, pair: str | None) -> tuple[str, ...]:
        """Return the names of a pair in the order of the questions; none: every pair."""
        if pair is None:
            return ()
        names = tuple(sorted(pair.split(",")))
        if names not in self.domain.pairs:
            pairs = "; ".join(map(",".join, self.domain.pairs[:3]))
            raise QueryError("pair", pair, f"give two of the questions, such as {pairs}")
        return names

    def load(
        self, source: Source, query: EstimateQuery, scope: Scope, whole: Tally
    ) -> SelectedValues:
        """Return the names of the figures, of which there are many."""
        names, sizes = self._names(query.pair), dict(self.domain.questions)
        pairs = [names] if names else self.domain.pairs
        cells = sum(sizes[one].size * sizes[two].size for one, two in pairs)
        shares = sum(choice.size for choice in sizes.values())
        labels: tuple[Value, ...] = ("",) * (2 * cells + shares + 2 * len(pairs))
        return SelectedValues(labels)

    def figures(
        self, data: Tally, query: EstimateQuery, selection: SelectedValues, time_range: TimeRange
    ) -> RangeFigures:
        target = target_of(self.collection, "auto", time_range.contributions(self.collection))
        handler = tables_handler(self.collection)
        n = max(handler.report_count(data.counters) - data.covers, 0)
        tables = handler.tables(data.counters, data.covers)
        if tables is None:  # a pair has no report
            return RangeFigures(n, ESTIMANDS[target], ())
        terms = TableTerms(query.level, query.fakes, self._names(query.pair))
        rows = TableFigures(self.domain, tables, terms).rows()
        return RangeFigures(n, ESTIMANDS[target], tuple(rows))

    def headline(
        self, figures: Sequence[Figure], facts: Mapping[str, Any], *, leads: bool
    ) -> Headline:
        """Return the clearest dependence of two questions."""
        tests = [row for row in figures if row.kind == "independence"]
        tested = [row for row in tests if row.figure is not None]
        if not tested:
            return Headline("Too few reports to see which answers go together")
        dependent = [row for row in tested if (row.figure or 0.0) < SIGNIFICANT_P]
        decision = (
            f"{len(dependent)} of {len(tested)} pairs of questions depend, all pairs tested at"
            f" once at {SIGNIFICANT_P:.0%}"
        )
        if len(tested) < len(tests):
            decision += f"; {len(tests) - len(tested)} have too few reports"
        if not dependent:
            return Headline("Nothing seen: no two questions go together", f"{decision}.")
        first = min(dependent, key=lambda row: row.figure or 0.0)
        return Headline(_finding(str(first.of).split(SEPARATOR), figures), f"{decision}.")

    def simulate(self, options: Parameters, generator: Generator) -> SimulatedFigures:
        query = TablesSimulation.parse(options)
        terms = TableTerms(query.level, pair=self._names(query.pair))

        def rows(tables: Any) -> tuple[Figure, ...]:
            figures = TableFigures(self.domain, tables, terms).rows()
            return tuple(row for row in figures if row.kind != "independence")

        def estimate(model: BatchModel) -> Sequence[Figure]:
            reports = simulate_answers(model.collection, query.n, query.association, generator)
            counters = model.among_covers(reports, generator)
            tables = tables_handler(model.collection).tables(counters, model.covers)
            if tables is None:
                raise QueryError("n", query.n, "too few for a report of each pair")
            return rows(tables)

        truth = rows(true_tables(self.collection, query.association))
        facts = {"association": query.association}
        drawn = DrawnRows(truth, estimate, facts, "tables", "cell")
        return simulate_rows(self.collection, query, query.runs, drawn)


def _finding(names: Sequence[str], figures: Sequence[Figure]) -> str:
    """Return the two answers to the first question between which the second differs most."""
    one, two = names
    rows = [row for row in figures if row.kind == "within" and set(_parts(row)) == set(names)]
    pairs = [
        (high, low)
        for high in rows
        for low in rows
        if _parts(high)[two] == _parts(low)[two] and high.figure is not None
    ]
    high, low = max(pairs, key=lambda pair: (pair[0].figure or 0.0) - (pair[1].figure or 0.0))
    first, answer = _parts(high)[one], _parts(high)[two]
    return (
        f"{two} goes with {one}: of those with {one} {first}, {_hundredths(high)} of 100 have {two}"
        f" {answer}; of those with {one} {_parts(low)[one]}, {_hundredths(low)}"
    )


def _parts(row: Figure) -> Mapping[str, object]:
    return row.of if isinstance(row.of, Mapping) else {}


def _hundredths(row: Figure) -> str:
    """Return an interval in whole hundredths, rounded outwards."""
    low, high = (min(max(end, 0.0), 1.0) for end in row.interval)
    return f"{floor(100 * low)} to {ceil(100 * high)}"
