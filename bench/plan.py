"""How good the planner's choices are, over the whole grid that it is meant for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from statistics import median

from veilcount_shared.epsilon import exp_lower
from veilcount_shared.mechanisms import Selection, select_mechanism
from veilcount_shared.mechanisms.selection import _orders, _select

from .stopwatch import timed
from .table import Row, Table, figure
from .variance import optimum, supported

STEP = Fraction(1, 20)
STEPS = 160  # from 0.05 to 8
QUICK = 8  # every eighth epsilon
LARGEST = 100_000
LOG_SPACED = 40
#: round ones, those around powers of two, and those around the number of points of a plane
SPECIAL = (
    *(2, 3, 4, 5, 10, 16, 20, 50, 64, 100, 200, 255, 256, 257, 300, 500, 700),
    *(1000, 1023, 1024, 1025, 1365, 1366, 1500, 2000, 3000, 4096, 5000, 10_000, 20_000),
    *(21_845, 21_846, 32_768, 40_000, 65_535, 65_536, 65_537, 87_381, 87_382, LARGEST),
)
LONGER = (200_000, 500_000, 1_000_000)  # planned as well, but nothing is promised there
WORST = 1.035
AGREE = 1e-9

#: (k, epsilon, greatest ratio, most bits): where the best peers were measured
PROMISED = (
    (2, 1, 1.0, 1),
    (64, 1, 1.0, 64),
    (1024, 1, 1.01, 13),
    (1024, 4, 1.02, 256),  # no length was promised: the limit of a short subset
    (65536, 1, 1.01, 17),
    (1_000_000, 1, 1.04, 22),
)
NOTES = (
    "ratio: variance at the uniform distribution to the Ye-Barg optimum.",
    "ms: CPU time; the first plan of a process that meets q = 256 makes its table, once.",
)


@dataclass(frozen=True)
class Point:
    """One plan of the grid."""

    k: int
    epsilon: Fraction
    plan: Selection
    milliseconds: float

    @property
    def where(self) -> str:
        """The point in words."""
        return (
            f"k={self.k} eps={float(self.epsilon):g} {type(self.plan.mechanism).__name__.lower()}"
        )

    @property
    def disagreement(self) -> float:
        """How far the planner's ratio is from that of the P and Q which devices get."""
        mechanism = self.plan.mechanism
        variance = supported(self.k, float(mechanism.P), float(mechanism.Q))
        return abs(variance / optimum(self.k, float(self.epsilon)) / self.plan.ratio - 1)


def run(*, quick: bool) -> Table:
    """Plan every point of the grid."""
    _orders()  # once in a process
    step = QUICK if quick else 1
    epsilons = [count * STEP for count in range(step, STEPS + 1, step)]
    grid = [_point(k, epsilon) for k in sizes() for epsilon in epsilons]
    longer = [_point(k, epsilon) for k in LONGER for epsilon in epsilons]
    rows = [*_accuracy(grid), *_accuracy_of_longer_lists(longer), *_promised(), *_time(grid)]
    title = f"plan: {len(grid)} plans, {len(sizes())} sizes k up to {LARGEST}, eps up to 8"
    return Table(title, rows, NOTES, digits=5)


def sizes() -> list[int]:
    """Return the sizes, ascending."""
    spaced = (2 * (LARGEST / 2) ** (step / (LOG_SPACED - 1)) for step in range(LOG_SPACED))
    return sorted({*map(round, spaced), *SPECIAL})


def _point(k: int, epsilon: Fraction) -> Point:
    """Plan as a process does that has never seen this k and epsilon."""
    _select.cache_clear()
    exp_lower.cache_clear()
    us, selection = timed(select_mechanism, k, epsilon)
    return Point(k, epsilon, selection, us / 1e3)


def _accuracy(grid: list[Point]) -> Iterator[Row]:
    worst = max(grid, key=lambda point: point.plan.ratio)
    yield figure("worst ratio", worst.plan.ratio, worst.where, WORST)
    for ratio in (1.0, 1.01, 1.02):
        share = sum(point.plan.ratio <= ratio for point in grid) / len(grid)
        yield figure(f"% of plans with ratio <= {ratio:g}", 100 * share)
    apart = max(grid, key=lambda point: point.disagreement)
    yield figure(
        "ratio, planner's apart from that of P and Q", apart.disagreement, apart.where, AGREE
    )
    longest = max(grid, key=lambda point: point.plan.bits)
    yield figure("longest message, bits", longest.plan.bits, longest.where)


def _accuracy_of_longer_lists(grid: list[Point]) -> Iterator[Row]:
    worst = max(grid, key=lambda point: point.plan.ratio)
    yield figure("worst ratio, larger k", worst.plan.ratio, worst.where)
    share = sum(point.plan.ratio <= WORST for point in grid) / len(grid)
    yield figure(f"% with ratio <= {WORST}, larger k", 100 * share)


def _promised() -> Iterator[Row]:
    for k, epsilon, ratio, bits in PROMISED:
        made = select_mechanism(k, epsilon)
        yield {
            "what": f"ratio, {made.bits}-bit message",
            "value": made.ratio,
            "where": Point(k, Fraction(epsilon), made, 0).where,
            "target": f"<= {ratio:g}, {bits}-bit",
            "met": made.ratio <= ratio and made.bits <= bits,
        }


def _time(grid: list[Point]) -> Iterator[Row]:
    yield figure("ms a plan, median", median(point.milliseconds for point in grid))
    slowest = max(grid, key=lambda point: point.milliseconds)
    yield figure("ms a plan, slowest", slowest.milliseconds, slowest.where)
