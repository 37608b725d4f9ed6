"""Poisoning: how far fake reports can move a figure, and a test for some of them [CJG21].

One fake report moves a share far more than an honest answer, since every report is scaled up to
undo the noise. So a small part of fakes moves every figure within a band, and no statistics narrows
it. The test detects messages that no honest population would send.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

import numpy as np

from .confidence_intervals import Counts, Ends, Floats, at_least

FAKES = Fraction(1, 100)
ALARM = 1e-6  # how often an honest population fails each of the two tests
PATIENT = (
    "No test tells patient fakes, whose messages are drawn as those of one answer are, from that"
    " answer being popular: only who may report at all can be limited."
)


@dataclass(frozen=True, slots=True, eq=False)
class PoisoningBand:
    """The range of the honest figures, if this share of the reports may be fake."""

    fakes: Fraction
    low: Floats
    high: Floats

    def sentence(self, place: int, *, percent: bool = True) -> str:
        """Return one figure's band in words."""
        unit, scale = (" %", 100) if percent else ("", 1)
        low, high = (f"{scale * float(end[place]):.4g}" for end in (self.low, self.high))
        share = f"{100 * float(self.fakes):.4g} %"
        return (
            f"{share} of fake reports could have moved this from anything in {low} to {high}{unit}"
        )


class Poisonable(Protocol):
    """Figures that fake reports can move."""

    def poisoned(self, fakes: float) -> Ends:
        """Return the range of the honest figures, if this share of the reports is fake."""


def poisoning_band(evidence: Poisonable, fakes: Fraction = FAKES) -> PoisoningBand:
    """Return how far a share of fake reports could have moved each figure, as it was estimated."""
    if not 0 <= fakes < 1:
        raise ValueError(f"fakes = {fakes}: give a share of the reports, below 1")
    return PoisoningBand(fakes, *evidence.poisoned(float(fakes)))


@dataclass(frozen=True, slots=True, eq=False)
class PoisoningTest:
    """The test for fake reports: messages that came too often, supporters of impossible values.

    `tested` is false for subsets of several inputs, whose counters keep no messages.
    """

    tested: bool
    messages: Counts
    values: Counts

    @property
    def failed(self) -> bool:
        """Whether the test failed: honest devices would hardly ever send this."""
        return bool(len(self.messages) or len(self.values))

    def __str__(self) -> str:
        if not self.tested:
            return f"These counters keep no messages, so none was tested. {PATIENT}"
        if not self.failed:
            return f"No message came more often than from any honest population. {PATIENT}"
        parts = []
        if len(self.messages):
            parts.append(
                f"{len(self.messages)} messages came more often than from any honest population"
            )
        if len(self.values):
            parts.append(f"{len(self.values)} values that nobody can choose are not at 0")
        return f"Fake or broken: {', and '.join(parts)}. {PATIENT}"


def frequent_messages(counters: Counts, messages: int, most: float) -> Counts:
    """Return the messages that came too often, if no device sends one with more than `most`."""
    n = int(counters.sum())
    return np.flatnonzero(counters >= _least_unlikely(n, most, ALARM / messages))


def nonzero_supports(supported: Counts, n: int, Q: float) -> Counts:
    """Return which of these supports are not those of a share of 0.

    Every honest report supports such a value with probability Q, so its support is binomial.
    """
    if not len(supported):
        return supported
    alpha = ALARM / (2 * len(supported))
    too_many, too_few = _least_unlikely(n, Q, alpha), n - _least_unlikely(n, 1 - Q, alpha)
    return np.flatnonzero((supported >= too_many) | (supported <= too_few))


def _least_unlikely(n: int, p: float, alpha: float) -> int:
    """Return the least count that Bin(n, p) reaches with less than alpha; n + 1 if there is none.

    Tails fall as counts grow, so one bisection serves all counts.
    """
    trials = np.array(n)
    return bisect_left(
        range(n + 1), True, key=lambda count: bool(at_least(np.array(count), trials, p) < alpha)
    )
