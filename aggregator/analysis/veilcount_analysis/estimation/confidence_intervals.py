"""Intervals for shares, each with its own claim about what it covers.

`score` inverts the normal test at every share with the variance that this share would have: for
one value of a sample it is Wilson's interval, mapped; for a cohort, whose own share is estimated,
only the noise varies. `sampled_tails` and `cohort_tails` invert the exact distribution instead,
where counts are too small for the normal: they err with at most alpha whatever the share is [CP34].
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import overload

import numpy as np
from numpy.typing import NDArray

from ..scipy_modules import special
from .clopper_pearson import lower, upper
from .response_distribution import ResponseDistribution

Bools = NDArray[np.bool_]
Counts = NDArray[np.int64]
Floats = NDArray[np.float64]
Ends = tuple[Floats, Floats]
Alpha = float | Floats  # an error probability: of all figures, or one for each
MOST_TAILS = 100_000  # in memory, for each n: 20 MB


@overload
def quantile(alpha: float) -> float: ...
@overload
def quantile(alpha: Alpha) -> Alpha: ...
def quantile(alpha: Alpha) -> Alpha:
    """Return how many standard errors leave out alpha, half of it on each side."""
    z: Floats = -special.ndtri(np.asarray(alpha) / 2)
    return z if z.ndim else float(z)


def single(alpha: Alpha) -> float:
    """Return the error probability of the only figure."""
    return float(np.max(alpha))


def distinct(counts: Counts, alpha: Alpha) -> tuple[Counts, Alpha, Counts]:
    """Return the estimates that intervals rest on, and the place of each figure's among them.

    Counts repeat, small ones above all; with an error probability for each figure they need not.
    """
    if np.ndim(alpha):
        shape = np.broadcast_shapes(counts.shape, np.shape(alpha))
        many = np.broadcast_to(counts, shape)
        return many, np.broadcast_to(alpha, shape), np.arange(len(many), dtype=np.int64)
    unique, places = np.unique(counts, return_inverse=True)
    return unique, alpha, places.astype(np.int64)


def chosen(alpha: Alpha, rows: Bools) -> Alpha:
    """Return the error probabilities of some figures."""
    return alpha[rows] if isinstance(alpha, np.ndarray) else alpha


def separate(alpha: Alpha, groups: int) -> list[Alpha]:
    """Return the error probability of each group of one figure; a single one may be of many."""
    if isinstance(alpha, np.ndarray) and groups > 1:
        return list(alpha[:, np.newaxis])
    return [alpha] * groups


def score(
    share: Floats, n: int, response: ResponseDistribution, z: Alpha, *, sampled: bool
) -> Ends:
    """Return the shares f with (share - f)^2 <= z^2 Var(f) / n.

    The variance is linear in f for a cohort and gets gap^2 f (1 - f) more for a sample, so both
    ends are the roots of one quadratic.
    """
    return _roots(share, n, response, z * z, 0.0, sampled=sampled)


def bernstein(
    share: Floats, n: int, response: ResponseDistribution, alpha: Alpha, *, sampled: bool
) -> Ends:
    """Return the interval that holds at any n, from the variance and the reach of one report.

    Bernstein's inequality: a sum of n errors exceeds t with probability at most
    2 exp(-t^2 / 2 (n Var + reach t / 3)).
    """
    squared = 2 * np.log(2 / np.asarray(alpha))
    slack = squared * (response.most - response.least) * response.gap / 3
    return _roots(share, n, response, squared, slack, sampled=sampled)


def _roots(
    share: Floats,
    n: int,
    response: ResponseDistribution,
    squared: Alpha,
    slack: Alpha,
    *,
    sampled: bool,
) -> Ends:
    gap = response.gap**2
    a = gap * (n + squared * sampled)
    b = 2 * share * gap * n + squared * (response.slope + gap * sampled)
    c = share**2 * gap * n - squared * response.floor
    low_b, low_c, high_b, high_c = b - slack, c - slack * share, b + slack, c + slack * share
    low = low_b - np.sqrt(np.maximum(low_b**2 - 4 * a * low_c, 0))
    high = high_b + np.sqrt(np.maximum(high_b**2 - 4 * a * high_c, 0))
    return low / (2 * a), high / (2 * a)


def sampled_tails(supports: Counts, n: int, response: ResponseDistribution, alpha: Alpha) -> Ends:
    """Return the shares of the population under which neither tail is below alpha / 2."""
    low, high = (bound(supports, n, alpha / 2) for bound in (lower, upper))
    return response.share(low), response.share(high)


def agresti_coull(
    mean: Floats, variance: Floats, n: int, reach: tuple[Floats, Floats], z: Alpha
) -> Ends:
    """Return intervals for means of n reports, from the variance and the reach of one."""
    least, most = reach
    middle, half = (least + most) / 2, (most - least) / 2
    total = n + z * z
    centre = (n * mean + z * z * middle) / total
    square = n * (variance + (mean - centre) ** 2) + z * z * (half**2 + (middle - centre) ** 2)
    spread = z * np.sqrt(square) / total
    return centre - spread, centre + spread


def anderson(levels: Floats, counters: Counts, alpha: float) -> Ends:
    """Return Anderson's interval for the mean of any distribution on ascending levels [And69].

    On either side the distribution function leaves the sample's by more than the margin with
    probability at most alpha / 2 [Mas90]; the mean is extreme where it does so everywhere.
    """
    n = counters.sum()
    margin = np.sqrt(np.log(2 / alpha) / (2 * n))
    below, gaps = np.cumsum(counters)[:-1] / n, np.diff(levels)
    low, high = np.minimum(below + margin, 1) @ gaps, np.maximum(below - margin, 0) @ gaps
    return np.array([levels[-1] - low]), np.array([levels[-1] - high])


# -- the exact distribution of a cohort ------------------------------------------------------------


def cohort_tails(supports: Counts, n: int, response: ResponseDistribution, alpha: Alpha) -> Ends:
    """Return the shares c / n of these n answers under which neither tail is below alpha / 2.

    If c of n hold a value its support is the sum of two binomials, c with P and n - c with Q. It
    grows with c, so the ends are found by bisection. An end that would lie outside [0, n] is the
    estimate itself, which a raw interval always contains.
    """
    share = response.share(supports / n)
    near = np.clip(np.rint(share * n), 0, n).astype(np.int64)
    low, high = score(share, n, response, quantile(alpha), sampled=False)
    tails = CohortTails(supports, n, response, alpha / 2)
    fewest = tails.last(near, np.minimum(low * n - near, 0) - 2)
    most = tails.last(near, np.maximum(high * n - near, 0) + 2)
    return np.minimum(fewest / n, share), np.maximum(most / n, share)


@dataclass(frozen=True, slots=True, eq=False)
class CohortTails:
    """The tails of these supports, by the number c of the n answers that hold the value."""

    supports: Counts
    n: int
    response: ResponseDistribution
    least: Alpha  # the probability that a tail has at least, for a c inside the interval

    def last(self, near: Counts, guess: Floats) -> Counts:
        """Return the last c inside, on the side of `near` that the guess is on."""
        upper_tail = bool((guess < 0).all())  # for fewer holders such a support is large
        good, reach = near.copy(), guess.astype(np.int64)
        bad = np.clip(good + reach, -1, self.n + 1)
        while True:  # twice as far each time, until the tail is too small or c is impossible
            on = (bad >= 0) & (bad <= self.n) & self._inside(bad, upper_tail=upper_tail)
            if not on.any():
                break
            good[on] = bad[on]
            reach[on] *= 2
            bad[on] = np.clip(good[on] + reach[on], -1, self.n + 1)
        while (open_ := np.abs(bad - good) > 1).any():
            middle = (good + bad) // 2
            fits = self._inside(middle, upper_tail=upper_tail)
            good, bad = np.where(open_ & fits, middle, good), np.where(open_ & ~fits, middle, bad)
        return good

    def _inside(self, c: Counts, *, upper_tail: bool) -> Bools:
        """Compare the tails, each computed once: a search for p asks for the same at any alpha."""
        stored = _stored_tails(self.n, self.response, upper_tail)
        places = np.clip(c, 0, self.n).tolist()
        rows = {row: stored.get(row) for row in zip(self.supports.tolist(), places, strict=True)}
        if missing := [row for row, tail in rows.items() if tail is None]:
            supports, counts = np.array(missing, np.int64).T
            tails = cohort_tail(supports, counts, self.n, self.response, upper_tail=upper_tail)
            rows.update(zip(missing, tails.tolist(), strict=True))
            if len(stored) > MOST_TAILS:
                stored.clear()
            stored.update(rows)
        every = [rows[row] for row in zip(self.supports.tolist(), places, strict=True)]
        return np.array(every, np.float64) > self.least


@lru_cache(maxsize=8)
def _stored_tails(*_setting: object) -> dict[tuple[int, int], float | None]:
    """Return the tails that were computed in a setting, by support and number of holders."""
    return {}


def cohort_tail(
    supports: Counts, c: Counts, n: int, response: ResponseDistribution, *, upper_tail: bool
) -> Floats:
    """Return Pr[support >= s], or Pr[support <= s], if c of the n answers hold the value.

    Summed over how many of the c are not supported, as far as that has any probability.
    """
    lost_mean = c * (1 - response.P)
    width = 8 * np.sqrt(lost_mean * response.P) + 20
    first = np.maximum(np.floor(lost_mean - width), 0)
    terms = int(np.max(np.minimum(np.ceil(lost_mean + width), c) - first)) + 1
    lost = first[:, None] + np.arange(terms)
    chance = _binomial(lost, c[:, None], 1 - response.P)
    others = (supports - c)[:, None] + lost  # how many of the n - c make up the rest
    chance_of_others = _binomial(others, (n - c)[:, None], response.Q)
    if upper_tail:
        rest = at_least(others[:, -1] + 1, n - c, response.Q)
        reached = rest[:, None] + np.cumsum(chance_of_others[:, ::-1], axis=1)[:, ::-1]
    else:
        rest = 1 - at_least(others[:, 0], n - c, response.Q)
        reached = rest[:, None] + np.cumsum(chance_of_others, axis=1)
    tail: Floats = (chance * reached).sum(axis=1)
    return tail


def _binomial(hits: Floats, trials: Counts, p: float) -> Floats:
    """Return Pr[Bin(trials, p) = hits], 0 where there are no so many trials."""
    inside = (hits >= 0) & (hits <= trials)
    k = np.where(inside, hits, 0)
    log = special.xlogy(k, p) + special.xlog1py(trials - k, -p)
    log = log - special.betaln(1 + trials - k, 1 + k) - np.log1p(trials)
    return np.where(inside, np.exp(log), 0.0)


def at_least(hits: Floats | Counts, trials: Counts, p: float) -> Floats:
    """Return Pr[Bin(trials, p) >= hits]."""
    inside = np.clip(np.asarray(hits, np.float64), 1, np.maximum(trials, 1))
    chance = special.betainc(inside, np.maximum(trials - inside + 1, 1), np.float64(p))
    return np.where(hits <= 0, 1.0, np.where(hits > trials, 0.0, chance))
