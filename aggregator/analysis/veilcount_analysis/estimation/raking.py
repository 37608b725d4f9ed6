"""Raking: shares of a population whose margins are public, from the reports of those who consented.

Cells of public segments get weights, by scaling them to one margin after the other until all are
met [DS40]. A weighted figure is unbiased where, within each category, who consents does not depend
on the answer; the residuals of the figure on the margins are its variance [DS92], and each of them
is divided by what its own report leaves free [HC3, MW85]. A report's noise is in its residual, so
privacy needs no term of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..scipy_modules import special
from .confidence_intervals import Counts, Ends, Floats, quantile
from .estimator import enough
from .proportions import SupportCounts

ROUNDS = 1_000  # of scaling; a handful, unless combinations of categories have next to no reports
CLOSE, ROUGHLY = 1e-12, 1e-6
MET = 1e-9  # how closely the weights meet the margins
FREE = 0.01  # the least that a report leaves free: one that decides a category alone
STEPS = 8  # numbers of fakes in a cell
FILLS = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2)  # of the fakes that move a cell farthest
BETWEEN = 1.03  # what numbers between the steps may add: measured, 1.02
MOST_OF_A_CELL = 0.99  # that may be fake: without a report a cell has no figure
PERSONS_VARIANCE = 0.25  # the most of answers from 0 to 1


@dataclass(frozen=True, eq=False)
class Margins:
    """The categories of each cell, and the population's shares of the categories.

    `digits` has a row for each cell, and a column for each segment: the place of its category.
    """

    digits: Counts
    shares: tuple[Floats, ...]

    @cached_property
    def indicators(self) -> tuple[Floats, ...]:
        """Which cells each category has: of each segment a column for each of its categories."""
        columns = zip(self.digits.T, self.shares, strict=True)
        return tuple(np.eye(len(shares))[places] for places, shares in columns)

    def gap(self, cells: Floats) -> float:
        """Return how far the categories of weighted cells are from the population's at most."""
        sums = zip(self.indicators, self.shares, strict=True)
        return max(float(np.abs(cells @ indicator - shares).max()) for indicator, shares in sums)

    def rake(self, reports: Floats, close: float = CLOSE) -> Floats:
        """Return the population's shares of the cells, from their reports; of several rows too."""
        cells: Floats = reports / reports.sum(axis=-1, keepdims=True)
        for _ in range(ROUNDS):
            for indicator, shares in zip(self.indicators, self.shares, strict=True):
                sums = np.maximum(cells @ indicator, np.finfo(float).tiny)
                cells = cells * ((shares / sums) @ indicator.T)
            if self.gap(cells) <= close:
                break
        return cells


@dataclass(frozen=True, slots=True, eq=False)
class CellSupports:
    """How many reports each cell has, and how many of these support each value (a column)."""

    n: Counts
    supports: Counts
    least: float  # what a report without support counts, debiased
    most: float

    @classmethod
    def from_counts(cls, cells: Sequence[SupportCounts]) -> CellSupports:
        """Return the supports of cells, in their order."""
        ends = np.array([cells[0].response.least, cells[0].response.most], np.float64)
        least, most = cells[0].response.share(ends).tolist()
        n = np.array([cell.n for cell in cells], np.int64)
        return cls(n, np.stack([cell.counts for cell in cells]), least, most)

    def shares(self, removed: Floats | float = 0.0, supporting: Floats | float = 0.0) -> Floats:
        """Return each cell's debiased shares, without some reports and supports; of none 0."""
        left = np.maximum(self.n - removed, 0.0)[:, np.newaxis]
        supports = np.clip(self.supports - np.reshape(supporting, (-1, 1)), 0.0, left)
        mean = np.divide(supports, left, out=np.zeros(supports.shape), where=left > 0)
        debiased: Floats = self.least + (self.most - self.least) * mean
        return debiased


