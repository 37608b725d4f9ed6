"""Strings found without candidates at one n and epsilon: prints a line of JSON.

The strings are words of the Python files of this machine: a vocabulary with the letters of one.
"""

from __future__ import annotations

import json
import re
import sys
import sysconfig
from collections import Counter
from fractions import Fraction
from functools import cache
from pathlib import Path
from time import process_time

import numpy as np
from numpy.typing import NDArray

from veilcount_analysis.mechanisms.candidate_search import discovered
from veilcount_analysis.simulation.string_search import draw_beginnings
from veilcount_shared.domain import PREFIX_BITS, PREFIXES, OpenStrings

from .strings_worker import STRINGS, collection_of

DOMAIN = OpenStrings("bench", PREFIX_BITS, PREFIXES)
FILES, CHARACTERS = 6_000, 60_000
EXPECTED = 0.25  # strings found by chance
COMMON = 2_000  # strings beyond which a find is counted as false


def main() -> None:
    """Discover strings in the reports of n devices, with and without a dictionary."""
    n, epsilon, seeds = int(float(sys.argv[1])), Fraction(sys.argv[2]), int(sys.argv[3])
    dictionaries: tuple[list[str], ...] = ([], vocabulary()[::2])
    every = []
    for seed in range(seeds):
        words, counters = reported(n, epsilon, seed)
        for dictionary in dictionaries:
            begin = process_time()
            found = discovered(collection_of(DOMAIN, epsilon), counters, dictionary, EXPECTED).texts
            seconds = process_time() - begin
            recall = [np.isin(words[:top], found).mean() for top in (10, 50)]
            false = len(set(found) - set(words[:COMMON]))
            every.append([*recall, len(found), false, seconds])
    names = ("@10", "@50", "found", "false", "decode s")
    for first, name in enumerate(("none", "half of the strings")):
        means = np.mean(every[first::2], axis=0).tolist()
        print(json.dumps({"dictionary": name} | dict(zip(names, means, strict=True))))


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


def reported(n: int, epsilon: Fraction, seed: int) -> tuple[list[str], NDArray[np.int64]]:
    """Return strings, the most frequent first, and the counters of n sampled reports of them."""
    generator = np.random.default_rng(seed)
    words = [vocabulary()[place] for place in generator.permutation(len(vocabulary()))]
    weights = 1 / np.arange(1, len(words) + 1)
    devices = generator.multinomial(n, weights / weights.sum())
    return words, draw_beginnings(collection_of(DOMAIN, epsilon), words, devices, generator)


if __name__ == "__main__":
    main()
