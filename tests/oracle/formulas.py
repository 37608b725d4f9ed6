"""The published formulas once more, with 50 digits and nothing of the analysis.

Probabilities are Fractions; where a root or an exponential is taken, Decimals. Ends of intervals
are found as they are defined, by bisection, also where the product has a closed form. The tables
of the mechanisms (how many levels, which values) are the protocol's: they are parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import comb

from ..least_squares import exact_weights, solved

DIGITS, HALVINGS = 50, 110  # of decimals; of an interval that is bisected
Ends = tuple[Decimal, Decimal]
ZERO, ONE, TWO = Decimal(0), Decimal(1), Decimal(2)


def decimal(number: Fraction | int | Decimal) -> Decimal:
    if isinstance(number, Fraction):
        return Decimal(number.numerator) / Decimal(number.denominator)
    return Decimal(number)


def bisected(is_below: Callable[[Decimal], bool], low: Decimal, high: Decimal) -> Decimal:
    """Return where a condition that holds at the lower end ceases to hold."""
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if is_below(middle) else (low, middle)
    return (low + high) / 2


def normal_quantile(alpha: Decimal) -> Decimal:
    """Return z with P(|Z| > z) = alpha: P(|Z| <= z) = 2 phi(z) (z + z^3/3 + z^5/15 + ...)."""
    root = (TWO * bisected(lambda x: _sine(x) > 0, Decimal(3), Decimal(4))).sqrt()

    def inside(z: Decimal) -> Decimal:
        term, total = z, z
        for odd in range(3, 400, 2):
            term *= z * z / odd
            total += term
        return 2 * total * (-z * z / 2).exp() / root

    return bisected(lambda z: inside(z) < 1 - alpha, ZERO, Decimal(8))


def _sine(x: Decimal) -> Decimal:
    term, total = x, x
    for odd in range(3, 99, 2):
        term *= -x * x / (odd * (odd - 1))
        total += term
    return total


# -- mechanisms ------------------------------------------------------------------------------------


def inside(epsilon: Fraction, width: int, size: int) -> Decimal:
    """The probability of an input's own set, of `width` among `size` messages."""
    weight = decimal(epsilon).exp() * width
    return weight / (weight + size - width)


