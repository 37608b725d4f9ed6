"""The table of two questions, from reports that were coded jointly: cells, dependence, odds.

Independence is tested by Wald: how far each cell is from the product of its margins, with the
covariance that these distances have at the table that is the product. Pearson's test of debiased
counts takes randomization for dependence, nearly always.

The cells' errors are those of a sample of persons: who reports on a pair is drawn by the devices.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np

from veilcount_shared.mechanisms import SubsetSelection

from ..scipy_modules import special
from .confidence_intervals import Counts, Ends, Floats, quantile
from .covered_supports import among_covers
from .estimator import IntervalTarget, honest_range
from .fieller import RatioEstimator
from .joint_difference import share_covariance
from .proportions import SupportCounts
from .response_distribution import ResponseDistribution, group_of_cover, group_response

ALL_FAKE = 0.99  # of the reports of a pair
REPORTS_A_CELL = 20  # n times the share a cell has, over n Var of a cell: below, no test is valid
LEAST_MARGIN = 0.04  # of an even share: a margin that noise moved below 0 has a variance too
POPULATION = IntervalTarget.POPULATION


@dataclass(frozen=True, slots=True)
class TableShape:
    """The answers to the first question are rows, those to the second columns."""

    rows: int
    columns: int

    @property
    def size(self) -> int:
        """The number of cells."""
        return self.rows * self.columns

    @property
    def is_square_of_two(self) -> bool:
        """Whether one ratio of odds says all about the dependence."""
        return (self.rows, self.columns) == (2, 2)

    def lines(self, axis: int) -> Counts:
        """Return the cells of each row (0) or column (1), as rows of 0 and 1."""
        if axis == 0:
            return np.repeat(np.eye(self.rows, dtype=np.int64), self.columns, axis=1)
        return np.tile(np.eye(self.columns, dtype=np.int64), (1, self.rows))


@dataclass(frozen=True, eq=False)
class TwoWayTable:
    """The reports on two questions; `counts` says how many support each cell, row by row.

    `persons` is which part of the reports is of persons, the others are a shuffler's covers; the
    pair has one in `rarity` of all reports.
    """

    mechanism: SubsetSelection
    shape: TableShape
    n: int
    counts: Counts
    persons: float
    rarity: float

    @cached_property
    def cells(self) -> SupportCounts:
        """The estimator of the cells."""
        response = ResponseDistribution.from_mechanism(self.mechanism)
        cell_counts = SupportCounts(self.n, self.counts, response, self.shape.size)
        return among_covers(cell_counts, self.persons, self.mechanism.w / self.mechanism.k)

    @cached_property
    def shares(self) -> Floats:
        """The estimated cells, a row for each answer to the first question; they sum to 1."""
        return self.cells.points.reshape(self.shape.rows, self.shape.columns)

    def fake_part(self, fakes: float) -> float:
        """Return which part of these reports is fake, where all fakes choose this pair."""
        return min(fakes * self.rarity, ALL_FAKE)

    # -- sums --------------------------------------------------------------------------------------

    def sums(self, axis: int) -> SupportCounts:
        """Return the estimator of the shares of the rows (0) or columns (1)."""
        lines = self.shape.lines(axis)
        size = int(lines[0].sum())
        response = group_response(self.mechanism, size)
        if self.persons < 1:
            of_cover = group_of_cover(self.mechanism, size)
            response = response.diluted(self.persons, *of_cover)
        return SupportCounts(self.n, lines @ self.counts, response, len(lines))

    def within(self, row: int) -> RatioEstimator:
        """Return the estimator of the shares of a row's cells in the row."""
        places = slice(row * self.shape.columns, (row + 1) * self.shape.columns)
        parts, whole = self.cells.rows(places), self.sums(0).rows(slice(row, row + 1))
        both = self._covariance[places, places].sum(axis=1)
        gap = self.cells.response.gap
        return RatioEstimator(parts, whole, False, gap, {POPULATION: both})

    # -- dependence --------------------------------------------------------------------------------

    @cached_property
    def _covariance(self) -> Floats:
        return self.covariance(possible(self.shares))

    def covariance(self, table: Floats) -> Floats:
        """Return the covariance of the estimated cells, if this is the true table."""
        return share_covariance(self.mechanism, self.cells, table.ravel(), POPULATION)

    @property
    def is_testable(self) -> bool:
        """Whether there are enough reports for the test to keep its level."""
        noise = self.cells.response.floor / self.cells.response.gap**2
        return self.n >= REPORTS_A_CELL * self.shape.size * noise

    def p_of_dependence(self) -> float | None:
        """Return the probability of a table as far from independence; None: too few reports."""
        if not self.is_testable:
            return None
        row_shares, column_shares = self.shares.sum(axis=1), self.shares.sum(axis=0)
        distance = self.shares - np.outer(row_shares, column_shares)
        row_shares, column_shares = positive(row_shares), positive(column_shares)
        linear = np.kron(_deviations(row_shares), _deviations(column_shares))
        covariance = linear @ self.covariance(np.outer(row_shares, column_shares)) @ linear.T
        free = np.arange(self.shape.size).reshape(distance.shape)[:-1, :-1].ravel()
        contrasts = distance.ravel()[free]
        wald = contrasts @ np.linalg.solve(covariance[np.ix_(free, free)], contrasts)
        return float(special.chdtrc(len(free), wald))

    def odds_ratio(self, alpha: float) -> tuple[float, float, float] | None:
        """Return a ratio of odds of a table of four cells with Fieller's interval.

        It holds every ratio t at which p00 p11 - t p01 p10 is within its own error of 0; None:
        every ratio is possible, or every one above some.
        """
        one, two = _products(self.shares)
        gradients = np.array(
            [
                [self.shares[1, 1], 0.0, 0.0, self.shares[0, 0]],
                [0.0, self.shares[1, 0], self.shares[0, 1], 0.0],
            ]
        )
        (var_one, both), (_, var_two) = gradients @ self._covariance @ gradients.T
        squared = quantile(alpha) ** 2
        a, b, c = two**2 - squared * var_two, one * two - squared * both, one**2 - squared * var_one
        if two <= 0 or one <= 0 or a <= 0:
            return None
        root = np.sqrt(max(b * b - a * c, 0.0))
        return one / two, max(float((b - root) / a), 0.0), float((b + root) / a)

    def poisoned_odds_ratio(self, fakes: float) -> tuple[float, float] | None:
        """Return the range of the honest ratio, where all fakes send one message about this pair.

        None: any ratio, since a cell may be empty.
        """
        part = self.fake_part(fakes)
        own = ResponseDistribution.from_mechanism(self.mechanism)
        ratios = [_ratio(self.shares)]
        for members in combinations(range(self.mechanism.k), self.mechanism.w):
            sent = np.zeros(self.mechanism.k)
            sent[list(members)] = 1
            fake = own.share(sent).reshape(self.shares.shape)
            ratios.append(_ratio((self.shares - part * fake) / (1 - part)))
        if not all(ratio is not None for ratio in ratios):
            return None
        stated = [ratio for ratio in ratios if ratio is not None]
        return min(stated), max(stated)

    def poisoned_cells(self, fakes: float) -> Ends:
        """Return the range of the honest cells, where all fakes choose this pair."""
        return self.cells.poisoned(self.fake_part(fakes))

    def poisoned_sums(self, axis: int, fakes: float) -> Ends:
        """Return the range of the honest shares of rows (0) or columns (1)."""
        response = group_response(self.mechanism, int(self.shape.lines(axis)[0].sum()))
        least, most = response.share(np.array([response.least, response.most]))
        return honest_range(self.sums(axis).points, least, most, self.fake_part(fakes))


def possible(table: Floats) -> Floats:
    """Return the table with no cell below 0 and all together 1."""
    cells = np.maximum(table, 0.0)
    proportions: Floats = cells / cells.sum()
    return proportions


def positive(shares: Floats) -> Floats:
    """Return shares of which none is 0 and which sum to 1."""
    bounded = np.maximum(shares, LEAST_MARGIN / len(shares))
    proportions: Floats = bounded / bounded.sum()
    return proportions


def _deviations(shares: Floats) -> Floats:
    """Return the matrix that takes from each line its share of all lines together.

    The distance of a table X from the product of its margins a and b changes with a change dX by
    (I - a 1') dX (I - 1 b'), to first order: the margins of dX are taken off in both directions.
    """
    size = len(shares)
    return np.eye(size) - np.outer(shares, np.ones(size))


def _products(table: Floats) -> tuple[float, float]:
    return float(table[0, 0] * table[1, 1]), float(table[0, 1] * table[1, 0])


def _ratio(table: Floats) -> float | None:
    """Return the ratio of odds; None where a cell is empty."""
    if (table <= 0).any():
        return None
    one, two = _products(table)
    return one / two
