"""Open strings: how many of the most frequent ones are found, by a list and letter by letter."""

from __future__ import annotations

import re
import sysconfig
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from tests.processes import forget_peak, peak_megabytes

from veilcount_analysis.estimation.find_budget import chance_of_first
from veilcount_analysis.mechanisms.candidate_search import Candidates, discovered, found_places
from veilcount_analysis.scipy_modules import stats  # not in the process that is measured
from veilcount_analysis.simulation import Population, simulate
from veilcount_analysis.simulation.string_search import draw_beginnings
from veilcount_serving.malloc import return_large_arrays
from veilcount_shared.domain import PREFIX_BITS, PREFIXES, OpenStrings

from . import separate
from .definitions import ask
from .stopwatch import timed
from .table import Row, Table

#: n, epsilon, and the least share of the 50 most frequent strings that are to be found
SETTINGS = (
    *((10**5, 1, None), (10**5, 4, None), (10**6, 1, None)),
    *((10**6, 2, 0.40), (10**6, 4, 0.95), (10**7, 2, 0.95)),
)
QUICK = ((10**6, 2, 0.40), (10**6, 4, 0.95))
SEEDS, QUICK_SEEDS = 20, 3
SECONDS, MEGABYTES = 2, {2: 260, 4: 240}  # by epsilon
FALSE, ALPHA = 0.5, 0.01  # expected; how often a run may be beyond
#: without candidates: n, epsilon, and the least share of the first so many that is to be found
DISCOVERED = ((10**6, 2, "@10", 0.85), (10**6, 4, "@50", 0.55))

STRINGS = 60_000  # that devices have: the i-th with a probability proportional to 1 / i
CANDIDATES = 1_000_000
LISTED = OpenStrings("bench")
LETTERS = OpenStrings("bench", PREFIX_BITS, PREFIXES)
FILES, CHARACTERS = 6_000, 60_000
EXPECTED = 0.25  # strings found by chance
COMMON = 2_000  # strings beyond which a find is counted as false

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
    rows = [_listed(n, epsilon, least, seeds) for n, epsilon, least in settings]
    rows += [
        _discovered(n, epsilon, at, least if dictionary else None, seeds)
        for n, epsilon, at, least in DISCOVERED
        for dictionary in (False, True)
    ]
    title = f"strings: what is found among open strings, {seeds} seeds"
    return Table(title, rows, NOTES)


def _listed(n: int, epsilon: int, least: float | None, seeds: int) -> Row:
    row = {"n": n, "eps": epsilon, "by": "list", **separate.run(search, n, epsilon, seeds)}
    if least is None:
        return row
    most = MEGABYTES[epsilon]
    met = row["hash s"] + row["decode s"] < SECONDS and row["MB"] < most
    met = met and row["@50"] >= least and _few_false(row["false"], seeds)
    target = f"@50 >= {least:.2f}, false <= {FALSE}, {SECONDS} s, {most} MB"
    return {**row, "target": target, "met": met}


def _discovered(n: int, epsilon: int, at: str, least: float | None, seeds: int) -> Row:
    words = "none" if least is None else "half of the strings"
    figures = separate.run(discover, n, epsilon, seeds, least is not None)
    row = {"n": n, "eps": epsilon, "by": f"letters, dictionary: {words}", **figures}
    if least is None:
        return row
    met = row[at] >= least and _few_false(row["false"], seeds)
    return {**row, "target": f"{at} >= {least:.2f}, false <= {FALSE}", "met": met}


def _few_false(mean: float, seeds: int) -> bool:
    return bool(mean * seeds <= stats.poisson.isf(ALPHA, FALSE * seeds))


# -- each in a process of its own ------------------------------------------------------------------


def search(n: int, epsilon: int, seeds: int) -> dict[str, Any]:
    """Search a million candidates in the reports of n devices, once for each seed."""
    return_large_arrays()  # as a process of the pool does
    collection, texts = ask(LISTED, epsilon), (f"word {place}" for place in range(CANDIDATES))
    hashed, candidates = timed(Candidates.from_texts, LISTED, texts)
    alpha = chance_of_first(CANDIDATES)
    rounds, searched, start = [], [], peak_megabytes()
    for seed in range(seeds):
        generator = np.random.default_rng(seed)
        popular = generator.permutation(CANDIDATES)[:STRINGS].copy()
        people = Population(candidates.places[popular], _devices(n, STRINGS, generator))
        counters = simulate(collection, people, generator)
        forget_peak()  # that of the simulation is none of a search
        us, finds = timed(found_places, collection, counters, candidates, alpha)
        searched.append(us)
        recall = [np.isin(popular[:top], finds).mean() for top in (10, 50, 100)]
        rounds.append([*recall, len(finds), np.count_nonzero(~np.isin(finds, popular))])
    return _means(("@10", "@50", "@100", "found", "false"), rounds) | {
        "hash s": hashed / 1e6,
        "decode s": float(np.median(searched)) / 1e6,
        "start MB": start,
        "MB": peak_megabytes(),
    }


def discover(n: int, epsilon: int, seeds: int, dictionary: bool) -> dict[str, Any]:  # noqa: FBT001 - from JSON
    """Discover strings in the reports of n devices, without or with a dictionary of half of them.

    The strings are words of the Python files of this machine: a vocabulary with the letters of one.
    """
    collection, words = ask(LETTERS, epsilon), vocabulary()
    rounds = []
    for seed in range(seeds):
        generator = np.random.default_rng(seed)
        popular = [words[place] for place in generator.permutation(len(words))]
        devices = _devices(n, len(popular), generator)
        counters = draw_beginnings(collection, popular, devices, generator)
        listed = words[::2] if dictionary else []
        us, result = timed(discovered, collection, counters, listed, EXPECTED)
        recall = [np.isin(popular[:top], result.texts).mean() for top in (10, 50)]
        false = len(set(result.texts) - set(popular[:COMMON]))
        rounds.append([*recall, len(result.texts), false, us / 1e6])
    return _means(("@10", "@50", "found", "false", "decode s"), rounds)


def _devices(n: int, strings: int, generator: np.random.Generator) -> Any:
    weights = 1 / np.arange(1, strings + 1)
    return generator.multinomial(n, weights / weights.sum())


def _means(names: tuple[str, ...], rounds: list[list[Any]]) -> dict[str, Any]:
    return dict(zip(names, np.mean(rounds, axis=0).tolist(), strict=True))


@cache
def vocabulary() -> list[str]:
    """Return the words of three to ten letters, the most frequent first."""
    counts: Counter[str] = Counter()
    folders = {sysconfig.get_paths()[name] for name in ("stdlib", "purelib")}
    files = sorted(path for folder in folders for path in Path(folder).rglob("*.py"))
    for path in files[:FILES]:
        text = path.read_text(encoding="utf-8", errors="ignore")[:CHARACTERS]
        counts.update(re.findall("[a-z]{3,10}", text.lower()))
    return [word for word, _ in counts.most_common(STRINGS)]
