"""The exact distribution of a cohort's support: how many of the n answers may hold a value.

If c of n hold a value its support is the sum of two binomials, c with P and n - c with Q, and of
the covers' among which reports are counted. It grows with c, so an interval ends at the last c
under which the tail is not too small.

Tails are computed for BLOCK numbers c in a row. All of a block share the answers that hold the
value for the least c, and those that do not for the largest: their distribution is summed once a
row. The few in between have the same distributions in every row. All terms are positive, so small
tails lose no digits. A search for p asks again and again for the same tails: they are stored.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from ..scipy_modules import special
from .confidence_intervals import Alpha, Counts, Ends, Floats, at_least
from .response_distribution import ResponseDistribution

BLOCK = 48  # numbers of holders whose tails are computed together
REACH, MARGIN = 8, 20  # of a binomial: standard deviations and counts on either side of its mean
MOST_TAILS = 1 << 20  # in memory, for each setting: 8 MB
TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True, slots=True)
class CohortSetting:
    """What the distribution of a support depends on, but for the number of holders."""

    n: int
    P: float
    Q: float
    covers: int = 0
    cover_support: float = 0.0

    def holders(self, supports: Counts, shares: Floats, alpha: Alpha) -> tuple[Counts, Counts]:
        """Return the fewest and the most that leave both tails above alpha / 2.

        The search begins at an estimate of the shares: one more, or less, if that is not inside.
        """
        near = np.clip(np.rint(shares * self.n), 0, self.n).astype(np.int64)
        least = np.broadcast_to(np.asarray(alpha) / 2, supports.shape)
        upper, lower = (_tail_table(self, upper=upper) for upper in (True, False))
        return upper.last(supports, near, least), lower.last(supports, near, least)


def cohort_tails(supports: Counts, n: int, response: ResponseDistribution, alpha: Alpha) -> Ends:
    """Return the shares c / n of these answers under which neither tail is below alpha / 2.

    An end that would lie outside [0, n] is the estimate itself, which a raw interval always
    contains.
    """
    share = response.share(supports / n)
    setting = CohortSetting(n, response.P, response.Q)
    fewest, most = setting.holders(supports, share, alpha)
    near = np.clip(np.rint(share * n), 0, n)
    return (
        np.minimum(np.minimum(fewest, near) / n, share),
        np.maximum(np.maximum(most, near) / n, share),
    )


class TailTable:
    """The tails of supports, a row each: of `near` holders, and of fewer (upper tail) or more."""

    def __init__(self, setting: CohortSetting, *, upper: bool) -> None:
        self.setting, self.upper = setting, upper
        self.step = -1 if upper else 1
        self.clear()

    def clear(self) -> None:
        """Forget all rows."""
        self.supports, self.near, self.computed = np.full((3, 1), -1)  # no support is below 0
        self.tails = np.zeros((1, BLOCK))  # 0: not computed, or nobody can have it

    def last(self, supports: Counts, near: Counts, least: Floats) -> Counts:
        """Return the last c inside; next to `near`, on its other side, if that is not.

        A support that is not whole has the tail of the next whole number in its direction.
        """
        supports = (np.ceil if self.upper else np.floor)(supports).astype(np.int64)
        if self.tails.size > MOST_TAILS:
            self.clear()
        rows = np.searchsorted(self.supports, supports)
        if not np.array_equal(self.supports[np.minimum(rows, len(self.supports) - 1)], supports):
            self._add(supports, near)
            rows = np.searchsorted(self.supports, supports)
        while True:
            inside = (self.tails[rows] > least[:, np.newaxis]).sum(axis=1)
            is_open = (inside == self.computed[rows]) & (inside < self._possible(rows))
            if not is_open.any():
                last: Counts = self.near[rows] + self.step * (inside - 1)
                return last
            for alike in self._alike(np.unique(rows[is_open])):
                self._extend(alike)

    def _add(self, supports: Counts, near: Counts) -> None:
        """Insert rows of new supports; equal ones have the same estimate."""
        new, first = np.unique(supports, return_index=True)
        is_new = ~np.isin(new, self.supports)
        new, near = new[is_new], near[first[is_new]]
        places = np.searchsorted(self.supports, new)
        self.supports = np.insert(self.supports, places, new)
        self.near = np.insert(self.near, places, near)
        self.computed = np.insert(self.computed, places, 0)
        self.tails = np.insert(self.tails, places, 0.0, axis=0)

    def _possible(self, rows: Counts) -> Counts:
        """Return how many numbers of holders there are from `near` on."""
        near = self.near[rows]
        return near + 1 if self.upper else self.setting.n - near + 1

    def _alike(self, rows: Counts) -> Iterator[Counts]:
        """Yield rows whose windows are alike: of a few wide ones only these have the cost."""
        lost = self.near[rows] * (1 - self.setting.P)
        octaves = np.log2(MARGIN**2 + lost).astype(np.int64)
        yield from (rows[octaves == octave] for octave in np.unique(octaves))

    def _extend(self, rows: Counts) -> None:
        """Compute the next block of these rows."""
        n, computed = self.setting.n, self.computed[rows]
        between = min(BLOCK - 1, n)
        steps = self.step * np.arange(between + 1)
        holders = (self.near[rows] + self.step * computed)[:, np.newaxis] + steps
        fewest = np.clip(holders.min(axis=1), 0, n - between)
        block = block_tails(self.setting, self.supports[rows], fewest, upper=self.upper)
        columns = np.clip(holders - fewest[:, np.newaxis], 0, between)
        is_possible = (holders >= 0) & (holders <= n)
        tails = np.where(is_possible, np.take_along_axis(block, columns, axis=1), 0.0)
        width = int(computed.max()) + BLOCK - self.tails.shape[1]
        if width > 0:
            self.tails = np.pad(self.tails, ((0, 0), (0, width)))
        places = computed[:, np.newaxis] + np.arange(between + 1)
        self.tails[rows[:, np.newaxis], places] = tails
        self.computed[rows] = np.minimum(computed + between + 1, self._possible(rows))


@lru_cache(maxsize=16)
def _tail_table(setting: CohortSetting, *, upper: bool) -> TailTable:
    return TailTable(setting, upper=upper)


def block_tails(setting: CohortSetting, supports: Counts, fewest: Counts, *, upper: bool) -> Floats:
    """Return Pr[support >= s] or Pr[support <= s], with `fewest` holders in each row and more.

    Of BLOCK - 1 answers in between none, one, ... hold the value: a column each.
    """
    between = min(BLOCK - 1, setting.n)
    first, lost = _window(fewest, 1 - setting.P)
    begin = supports - between - fewest + first  # what others must add, at least
    size = between + lost.shape[1]
    others = setting.n - fewest - between
    if setting.covers:
        first_cover, cover = _window(np.array([setting.covers]), setting.cover_support)
        reached = _reached(
            begin - int(first_cover[0]) - cover.shape[1] + 1,
            size + cover.shape[1] - 1,
            others,
            setting.Q,
            upper=upper,
        )
        windows = sliding_window_view(reached, cover.shape[1], axis=1)
        reached = windows @ cover[0, ::-1]
    else:
        reached = _reached(begin, size, others, setting.Q, upper=upper)
    windows = sliding_window_view(reached, lost.shape[1], axis=1)
    shared = np.einsum("rbt,rt->rb", windows, lost)
    tails: Floats = shared[:, ::-1] @ _mixtures(setting.P, setting.Q, between).T
    return tails


def _window(trials: Counts, p: float) -> tuple[Counts, Floats]:
    """Return the first count of each row that has any probability, and those from it on."""
    mean = trials * p
    width = REACH * np.sqrt(mean * (1 - p)) + MARGIN
    first = np.maximum(np.floor(mean - width), 0).astype(np.int64)
    last = np.minimum(np.ceil(mean + width), trials).astype(np.int64)
    size = int((last - first).max()) + 1
    return first, _binomial(first, size, trials, p)


def _reached(begin: Counts, size: int, trials: Counts, p: float, *, upper: bool) -> Floats:
    """Return Pr[Bin >= h] or Pr[Bin <= h] for so many h in each row."""
    chances = _binomial(begin, size, trials, p)
    if upper:
        above = at_least(begin + size, trials, p)
        return above[:, np.newaxis] + np.cumsum(chances[:, ::-1], axis=1)[:, ::-1]
    below = at_least(trials - begin + 1, trials, 1 - p)
    return below[:, np.newaxis] + np.cumsum(chances, axis=1)


def _binomial(begin: Counts, size: int, trials: Counts, p: float) -> Floats:
    """Return Pr[Bin(trials, p) = h] for so many h in each row; 0 where there are no so many trials.

    One of a row by its logarithm, the others by the ratios of neighbours.
    """
    hits = begin[:, np.newaxis] + np.arange(size)
    left = trials[:, np.newaxis] - hits
    mode = np.minimum(((trials + 1) * p).astype(np.int64), trials)
    anchor = np.clip(mode - begin, 0, size - 1)
    k = np.clip(begin + anchor, 0, trials)
    log = special.xlogy(k, p) + special.xlog1py(trials - k, -p)
    log = log - special.betaln(1 + trials - k, 1 + k) - np.log1p(trials)
    odds = max(p, TINY) / max(1 - p, TINY)
    logs = np.ones(hits.shape)  # first the ratio of each chance to the one before
    np.divide(
        left[:, :-1], hits[:, 1:], out=logs[:, 1:], where=(left > 0)[:, :-1] & (hits >= 0)[:, :-1]
    )
    np.log(logs[:, 1:], out=logs[:, 1:])
    logs[:, 1:] += np.log(odds)
    np.cumsum(logs, axis=1, out=logs)
    logs += log[:, np.newaxis] - np.take_along_axis(logs, anchor[:, np.newaxis], axis=1)
    np.exp(np.minimum(logs, 0.0, out=logs), out=logs)
    logs[(hits < 0) | (left < 0)] = 0.0
    return logs


@lru_cache(maxsize=64)
def _mixtures(P: float, Q: float, answers: int) -> Floats:
    """Return the distribution of the support of so many answers; row i: i of them hold it."""
    numbers, begin = np.arange(answers + 1), np.zeros(answers + 1, np.int64)
    held, other = (_binomial(begin, answers + 1, numbers, p) for p in (P, Q))
    rows = [np.convolve(held[i, : i + 1], other[answers - i, : answers - i + 1]) for i in numbers]
    return np.array(rows)
