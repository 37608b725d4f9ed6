"""Every kind of figure at three n: error, width and coverage, and what they were before.

`before` is what the same code measured at an earlier revision, from the same seeds: see BEFORE.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import chain
from pathlib import Path

from .figures_central import central_releases
from .figures_compare import differences
from .figures_cost import costs
from .figures_groups import grouped_shares
from .figures_means import range_means
from .figures_strings import string_candidates
from .figures_tables import split_cells, table_cells
from .figures_trend import moment_variances, trend_shares
from .measured_figures import FIGURES, Item, Measured, cells
from .table import Cell, Row, Table

#: a line for each item: a function of the number of rounds, in a module of its own
ITEMS: tuple[Item, ...] = (
    *(differences, range_means, string_candidates),
    *(trend_shares, moment_variances, central_releases, costs),
    *(grouped_shares, table_cells, split_cells),
)
ROUNDS, FEW = 1_000, 100
#: rows of `./dev bench figures --json` at the revision before the estimators changed
BEFORE = Path(__file__).parent / "history" / "2026-11-28-figures-before.json"
TARGET = "coverage >= .92 of .95"
LEAST = 0.92  # 4 errors below .95, of 1,000 intervals
MOST_MS = 60  # that a figure adds to a page

NOTES = (
    "Before and now from the same seeds. error: the root of the mean square; width: of the",
    "  intervals at 95 %, on average; coverage: how many hold the truth. found: of differences of",
    "  the size that a comparison says it sees 4 times in 5, or of strings that are there.",
    "ms: CPU of one call on a page, the median of 5 on reports of their own.",
)


def run(*, quick: bool) -> Table:
    """Measure every item, in minutes."""
    earlier = _earlier()
    measured = chain.from_iterable(item(FEW if quick else ROUNDS) for item in ITEMS)
    rows = [_row(row, earlier.get((row.item, row.n), {})) for row in measured]
    return Table("figures: before and now", rows, NOTES, digits=3)


def _earlier() -> dict[tuple[str, int], Mapping[str, float]]:
    if not BEFORE.exists():
        return {}
    rows = json.loads(BEFORE.read_text())["figures"]
    return {(row["item"], row["n"]): row for row in rows}


def _row(row: Measured, earlier: Mapping[str, float]) -> Row:
    now = dict(cells(row))
    before = {f"{name} before": earlier[name] for name in FIGURES if name in earlier}
    figures = {name: (before | now).get(name) for name in _columns()}
    judged: dict[str, Cell] = {}
    if row.coverage is not None:
        judged = {"target": TARGET, "met": row.coverage >= LEAST}
    if row.ms is not None:
        judged = {"target": f"<= {MOST_MS} ms", "met": row.ms <= MOST_MS}
    return {"item": row.item, "n": row.n, **figures, **judged}


def _columns() -> list[str]:
    return [name for figure in FIGURES for name in (f"{figure} before", figure)]
