"""The exact distribution of the two counts that tell two values apart among covers.

A server that knows every report but one sees that report among m covers. Where the messages of the
two values are disjoint, all that depends on the value is how many of the m + 1 reports are of the
first value's messages, N_x, and of the second's, N_x'. With the ratio E of the mechanism, and n
uniform messages for n = m + 1, a batch of (N_x, N_x') is under the first value

    (n + (E - 1) N_x) / (n (E own + 1 - own))

times as likely as under n uniform messages; alike for the second. So the privacy loss of a batch is
log (n + (E - 1) N_x) / (n + (E - 1) N_x'), exactly, for any number of other values. The pair is
symmetric: exchanging the values changes the sign of the loss.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import exp, lgamma, log, sqrt

import numpy as np
from numpy.typing import NDArray

from veilcount_shared.composition import Overlap

REACH = 10  # standard deviations of a count that are summed,
MARGIN = 40  # and steps further; what lies outside has
TAIL = 1e-20  # at most this probability, by Bernstein's inequality
ROUNDING = 1e-8  # far above the relative error of a probability in logarithms
MOST_OUTCOMES = 1 << 20  # pairs of counts, or covers; of more, the blanket's grid is as good

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class CountPair:
    """The privacy loss of each outcome, and its probability under the first value."""

    losses: Floats
    probabilities: Floats
    lost: float  # the probability of what was not summed

    @classmethod
    def from_overlap(cls, overlap: Overlap, covers: int) -> CountPair:
        """Return the outcomes of one report among covers. Exactness ends here."""
        n, own, gain = covers + 1, float(overlap.own), float(overlap.ratio) - 1
        first, second = _outcomes(n, own)
        one, two = n + gain * first, n + gain * second
        uniform = np.exp(_log_trinomial(n, own, first, second))
        probabilities = uniform * one / (n * (1 + gain * own)) * (1 + ROUNDING)
        return cls(np.log(one / two), probabilities, 2 * TAIL * (gain + 1))

    def delta(self, epsilon: float) -> float:
        """Return delta at this epsilon."""
        excess = -np.expm1(np.minimum(epsilon - self.losses, 0))
        return float(self.probabilities @ excess) + self.lost


def exact_overlap(overlaps: Sequence[Overlap], covers: int) -> Overlap | None:
    """Return the overlap whose outcomes can all be summed; None: not disjoint, or too many."""
    only = overlaps[0]
    if len(overlaps) > 1 or only.own != only.alone or covers >= MOST_OUTCOMES:
        return None
    totals, offsets = _extent(covers + 1, float(only.own))
    return only if len(totals) * len(offsets) <= MOST_OUTCOMES else None


def _extent(n: int, own: float) -> tuple[Ints, Ints]:
    """Return the sums N_x + N_x' to look at, and the distances of N_x from half of the sum."""
    mean, spread = 2 * own * n, sqrt(max(2 * own * n * (1 - 2 * own), 0))
    width = REACH * spread + MARGIN
    totals = np.arange(max(0, int(mean - width)), min(n, int(mean + width) + 1) + 1)
    if 2 * own >= 1:
        totals = totals[-1:]  # every message is of one of the two values
    reach = int(REACH * sqrt(float(totals[-1])) / 2) + MARGIN
    return totals, np.arange(-reach, reach + 1)


def _outcomes(n: int, own: float) -> tuple[Ints, Ints]:
    totals, offsets = _extent(n, own)
    first = totals[:, np.newaxis] // 2 + offsets
    second = totals[:, np.newaxis] - first
    possible = (first >= 0) & (second >= 0)
    return first[possible], second[possible]


def _log_trinomial(n: int, own: float, first: Ints, second: Ints) -> Floats:
    """Return the logarithm of the probability of two counts among n uniform messages."""
    neither = n - first - second
    factorials = _log_factorials(1 << n.bit_length())
    ways = factorials[n] - factorials[first] - factorials[second] - factorials[neither]
    remaining = max(1 - 2 * own, exp(-700))
    result: Floats = ways + (first + second) * log(own) + neither * log(remaining)
    return result


@lru_cache(maxsize=4)
def _log_factorials(size: int) -> Floats:
    return np.fromiter(map(lgamma, range(1, size + 2)), np.float64, size + 1)
