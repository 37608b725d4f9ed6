"""The answers to one question, from the tables of all pairs that it is in.

Each table gives an unbiased share, with an error that the definition fixes for a number of reports.
They are averaged with the weights of these errors, whatever the number of reports of each pair was:
with weights by counts, fakes that all choose one pair would raise its weight as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from veilcount_shared.mechanisms import SubsetSelection

from .confidence_intervals import Ends, Floats
from .proportions import SupportCounts
from .response_distribution import ResponseDistribution, group_response
from .two_way_tables import TwoWayTable


@dataclass(frozen=True, slots=True, eq=False)
class QuestionShares(SupportCounts):
    """The shares of the answers to one question, as those of so many reports of one table.

    `tables` are those of its pairs, the question on this axis of each.
    """

    tables: tuple[tuple[TwoWayTable, int], ...]
    weights: Floats

    @classmethod
    def from_tables(cls, tables: Sequence[tuple[TwoWayTable, int]]) -> QuestionShares:
        """Return the weighted average of the tables, each of which has a report."""
        weights = design_weights(tables)
        sums = [table.sums(axis) for table, axis in tables]
        points = weights @ np.stack([one.points for one in sums])
        parts = [_Part.from_sums(one, weight) for one, weight in zip(sums, weights, strict=True)]
        n = 1 / sum(part.squared for part in parts)
        response = ResponseDistribution(
            P=1.0,
            Q=0.0,
            gap=1.0,
            floor=n * sum(part.floor for part in parts),
            slope=n * sum(part.slope for part in parts),
            least=n * min(part.least for part in parts),
            most=n * max(part.most for part in parts),
        )
        # no whole numbers: only points and variances are taken of them
        as_counts: tuple[Any, Any] = n, n * points
        return cls(*as_counts, response, len(points), tuple(tables), weights)

    def poisoned(self, fakes: float) -> Ends:
        """Return the range of the honest shares: moved most where all fakes choose one pair."""
        moves = []
        for (table, axis), weight in zip(self.tables, self.weights, strict=True):
            points = table.sums(axis).points
            moves.append([weight * (end - points) for end in table.poisoned_sums(axis, fakes)])
        low, high = np.array(moves).min(axis=0)[0], np.array(moves).max(axis=0)[1]
        return self.points + np.minimum(low, 0.0), self.points + np.maximum(high, 0.0)


@dataclass(frozen=True, slots=True)
class _Part:
    """What one table adds to the variance of a share: for each report of the average."""

    squared: float
    floor: float
    slope: float
    least: float
    most: float

    @classmethod
    def from_sums(cls, sums: SupportCounts, weight: float) -> _Part:
        response = sums.response
        squared = weight**2 / sums.n
        noise = squared / response.gap**2
        least, most = (
            weight / sums.n * (count - response.Q) / response.gap
            for count in (response.least, response.most)
        )
        return cls(squared, noise * response.floor, noise * response.slope, least, most)


def design_weights(tables: Sequence[tuple[TwoWayTable, int]]) -> Floats:
    """Return weights by the inverse variance of an even share, alike for any number of reports."""
    precisions = np.array([1 / _even_variance(table, axis) for table, axis in tables])
    weights: Floats = precisions / precisions.sum()
    return weights


def group_noise(mechanism: SubsetSelection, size: int) -> float:
    """Return n times the noise variance of the share of so many cells of an even table."""
    response = group_response(mechanism, size)
    share = np.array([size / mechanism.k])
    return float(response.variance(share, sampled=False)[0])


def _even_variance(table: TwoWayTable, axis: int) -> float:
    answers = (table.shape.rows, table.shape.columns)[axis]
    response = group_response(table.mechanism, table.shape.size // answers)
    return float(response.variance(np.array([1 / answers]), sampled=True)[0])
