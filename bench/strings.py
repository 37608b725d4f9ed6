"""Open strings: how many of the most frequent ones are found, by a list and letter by letter."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
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

#: without candidates: n, epsilon, and the least share of the first so many that is to be found
DISCOVERED = (("1e6", "2", "@10", 0.85), ("1e6", "4", "@50", 0.55))

COLUMNS = {
    "n": "",
    "eps": "",
    "by": "",
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
    "  start MB: with numpy, scipy and the candidates. by letters: without candidates, of 60,000",
    "  words of Python files, with no dictionary or with one that has half of them.",
)


def run(*, quick: bool) -> Table:
    """Search in the reports of each setting."""
    settings, seeds = (QUICK, QUICK_SEEDS) if quick else (SETTINGS, SEEDS)
    rows = [_measure(n, epsilon, least, seeds) for n, epsilon, least in settings]
    letters = [
        row
        for n, epsilon, at, least in DISCOVERED
        for row in _discover(n, epsilon, at, least, seeds)
    ]
    title = f"strings: what is found among open strings, {seeds} seeds"
    return Table(title, COLUMNS, [*rows, *letters], NOTES)


def _measure(n: str, epsilon: str, least: float | None, seeds: int) -> Row:
    command = [sys.executable, "-m", "bench.strings_worker", n, epsilon, str(seeds)]
    ran = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    found: dict[str, Any] = json.loads(ran.stdout)
    row = {"n": n, "eps": epsilon, "by": "list", **found}
    if least is not None:
        row["target"] = f"@50 >= {least:.2f}, false <= {FALSE}, {SECONDS} s, {MEGABYTES} MB"
        row["met"] = bool(
            found["@50"] >= least
            and found["false"] * seeds <= poisson.isf(ALPHA, FALSE * seeds)
            and found["hash s"] + found["decode s"] < SECONDS
            and found["MB"] < MEGABYTES
        )
    return row


def _discover(n: str, epsilon: str, at: str, least: float, seeds: int) -> Iterator[Row]:
    command = [sys.executable, "-m", "bench.discovery_worker", n, epsilon, str(seeds)]
    ran = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    for line in ran.stdout.splitlines():
        found: dict[str, Any] = json.loads(line)
        dictionary = found.pop("dictionary")
        row = {"n": n, "eps": epsilon, "by": f"letters, dictionary: {dictionary}", **found}
        if dictionary != "none":
            row["target"] = f"{at} >= {least:.2f}, false <= {FALSE}"
            most = poisson.isf(ALPHA, FALSE * seeds)
            row["met"] = found[at] >= least and bool(found["false"] * seeds <= most)
        yield row
