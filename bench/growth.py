"""How every cost grows: what is done for n times as much costs n times as much, and no more.

Each size is measured in a process of its own, so that no cache hides a cost.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from . import growth_costs as costs
from . import separate
from .growth_fit import MOST, WIDEST, Growth
from .table import Row, Table

NOTES = (
    "CPU microseconds of all n together, the least of {} processes; exponent: of n with a fixed",
    "  cost, with its 95 % interval. n log n: whether a fixed cost, n and n log n fit as well; it",
    "  is what a sort, an index in a tree and a fast transform take, and is allowed there (*).",
)
A_DECADE, FEWEST, TIMES = 4, 10, 5


@dataclass(frozen=True, slots=True)
class Cost:
    """A cost and its sizes; whether its work has a logarithm in it."""

    name: str
    us: Callable[[int], float]
    least: int
    most: int
    has_log: bool = False

    def sizes(self, *, quick: bool) -> list[int]:
        """Return sizes in equal steps, half as many if quick, up to a tenth."""
        most, a_decade = (self.most // 10, A_DECADE / 2) if quick else (self.most, A_DECADE)
        steps = round(np.log10(most / self.least) * a_decade) + 1
        number = max(steps, 4 if quick else FEWEST)
        return sorted({round(size) for size in np.geomspace(self.least, most, number)})

    def row(self, *, quick: bool) -> Row:
        """Measure each size in turn, so that a machine that changes its pace changes all."""
        sizes = self.sizes(quick=quick)
        rounds = [[separate.run(self.us, n) for n in sizes] for _ in range(1 if quick else TIMES)]
        least = [min(turn) for turn in zip(*rounds, strict=True)]
        growth = Growth.fitted_to(sizes, least)
        return {
            "cost": self.name,
            "from": sizes[0],
            "to": sizes[-1],
            "first us": least[0],
            "last us": least[-1],
            "exponent": growth.exponent,
            "interval": f"{growth.low:.2f} to {growth.high:.2f}",
            "n log n": ("yes" if growth.is_log_linear else "no") + "*" * self.has_log,
            "target": f"<= {MOST:g}, {WIDEST:g} wide",
            "met": growth.is_met(has_log=self.has_log),
        }


def run(*, quick: bool) -> Table:
    """Measure each cost at each size, and fit."""
    rows = [cost.row(quick=quick) for cost in COSTS]
    notes = tuple(note.format(TIMES) for note in NOTES)
    return Table("growth: how every cost grows", rows, notes, digits=3)


COSTS = (
    Cost("a file of definitions, read", costs.parse, 4, 4_000),
    Cost("a store of definitions, opened", costs.catalog, 4, 4_000),
    Cost("each day of a store, estimated", costs.days, 3, 3_000),
    Cost("each cell of a store, estimated", costs.cells, 32, 32_000),
    Cost("rows of a period: as many commits on top", costs.commit, 1_000, 1_000_000, has_log=True),
    Cost("rows of a period: their deletion", costs.retention, 1_000, 1_000_000, has_log=True),
    Cost("a report to each collection of a group", costs.collections, 1, 1_000),
    Cost("32 reports to each shard of a cluster", costs.shards, 3, 96),
    Cost("a report of each person in a body", costs.reports, 1, 1_000),
    Cost("values, decoded", costs.values, 1_024, 1_000_000, has_log=True),
    Cost("a report of each person of one client", costs.persons, 3, 1_000, has_log=True),
    Cost("a report a day of one device", costs.life, 3, 1_000),
    Cost("waiting reports on a device", costs.waiting, 3, 10_000, has_log=True),
)
