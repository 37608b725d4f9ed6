"""What `veilcount simulate` prints of open strings: those that a search finds, and misses."""

from __future__ import annotations

from string import ascii_lowercase
from typing import Any

import click
import numpy as np
from numpy.random import Generator

from veilcount_analysis.mechanisms.candidate_search import Candidates, open_domain
from veilcount_analysis.simulation import SimulatedSearch, simulate_discovery, simulate_search
from veilcount_analysis.text import number_format
from veilcount_shared import Collection
from veilcount_shared.domain import OpenStrings

from .population_option import Devices, apportion, is_distribution, ranked_weights, typed_weights
from .simulation_table import SimulationOptions, SimulationTable

COLUMNS = ("value", "truth", "local", "interval")
SHORTEST, LONGEST = 4, 9  # letters of an invented word
HEADS = (10, 50)  # of the most frequent strings


def simulated_strings(
    collection: Collection, options: SimulationOptions, generator: Generator
) -> SimulationTable:
    """Search for candidates, some of which devices have; or for strings letter by letter."""
    candidates, devices = _population(collection, options, generator)
    run = simulate_discovery if discovers(collection) else simulate_search
    found = run(collection, candidates, devices, generator, options.level)
    order = np.argsort(-found.truth, kind="stable")
    rows = [_row(found, place) for place in order[: options.top].tolist()]
    heads = {head: int(found.found[order[:head]].sum()) for head in HEADS if head <= len(order)}
    search = {
        "strings": len(order),
        "candidates": found.candidates,
        "found": int(found.found.sum()),
        "false": found.false,
        "least_share": found.least_share,
        "most_frequent": {str(head): number for head, number in heads.items()},
    }
    return SimulationTable(
        facts={"values": rows, "search": search},
        columns=COLUMNS,
        rows=[_cells(row) for row in rows],
        closing=_closing(search),
    )


def discovers(collection: Collection) -> bool:
    """Whether strings are found letter by letter, without candidates."""
    return isinstance(collection.domain, OpenStrings) and bool(collection.domain.prefixes)


def _closing(search: dict[str, Any]) -> tuple[str, ...]:
    strings, heads = search["strings"], search["most_frequent"].items()
    found = f"{search['found']:,} of the {strings:,} strings that devices have"
    nobody = f"{search['false']:,}"
    if search["candidates"]:
        nobody += f" of {search['candidates'] - strings:,} candidates"
    least = number_format.share(search["least_share"])
    return (
        ", ".join(
            [f"found: {found}", *(f"{each} of the {head} most frequent" for head, each in heads)]
        ),
        f"found, but nobody has it: {nobody}",
        f"a string is found half of the time at {least}",
    )


def _population(
    collection: Collection, options: SimulationOptions, generator: Generator
) -> tuple[Candidates, Devices]:
    """Return candidates, and how many devices have each of the first; names are invented."""
    domain = open_domain(collection)
    if is_distribution(options.truth):
        texts, weights = [], ranked_weights(options.truth[0], options.strings)
    else:
        typed = dict(typed_weights(options.truth))
        texts, weights = list(typed), np.array(list(typed.values()))
    most = len(weights) if domain.prefixes else max(options.candidates, len(weights))
    if domain.prefixes and not texts:
        texts = _invented_words(most, generator)
    texts += [f"string {place}" for place in range(1, most - len(texts) + 1)]
    candidates = Candidates.from_texts(domain, texts)
    if len(candidates.texts) < most:
        fix = "give different strings, of 1 to 200 characters, none of them hidden"
        raise click.BadParameter(fix, param_hint="--truth")
    return candidates, apportion(options.n, weights)


def _invented_words(number: int, generator: Generator) -> list[str]:
    """Return so many different words of random letters: no dictionary knows them."""
    words: dict[str, None] = {}
    while len(words) < number:
        length = generator.integers(SHORTEST, LONGEST + 1)
        words["".join(generator.choice(list(ascii_lowercase), length))] = None
    return list(words)


def _row(found: SimulatedSearch, place: int) -> dict[str, Any]:
    ends = ("value", "low", "high")
    local = {name: float(getattr(found.local, name)[place]) for name in ends}
    return {
        "value": found.texts[place],
        "truth": float(found.truth[place]),
        "local": local if found.found[place] else None,
    }


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    truth, local = number_format.share(row["truth"]), row["local"]
    if local is None:
        return row["value"], truth, "not found", ""
    interval = number_format.interval(local["low"], local["high"], of_shares=True)
    return row["value"], truth, number_format.share(local["value"]), interval
