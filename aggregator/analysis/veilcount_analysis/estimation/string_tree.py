"""Strings that nobody named: found letter by letter, from parts that report their beginnings.

Part after part the beginnings found so far are extended by all letters, and kept where the next
part holds them above noise. Each beginning has its own probability of passing by chance: a share of
what the part may find by chance, larger for a likely beginning. So a dictionary helps, and what it
does not have is still found.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ..scipy_modules import special
from .confidence_intervals import Counts, Floats
from .letter_model import END, LETTERS, LetterModel, first_possible

KEPT = 300  # beginnings that go on to the next part
EARLY = 0.1 * KEPT  # expected to pass by chance before the last part
MOST_LIKELY = 0.02  # probability of passing by chance
EXTENDED = 400_000  # the likeliest extensions of a part

#: the scores of beginnings of a length, in a part: standard errors above noise
Scores = Callable[[int, Sequence[str]], Floats]


@dataclass(frozen=True, slots=True, eq=False)
class Beginnings:
    """Beginnings of strings, each with the logarithm of its probability; END ends a whole one."""

    texts: list[str]
    likely: Floats

    def extended(self, letters: int, model: LetterModel) -> Beginnings:
        """Return what follows by so many letters; what has ended stays as it is."""
        beginnings = self
        for _ in range(letters):
            beginnings = beginnings._by_one(model)
        return beginnings

    def _by_one(self, model: LetterModel) -> Beginnings:
        texts: list[str] = []
        likely: list[Floats] = []
        for text, before in zip(self.texts, self.likely.tolist(), strict=True):
            if text.endswith(END):
                texts.append(text)
                likely.append(np.array([before]))
                continue
            first = first_possible(text)
            texts.extend(text + letter for letter in LETTERS[first:])
            likely.append(before + np.log(model.next_letter(text)[first:]))
        return Beginnings(texts, np.concatenate(likely)).likeliest(EXTENDED)

    def likeliest(self, most: int) -> Beginnings:
        """Return at most so many, the likeliest."""
        if len(self.texts) <= most:
            return self
        return self.rows(np.argpartition(-self.likely, most)[:most])

    def rows(self, chosen: Counts) -> Beginnings:
        """Return some of them."""
        return Beginnings([self.texts[place] for place in chosen.tolist()], self.likely[chosen])


def discover(
    lengths: Sequence[int], scores: Scores, model: LetterModel, expected: float
) -> list[str]:
    """Return the strings found, the highest score first; by chance alone `expected` at most."""
    beginnings, before = Beginnings([""], np.zeros(1)), 0
    for part, length in enumerate(lengths):
        beginnings = beginnings.extended(length - before, model)
        texts = [text.removesuffix(END) for text in beginnings.texts]
        allowed = expected if length == lengths[-1] else EARLY
        shares = np.exp(beginnings.likely - special.logsumexp(beginnings.likely))
        needed = -special.ndtri(np.minimum(MOST_LIKELY, allowed * shares))
        part_scores = scores(part, texts)
        passed = np.flatnonzero(part_scores > needed)
        if not len(passed):
            return []
        order = np.argsort(-part_scores[passed] / needed[passed], kind="stable")
        beginnings, before = beginnings.rows(passed[order][:KEPT]), length
    return [text.removesuffix(END) for text in beginnings.texts if not text.endswith(" ")]
