"""The cover reports of a shuffler among counters of messages: what they add, and how it varies.

They depend on no person, and the distribution of one is known. So what is linear in the counters is
taken of them less the covers' expectation. Of what one report weighs, the persons' and the covers'
sums are independent, and the variance of both together is estimated without knowing them apart:
the sum of all squares, less the covers' squared mean as often as there are covers, less the
persons'.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .confidence_intervals import Counts, Floats


@dataclass(frozen=True, slots=True, eq=False)
class CoverReports:
    """How many covers there are, and how likely one is of each message."""

    count: int
    chances: Floats

    def persons(self, counters: Counts) -> Floats:
        """Return the counters less those that covers have on average."""
        return counters - self.count * self.chances

    def variance(self, weights: Floats) -> Floats:
        """Return the variance of the covers' weights, summed over all covers."""
        if not self.count:
            return np.zeros(len(weights))
        squares: Floats = self.count * (weights**2 @ self.chances)
        return squares - self.squared_means(weights)

    def squared_means(self, weights: Floats) -> Floats:
        """Return the squared expectation of one cover's weight, summed over all covers."""
        if not self.count:
            return np.zeros(len(weights))
        means: Floats = weights @ self.chances
        return self.count * means**2


NO_COVERS = CoverReports(0, np.zeros(1))
