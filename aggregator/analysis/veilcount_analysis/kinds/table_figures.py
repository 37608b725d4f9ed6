"""Tables of two questions as figures: cells, shares, dependence, each with interval and band."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from veilcount_shared.domain import Choice, Label, Questions

from ..estimation.confidence_intervals import Ends
from ..estimation.difference import holm
from ..estimation.estimator import Estimator
from ..estimation.question_shares import QuestionShares
from ..estimation.results import IntervalTerms
from ..estimation.two_way_tables import POPULATION, TwoWayTable
from .labels import Value
from .results import SEPARATOR, Figure

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