@dataclass(frozen=True, eq=False)
class RakedShares:
    """Shares of values in the population of the margins.

    One person may have sent `contributions` of the reports; they may all be alike.
    """

    cells: CellSupports
    margins: Margins
    contributions: int = 1

    @property
    def n(self) -> int:
        """How many reports these are."""
        return int(self.cells.n.sum())

    @cached_property
    def population(self) -> Floats:
        """The population's share of each cell."""
        return self.margins.rake(self.cells.n.astype(np.float64))

    @property
    def meets_margins(self) -> bool:
        """Whether there are weights that meet all margins: too many empty cells have none."""
        return self.margins.gap(self.population) <= MET

    @property
    def weights(self) -> Floats:
        """The weight of a report of each cell; together 1."""
        return self.population / np.maximum(self.cells.n, 1)

    @property
    def largest_weight(self) -> float:
        """How many reports of average weight the one with the largest weight counts as."""
        return self.n * float(self.weights.max())

    @property
    def design_effect(self) -> float:
        """The factor by which the weights raise the variance of what they do not explain [Kish]."""
        return self.n * float(self.population @ self.weights)

    @property
    def points(self) -> Floats:
        """The reweighted shares."""
        return self.population @ self.cells.shares()

    @property
    def variance(self) -> Floats:
        """The variance of each share, from the residuals of the reports on the margins."""
        weights, shares = self.weights, self.cells.shares()
        categories = np.concatenate(self.margins.indicators, axis=1)
        inverse = np.linalg.pinv((categories.T * self.population) @ categories)
        fitted = categories @ (inverse @ (categories.T @ (self.population[:, np.newaxis] * shares)))
        leverage = weights * np.einsum("gi,ij,gj->g", categories, inverse, categories)
        scale = (weights / np.maximum(1 - leverage, FREE)) ** 2
        supporting = self.cells.supports
        silent = self.cells.n[:, np.newaxis] - supporting
        least, most = self.cells.least, self.cells.most
        squares = supporting * (most - fitted) ** 2 + silent * (least - fitted) ** 2
        of_reports: Floats = scale @ squares
        return of_reports + self._of_persons

    @property
    def _of_persons(self) -> float:
        """The most that reports of one person add, whose answers may be the same each time."""
        return (self.contributions - 1) * PERSONS_VARIANCE * self.design_effect / self.n

    def interval(self, alpha: float) -> Ends:
        """Return an interval for each share, wrong with alpha; exact tails where few support it."""
        points, variance = self.points, self.variance
        half = quantile(alpha) * np.sqrt(variance)
        low, high = points - half, points + half
        hits, trials = self._effective(points, variance)
        few = np.minimum(hits, trials - hits) < enough(alpha)
        if few.any():
            reach = self.cells.most - self.cells.least
            ends = _real_tails(hits[few], trials[few], alpha)
            low[few], high[few] = (self.cells.least + reach * end for end in ends)
        return low, high

    def _effective(self, points: Floats, variance: Floats) -> Ends:
        """Return hits and trials without weights that say as much [KG98]; at most by the weights.

        Where next to nobody supports a value, its variance is an estimate of next to nothing.
        """
        reach = self.cells.most - self.cells.least
        mean = np.clip((points - self.cells.least) / reach, 0.0, 1.0)
        trials = np.full(len(mean), self.n / self.design_effect)
        needed = mean * (1 - mean) * reach**2
        by_variance = np.divide(needed, variance, out=trials.copy(), where=variance > 0)
        trials = np.where(needed > 0, np.minimum(trials, by_variance), trials)
        return mean * trials, trials

    def poisoned(self, fakes: float) -> Ends:
        """Return the range of the honest shares, if this share of the reports is fake.

        Fakes choose their cells, and all of them support a value or none does: without those that
        move the figure farthest, what is left is raked again.
        """
        number = fakes * self.n
        effects, rates = self._effects(number)
        low, high = (
            self._moved(number, sign, *pair)
            for sign, *pair in zip((1, -1), effects, rates, strict=True)
        )
        return low, high

    def _effects(self, fakes: float) -> Ends:
        """Return how far fakes in one cell have moved each share up and down: all, and one of them.

        Some of the fakes may move it farther than all: a cell without reports has no weight.
        """
        sizes = np.minimum(fakes, MOST_OF_A_CELL * self.cells.n)
        shares, points = self.cells.shares(), self.points
        effects, rates = np.zeros((2, 2, *shares.shape))
        for removed in np.outer(np.linspace(0, 1, STEPS + 1)[1:], sizes):
            left = self.cells.n.astype(np.float64) - np.diag(removed)
            population = self.margins.rake(left, ROUGHLY)
            own = np.diag(population)[:, np.newaxis]
            for supporting in (removed, np.zeros_like(removed)):
                honest = population @ shares + own * (
                    self.cells.shares(removed, supporting) - shares
                )
                effect = np.stack([points - honest, honest - points])
                effects = np.maximum(effects, effect)
                rates = np.maximum(rates, effect / np.maximum(removed, 1.0)[:, np.newaxis])
        return effects, rates

    def _moved(self, fakes: float, sign: int, effects: Floats, rates: Floats) -> Floats:
        """Return the shares without the fakes that have moved them farthest in one direction.

        Cells are filled in the order of a fake's effect. Effects in cells of one category add up to
        more than their sum, so what is left is raked with all of them taken out, too.
        """
        most = np.divide(effects, rates, out=np.zeros_like(effects), where=rates > 0)
        order = np.argsort(-rates, axis=0, kind="stable")
        moved = self.points - sign * (rates * _filled(most, order, fakes)).sum(axis=0)
        cap = MOST_OF_A_CELL * self.cells.n[:, np.newaxis]
        for scale in FILLS:
            removed = _filled(np.minimum(scale * most, cap), order, fakes)
            left = self.cells.n[:, np.newaxis] - removed
            supports = np.clip(self.cells.supports - (sign > 0) * removed, 0.0, left)
            mean = supports / np.maximum(left, 1e-9)
            honest = self.cells.least + (self.cells.most - self.cells.least) * mean
            together = (self.margins.rake(left.T, ROUGHLY).T * honest).sum(axis=0)
            moved = np.minimum(moved, together) if sign > 0 else np.maximum(moved, together)
        farthest: Floats = self.points + BETWEEN * (moved - self.points)
        return farthest


