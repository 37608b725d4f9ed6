"""What batches of several periods reveal together, and the notice of a collection that states it.

A device states its definition's promise for one report; a server states that of the campaign too.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from math import ceil

from veilcount_shared import Collection
from veilcount_shared.epsilon import EPSILON_GRAIN
from veilcount_shared.mechanisms import Randomizer
from veilcount_shared.notice import Notice, notice

from ...mechanisms import handler_of
from .count_pair import CountPair, exact_overlap
from .covers import cover_delta
from .loss_grid import LossGrid, largest_loss

SHOWN = 100  # hundredths of epsilon, rounded up


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


def full_notice(
    collection: Collection,
    *,
    relay: str | None = None,
    shuffler: str = "",
    by_app: bool = False,
    language: str = "",
) -> Notice:
    """Return the notice, with the epsilon of all reports against the server alone."""
    return notice(
        collection,
        relay=relay,
        shuffler=shuffler,
        by_app=by_app,
        language=language,
        composed=epsilon_in_all(collection),
    )


@lru_cache(maxsize=64)
def epsilon_in_all(collection: Collection) -> Fraction | None:
    """Compose epsilon against the server alone over a campaign; None without covers."""
    rules = collection.batch
    if rules is None or rules.delta is None:
        return None
    batches = collection.priced_answers
    epsilon = composed_epsilon(collection.mechanism, rules.covers, batches, rules.delta)
    return Fraction(ceil(epsilon * SHOWN), SHOWN)
