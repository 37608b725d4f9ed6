"""Several questions in two-way tables: cells, shares, and which answers go together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator

from veilcount_shared.domain import Choice, Label, Questions

from ..errors import QueryError
from ..estimation.confidence_intervals import Ends
from ..estimation.difference import holm
from ..estimation.estimator import Estimator
from ..estimation.question_shares import QuestionShares
from ..estimation.results import ESTIMANDS, IntervalTerms
from ..estimation.two_way_tables import POPULATION, TwoWayTable
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
from .time_ranges import TimeRange
from .values import UNLISTED

Question = tuple[str, Choice]
COLUMNS = ("figure", "low", "high", "fake_low", "fake_high")


@dataclass(frozen=True, slots=True)
class TableTerms:
    """The level of the intervals, the share of fakes of the bands, and the pair that is shown."""

    level: float
    fakes: Fraction = Fraction(0)
    pair: tuple[str, ...] = ()  # of names; none: every pair


@dataclass(frozen=True, slots=True)
class TableFigures:
    """The tables of all pairs, in their order, as figures."""

    domain: Questions
    tables: Sequence[TwoWayTable]
    terms: TableTerms

    def rows(self) -> Iterator[Figure]:
        """Yield the shares of each question's answers, then the figures of each pair."""
        for question in self.domain.questions:
            if question[0] in (self.terms.pair or self.domain.names):
                yield from self._shares(question)
        questions, pairs = dict(self.domain.questions), self.domain.pairs
        dependence = self._independence()
        for place, names in enumerate(pairs):
            if self.terms.pair in {(), names}:
                one, two = ((name, questions[name]) for name in names)
                yield from self._pair(self.tables[place], one, two)
                yield Figure("independence", SEPARATOR.join(names), dependence[place])

    def _independence(self) -> list[float | None]:
        """Return the probability of each table if nothing depends, by Holm over all pairs."""
        probabilities = [table.p_of_dependence() for table in self.tables]
        adjusted = holm(
            np.array([1.0 if p is None else p for p in probabilities]), len(self.tables)
        )
        return [
            p if p is None else float(own) for p, own in zip(probabilities, adjusted, strict=True)
        ]

    def _shares(self, question: Question) -> Iterator[Figure]:
        name, choice = question
        tables = [
            (table, names.index(name))
            for table, names in zip(self.tables, self.domain.pairs, strict=True)
            if name in names
        ]
        shares = QuestionShares.from_tables(tables)
        labels: list[Value] = [{name: label} for label in choice.labels]
        band = shares.poisoned(float(self.terms.fakes))
        families = sum(part.size for _, part in self.domain.questions)
        yield from self._figures("share", labels, shares, band, families)

    def _pair(self, table: TwoWayTable, one: Question, two: Question) -> Iterator[Figure]:
        fakes, families = float(self.terms.fakes), sum(other.shape.size for other in self.tables)
        labels = [_cell(one, two, *answers) for answers in _answers(one, two)]
        band = table.poisoned_cells(fakes)
        yield from self._figures("cell", labels, table.cells, band, families)
        for row, label in enumerate(one[1].labels):
            shares = table.within(row)
            cells = [_cell(one, two, label, other) for other in two[1].labels]
            band = shares.poisoned(table.fake_part(fakes))
            yield from self._figures("within", cells, shares, band, families)
        if table.shape.is_square_of_two:
            yield self._odds_ratio(table, SEPARATOR.join((one[0], two[0])))

    def _odds_ratio(self, table: TwoWayTable, of: str) -> Figure:
        ratio = table.odds_ratio(1 - self.terms.level)
        if ratio is None:
            return Figure("odds_ratio", of, None)
        band = table.poisoned_odds_ratio(float(self.terms.fakes))
        return Figure("odds_ratio", of, *ratio, *(band or ()))

    def _figures(
        self, kind: str, labels: Sequence[Value], shares: Estimator, band: Ends, families: int
    ) -> Iterator[Figure]:
        """Yield shares with intervals on their own, and those that hold for all of the kind."""
        terms = IntervalTerms(self.terms.level, POPULATION)
        low, high = terms.interval(shares)
        at_once = shares.interval((1 - self.terms.level) / families, POPULATION)
        columns = np.stack([shares.points, low, high, *band], axis=1).tolist()
        for label, row, least, most in zip(labels, columns, *at_once, strict=True):
            yield Figure(
                kind,
                label,
                **dict(zip(COLUMNS, row, strict=True)),
                simultaneous_low=float(least),
                simultaneous_high=float(most),
            )


def _answers(one: Question, two: Question) -> Iterator[tuple[Label, Label]]:
    for answer in one[1].labels:
        yield from ((answer, other) for other in two[1].labels)


def _cell(one: Question, two: Question, answer: Label, other: Label) -> Value:
    return {one[0]: answer, two[0]: other}


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
