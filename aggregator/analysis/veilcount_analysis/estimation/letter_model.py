"""How likely a string continues with each letter: four letters at a time, learnt from a dictionary.

Without a dictionary every letter is as likely as any other.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

import numpy as np

from .confidence_intervals import Floats

END = "\n"  # after a whole string: no string holds it
LETTERS = f"{END} abcdefghijklmnopqrstuvwxyz0123456789-_./"
ORDER = 3  # letters before the next one
BEGIN = "\t" * ORDER
EVIDENCE = 8  # times a context is seen until it counts as much as the next shorter one


def first_possible(text: str) -> int:
    """Return the place of the first letter that may follow: none begins or ends with a space."""
    if not text:
        return 2
    return int(text.endswith(" "))


class LetterModel:
    """The probabilities of the next letter, by the letters before it."""

    def __init__(self, dictionary: Iterable[str] = ()) -> None:
        """Count the letters of a dictionary; those that are no letters here are skipped."""
        self._counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._cache: dict[str, Floats] = {}
        for text in dictionary:
            padded = BEGIN + text.lower() + END
            for place in range(ORDER, len(padded)):
                for length in range(ORDER + 1):
                    self._counts[padded[place - length : place]][padded[place]] += 1

    def next_letter(self, text: str) -> Floats:
        """Return the probability of each of the letters after a beginning."""
        context = (BEGIN + text)[-ORDER:]
        if context not in self._cache:
            self._cache[context] = self._mixed(context)
        return self._cache[context]

    def _mixed(self, context: str) -> Floats:
        """Mix the contexts of all lengths, the longer ones by how often they were seen."""
        frequencies = np.full(len(LETTERS), 1 / len(LETTERS))
        for length in range(ORDER + 1):
            counts = self._counts.get(context[ORDER - length :])
            if counts is None:
                break
            seen = np.array([counts[letter] for letter in LETTERS], np.float64)
            whole = seen.sum()
            if whole:
                trust = whole / (whole + EVIDENCE)
                frequencies = trust * seen / whole + (1 - trust) * frequencies
        return frequencies
