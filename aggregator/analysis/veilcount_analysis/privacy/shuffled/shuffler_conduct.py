"""What canaries prove of a shuffler's conduct: whether it keeps the order, and what it drops.

Of a right shuffler every order of the canaries in a batch is equally likely, whatever the order in
which they were sent. Against this stand shufflers that keep the order more or less well: a pair of
canaries is inverted less often [Mallows 1957], or nearly always. The evidence is the likelihood of
their mixture over that of all orders alike, multiplied over batches. It is at least 100 for one
right shuffler of 100, however often and whenever one looks [Ville 1939]: no look is planned.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

ALPHA = 0.01
CONFIDENCE = 0.95
#: probability ratios of a pair that is inverted to one that is not: order nearly kept, and blurred
RATIOS = (0.5, 0.85)
#: of the pairs, what a coarse order inverts: in blocks of 6 hours of a day an eighth on average; so
#: it is found in the stated number of batches with probability .95 and more
COARSE = 1 / 5
MOST_BATCHES = 1000


@dataclass(frozen=True, slots=True)
class CanaryOrder:
    """How many canaries came in some batches, in how many pairs, and how many are inverted."""

    log_likelihoods: tuple[float, ...] = (0.0,) * len(RATIOS)  # of no inversion, per ratio
    pairs: int = 0
    inversions: int = 0
    batches: int = 0

    @classmethod
    def from_batches(cls, batches: Iterable[Sequence[int]]) -> CanaryOrder:
        """Count the positions of each batch's canaries, which stand in the order of sending."""
        order = cls()
        for positions in batches:
            order = order.with_batch(len(positions), count_inversions(positions))
        return order

    def with_batch(self, canaries: int, inversions: int) -> CanaryOrder:
        """Return the order of one batch more; of fewer than two canaries it says nothing."""
        if canaries < 2:  # noqa: PLR2004 - a pair
            return self
        terms = zip(self.log_likelihoods, RATIOS, strict=True)
        return CanaryOrder(
            tuple(term + _log_likelihood(canaries, ratio) for term, ratio in terms),
            self.pairs + canaries * (canaries - 1) // 2,
            self.inversions + inversions,
            self.batches + 1,
        )

    @property
    def log_evidence(self) -> float:
        """The logarithm of the evidence that the order is kept, or reversed."""
        terms = [
            term + inversions * math.log(ratio)
            for inversions in (self.inversions, self.pairs - self.inversions)
            for term, ratio in zip(self.log_likelihoods, RATIOS, strict=True)
        ]
        return float(np.logaddexp.reduce(terms)) - math.log(len(terms))

    @property
    def is_kept(self) -> bool:
        """Whether the order shows; of a right shuffler with probability ALPHA at most, ever."""
        return self.log_evidence >= -math.log(ALPHA)


def count_inversions(positions: Sequence[int]) -> int:
    """Count the pairs of which the later one stands before the earlier one."""
    places = np.asarray(positions, np.int64)
    return sum(
        int(np.count_nonzero(places[number + 1 :] < place)) for number, place in enumerate(places)
    )


def batches_needed(canaries: int) -> int | None:
    """Return how many batches of so many canaries show a coarse order; None: no number does."""
    pairs, order = canaries * (canaries - 1) // 2, CanaryOrder()
    for number in range(1, MOST_BATCHES + 1):
        inversions = math.ceil(COARSE * pairs * number) - order.inversions
        order = order.with_batch(canaries, inversions)
        if order.is_kept:
            return number
    return None


def most_dropped(canaries: int) -> float:
    """Bound the share of reports that was dropped, if none of so many canaries was."""
    return 1.0 if canaries == 0 else 1 - (1 - CONFIDENCE) ** (1 / canaries)


def drop_power(canaries: int, share: float) -> float:
    """Return with which probability at least one canary shows that a share is dropped."""
    return 1 - (1 - share) ** canaries


def _log_likelihood(canaries: int, ratio: float) -> float:
    """Return the log-likelihood of the order without an inversion, over that of all alike."""
    return sum(
        math.log(place * (1 - ratio) / (1 - ratio**place)) for place in range(1, canaries + 1)
    )