@dataclass(frozen=True)
class Supports:
    """The chance that a report supports its own value (P), and that it supports another (Q)."""

    P: Decimal
    Q: Decimal

    @classmethod
    def of_subsets(cls, epsilon: Fraction, k: int, w: int) -> Supports:
        """Of subsets of w of k values: those with another value are counted among each kind."""
        p = inside(epsilon, comb(k - 1, w - 1), comb(k, w))
        both = comb(k - 2, w - 2) if w > 1 else 0
        return cls(p, p * both / comb(k - 1, w - 1) + (1 - p) * comb(k - 2, w - 1) / comb(k - 1, w))

    @classmethod
    def of_hyperplanes(cls, epsilon: Fraction, q: int, t: int) -> Supports:
        """Of hyperplanes of PG(t - 1, q): so many, so many through a point, and through two."""
        every, one, two = ((q**power - 1) // (q - 1) for power in (t, t - 1, t - 2))
        p = inside(epsilon, one, every)
        return cls(p, p * two / one + (1 - p) * (one - two) / (every - one))

    @property
    def gap(self) -> Decimal:
        return self.P - self.Q

    def share(self, mean: Decimal) -> Decimal:
        return (mean - self.Q) / self.gap

    def variance(self, share: Decimal, *, sampled: bool) -> Decimal:
        """n times that of a share: of reports alone, or of persons too, who are drawn."""
        mean = self.Q + self.gap * share
        noise = share * self.P * (1 - self.P) + (1 - share) * self.Q * (1 - self.Q)
        return (mean * (1 - mean) if sampled else noise) / self.gap**2


def transitions(epsilon: Fraction, width: int, levels: int) -> list[list[Decimal]]:
    """The square wave: the chance of each level, for each start of a window."""
    p = inside(epsilon, width, levels)
    chances = (1 - p) / (levels - width), p / width
    starts = range(levels - width + 1)
    return [[chances[start <= x < start + width] for x in range(levels)] for start in starts]


def decoded(rows: Sequence[Sequence[Decimal]], values: Sequence[int]) -> list[Decimal]:
    """Levels in [0, 1] whose mean is 0 at the first start and 1 at the last."""
    means = [sum(map(Decimal.__mul__, row, map(Decimal, values)), ZERO) for row in rows]
    return [(value - means[0]) / (means[-1] - means[0]) for value in values]


# -- intervals -------------------------------------------------------------------------------------


def score_ends(hits: int, n: int, supports: Supports, z: Decimal, *, sampled: bool) -> Ends:
    """The shares that a test at z does not reject: Wilson's, of a sample; debiased."""
    point = supports.share(decimal(Fraction(hits, n)))

    def fits(share: Decimal) -> bool:
        variance = supports.variance(share, sampled=sampled)
        return variance > 0 and (point - share) ** 2 * n <= z * z * variance

    far = (-supports.Q / supports.gap, (1 - supports.Q) / supports.gap) if sampled else (
        point - 2, point + 2
    )  # fmt: skip
    return (bisected(lambda share: not fits(share), far[0], point), bisected(fits, point, far[1]))


def _tails(hits: int, n: int, chance: Decimal) -> tuple[Decimal, Decimal]:
    """The chances of at most, and of at least so many hits."""
    weights = [comb(n, x) * chance**x * (1 - chance) ** (n - x) for x in range(n + 1)]
    return sum(weights[: hits + 1], ZERO), sum(weights[hits:], ZERO)


def clopper_pearson(hits: int, n: int, alpha: Decimal) -> Ends:
    low = bisected(lambda p: _tails(hits, n, p)[1] < alpha / 2, ZERO, ONE) if hits else ZERO
    high = bisected(lambda p: _tails(hits, n, p)[0] > alpha / 2, ZERO, ONE) if hits < n else ONE
    return low, high


def cohort_ends(hits: int, n: int, supports: Supports, alpha: Decimal) -> Ends:
    """The first and last c of n holders under which neither tail is below alpha / 2, over n."""
    point = supports.share(decimal(Fraction(hits, n)))
    near = min(max(round(point * n), 0), n)

    def possible(c: int) -> bool:
        tails = [ZERO, ZERO]
        others = [_chance(x, n - c, supports.Q) for x in range(n - c + 1)]
        for own in range(c + 1):
            weight = _chance(own, c, supports.P)
            tails[0] += weight * sum(others[: max(hits - own + 1, 0)], ZERO)
            tails[1] += weight * sum(others[max(hits - own, 0) :], ZERO)
        return min(tails) >= alpha / 2

    low, high = near, near
    while low > 0 and possible(low - 1):
        low -= 1
    while high < n and possible(high + 1):
        high += 1
    return min(Decimal(low) / n, point), max(Decimal(high) / n, point)


def _chance(x: int, n: int, p: Decimal) -> Decimal:
    return comb(n, x) * p**x * (1 - p) ** (n - x)


def mover(one: tuple[Decimal, Ends], two: tuple[Decimal, Ends]) -> Ends:
    """The interval of a difference, from both points and intervals [Zou & Donner 2008]."""
    (first, (low_one, high_one)), (second, (low_two, high_two)) = one, two
    below = ((first - low_one) ** 2 + (high_two - second) ** 2).sqrt()
    above = ((high_one - first) ** 2 + (second - low_two) ** 2).sqrt()
    return first - second - below, first - second + above


def fieller_normal(up: int, down: int, scale: Decimal, z: Decimal) -> Ends:
    """The means t of [0, 1] at which (1 - t) up - t down is within its normal noise, and 1/2."""

    def fits(t: Decimal) -> bool:
        width = z * scale * ((1 - t) ** 2 + t * t).sqrt() + Decimal("0.5")
        return abs((1 - t) * up - t * down) <= width

    point = Decimal(up) / (up + down)
    return bisected(lambda t: not fits(t), ZERO, point), bisected(fits, point, ONE)


# -- figures ---------------------------------------------------------------------------------------


def average(levels: Sequence[Decimal], counts: Iterable[int]) -> tuple[Decimal, Decimal]:
    """The mean and the variance of decoded levels."""
    rows = list(zip(levels, counts, strict=True))
    n = sum(count for _, count in rows)
    mean = sum((level * count for level, count in rows), ZERO) / n
    return mean, sum(((level - mean) ** 2 * count for level, count in rows), ZERO) / n


def trend(rises: Sequence[int], reports: Sequence[int], gap: Decimal, periods: int) -> list[Ends]:
    """After each period the share by least squares, and its standard error."""
    rows = []
    for weights in exact_weights(periods):
        means = [2 * Fraction(up, n) - 1 for up, n in zip(rises, reports, strict=True)]
        share = sum(map(Fraction.__mul__, weights, means), Fraction(0))
        parts = zip(weights, means, reports, strict=True)
        variance = sum((w * w * (1 - mean**2) / n for w, mean, n in parts), Fraction(0))
        rows.append((decimal(share) / gap, decimal(variance).sqrt() / gap))
    return rows


@dataclass(frozen=True)
class Raked:
    """Cells of two segments, row by row: reports, supports, and the population's margins."""

    reports: Sequence[int]
    hits: Sequence[int]
    rows: Sequence[Fraction]
    columns: Sequence[Fraction]
    supports: Supports

    def population(self, rounds: int = 400) -> list[Decimal]:
        """Each cell's share: scaled to one margin after the other [Deming & Stephan 1940]."""
        cells = [Decimal(n) / sum(self.reports) for n in self.reports]
        width = len(self.columns)
        for _ in range(rounds):
            for start, margins in enumerate((self.rows, self.columns)):
                for place, margin in enumerate(margins):
                    whole = range(len(cells))
                    mine = [x for x in whole if (x // width, x % width)[start] == place]
                    total = sum((cells[x] for x in mine), ZERO)
                    for x in mine:
                        cells[x] *= decimal(margin) / total
        return cells

    def figures(self) -> Ends:
        """The reweighted share, and its variance by residuals over 1 - leverage (HC3)."""
        cells, width = self.population(), len(self.columns)
        shares = [
            self.supports.share(decimal(Fraction(hits, n)))
            for hits, n in zip(self.hits, self.reports, strict=True)
        ]
        design = [self._categories(x, width) for x in range(len(cells))]
        sizes = range(len(design[0]))
        normal = [
            [
                sum((w * x[i] * x[j] for w, x in zip(cells, design, strict=True)), ZERO)
                for j in sizes
            ]
            for i in sizes
        ]
        inverse = solved(normal, [[Decimal(i == j) for j in sizes] for i in sizes])
        loads = [
            sum((w * x[i] * f for w, x, f in zip(cells, design, shares, strict=True)), ZERO)
            for i in sizes
        ]
        slopes = [sum(map(Decimal.__mul__, row, loads), ZERO) for row in inverse]
        most, least = self.supports.share(ONE), self.supports.share(ZERO)
        variance = ZERO
        for w, x, hits, n in zip(cells, design, self.hits, self.reports, strict=True):
            fitted = sum(map(Decimal.__mul__, x, slopes), ZERO)
            leverage = (
                w / n * sum((x[i] * inverse[i][j] * x[j] for i in sizes for j in sizes), ZERO)
            )
            squares = hits * (most - fitted) ** 2 + (n - hits) * (least - fitted) ** 2
            variance += (w / n / (1 - leverage)) ** 2 * squares
        return sum(map(Decimal.__mul__, cells, shares), ZERO), variance

    def _categories(self, cell: int, width: int) -> list[Decimal]:
        """The row of each cell, and its column but for the last one, which follows."""
        row, column = divmod(cell, width)
        rows = [Decimal(row == place) for place in range(len(self.rows))]
        return rows + [Decimal(column == place) for place in range(width - 1)]
