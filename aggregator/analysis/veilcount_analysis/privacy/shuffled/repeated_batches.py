"""What batches of several periods reveal together, with fresh covers and a fresh report in each."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from math import ceil

from veilcount_shared.epsilon import EPSILON_GRAIN
from veilcount_shared.mechanisms import Randomizer

from ...mechanisms import handler_of
from .count_pair import CountPair, exact_overlap
from .covers import cover_delta
from .loss_grid import LossGrid, largest_loss


@lru_cache(maxsize=256)
def composed_epsilon(mechanism: Randomizer, covers: int, batches: int, delta: Fraction) -> Fraction:
    """Return the epsilon of so many batches of one person against the server, in millionths.

    Covers alone, rounded up, by numeric composition; at most the plain sum of the reports' own.
    """
    plain = mechanism.epsilon * batches
    composed = _losses(mechanism, covers).composed(batches).epsilon(float(delta))
    if composed >= plain:
        return plain
    return Fraction(ceil(composed * EPSILON_GRAIN), EPSILON_GRAIN)


@lru_cache(maxsize=16)
def _losses(mechanism: Randomizer, covers: int) -> LossGrid:
    """Return losses that dominate one batch's."""
    overlaps = handler_of(mechanism).overlaps()
    exact = exact_overlap(overlaps, covers)
    if exact is not None:
        return LossGrid.from_pair(CountPair.from_overlap(exact, covers))
    most = largest_loss(max(float(overlap.ratio) for overlap in overlaps))
    return LossGrid.from_delta(lambda at: cover_delta(overlaps, covers, at), most)
