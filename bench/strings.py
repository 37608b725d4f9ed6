"""Open strings: how many of the most frequent ones a list of a million candidates finds."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from scipy.stats import poisson

from .competitors import ROOT
from .table import Row, Table

#: n, epsilon, and the least share of the 50 most frequent strings that are to be found
SETTINGS = (
    *(("1e5", "1", None), ("1e5", "4", None), ("1e6", "1", None)),
    *(("1e6", "2", 0.40), ("1e6", "4", 0.95), ("1e7", "2", 0.95)),
)
QUICK = (("1e6", "2", 0.40), ("1e6", "4", 0.95))
SEEDS, QUICK_SEEDS = 20, 3
SECONDS, MEGABYTES = 2, 400
FALSE, ALPHA = 0.5, 0.01  # expected; how often a run may be beyond

COLUMNS = {
    "n": "",
    "eps": "",
    "@10": ".2f",
    "@50": ".2f",
    "@100": ".2f",
    "found": ".1f",
    "false": ".2f",
    "hash s": ".2f",
    "decode s": ".2f",
    "start MB": ".0f",
    "MB": ".0f",
    "target": "",
    "met": "",
}
NOTES = (
    "60,000 strings, the i-th with a probability proportional to 1 / i; a sampled report a device;",
    "  a million candidates, 940,000 of which nobody has. @10: share of the ten most frequent that",
    "  are found; false: strings found that nobody has; averaged over the seeds. CPU time: hash,",
    "  of all candidates; decode, of both halves with the search. MB: peak memory of the search,",
    "  start MB: with numpy, scipy and the candidates.",
)


def run(*, quick: bool) -> Table:
    """Search in the reports of each setting."""
    settings, seeds = (QUICK, QUICK_SEEDS) if quick else (SETTINGS, SEEDS)
    rows = [_measure(n, epsilon, least, seeds) for n, epsilon, least in settings]
    return Table(f"strings: candidates among open strings, {seeds} seeds", COLUMNS, rows, NOTES)


def _measure(n: str, epsilon: str, least: float | None, seeds: int) -> Row:
    command = [sys.executable, "-m", "bench.strings_worker", n, epsilon, str(seeds)]
    ran = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    found: dict[str, Any] = json.loads(ran.stdout)
    row = {"n": n, "eps": epsilon, **found}
    if least is not None:
        row["target"] = f"@50 >= {least:.2f}, false <= {FALSE}, {SECONDS} s, {MEGABYTES} MB"
        row["met"] = (
            found["@50"] >= least
            and found["false"] * seeds <= poisson.isf(ALPHA, FALSE * seeds)
            and found["hash s"] + found["decode s"] < SECONDS
            and found["MB"] < MEGABYTES
        )
    return row
