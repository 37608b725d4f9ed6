"""The batches that a shuffled collection is run in: what they reveal, and how far off they are."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, sqrt

from veilcount_shared import Collection
from veilcount_shared.mechanisms import Randomizer

from ...mechanisms import handler_of
from ..shuffled import cover_epsilon, honest_epsilon, shuffled_error
from .quantity import ErrorEstimate, Quantity, two_sided


@dataclass(frozen=True, slots=True)
class ShuffledRun:
    """One batch of a definition: its covers, and the promise that they keep by themselves."""

    mechanism: Randomizer
    covers: int
    epsilon: Fraction
    delta: Fraction
    width: float  # of the figure's unit
    honest: int | None  # of the reports, as the definition supposes; None: all that came

    @property
    def own(self) -> Fraction:
        """What a report reveals to shuffler and server together."""
        return self.mechanism.epsilon

    @property
    def covers_alone(self) -> Fraction:
        """What a batch reveals to the server, whoever else lies: at most what is promised."""
        return cover_epsilon(self.mechanism, self.covers, self.delta)

    def honest_of(self, n: int) -> int:
        """Return how many of n reports are supposed to be honest."""
        return min(n, self.honest or n)

    def among_honest(self, n: int) -> Fraction:
        """Return epsilon of a batch of n reports against the server if so many are honest."""
        return honest_epsilon(self.mechanism, self.honest_of(n), self.covers, self.delta)

    def error(self, n: int, level: float) -> ErrorEstimate:
        """Return the error of n reports, with what their covers add."""
        rmse = shuffled_error(self.mechanism, n, self.covers) * self.width
        return ErrorEstimate(rmse, two_sided(level) * rmse)

    def devices(self, rmse: float) -> int:
        """Return how many devices reach an error: V / n + C / n^2 is its square."""
        handler = handler_of(self.mechanism)
        own, added = handler.noise_variance(), self.covers * handler.cover_variance()
        square = (rmse / self.width) ** 2
        return ceil((own + sqrt(own**2 + 4 * square * added)) / (2 * square))


def shuffled_run(collection: Collection, quantity: Quantity) -> ShuffledRun | None:
    """Return the batches of a shuffled collection; None: its reports have no covers."""
    rules = collection.batch
    if rules is None or rules.epsilon is None or rules.delta is None:
        return None
    return ShuffledRun(
        collection.randomizer,
        rules.covers,
        rules.epsilon,
        rules.delta,
        quantity.width,
        rules.honest,
    )