def difference_interval(
    first: RakedShares, second: RakedShares, alpha: float, *, together: bool
) -> Ends:
    """Return an interval for each difference of two sides, wrong with alpha.

    `together`: persons may be on both sides, so that their errors may add up.
    """
    errors = np.sqrt(np.stack([first.variance, second.variance]))
    error = errors.sum(axis=0) if together else np.sqrt((errors**2).sum(axis=0))
    half, difference = quantile(alpha) * error, first.points - second.points
    return difference - half, difference + half


def _filled(most: Floats, order: Counts, fakes: float) -> Floats:
    """Return how many fakes each cell has, by value, if cells are filled in this order."""
    sizes = np.take_along_axis(most, order, axis=0)
    placed = np.zeros_like(most)
    before = np.cumsum(sizes, axis=0) - sizes
    np.put_along_axis(placed, order, np.clip(fakes - before, 0, sizes), axis=0)
    return placed


def _real_tails(hits: Floats, trials: Floats, alpha: float) -> Ends:
    """Return Clopper-Pearson bounds of real numbers of hits and trials."""
    low = special.betaincinv(np.maximum(hits, 1e-9), trials - hits + 1, alpha / 2)
    high = special.betainccinv(hits + 1, np.maximum(trials - hits, 1e-9), alpha / 2)
    return np.where(hits > 0, low, 0.0), np.where(hits < trials, high, 1.0)
