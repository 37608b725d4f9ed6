"""The notice of a collection with what only an analysis can state: epsilon over all batches.

A device states its definition's promise for one report; a server states that of the campaign too.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from math import ceil

from veilcount_shared import Collection
from veilcount_shared.notice import Notice, notice

from .repeated_batches import composed_epsilon

SHOWN = 100  # hundredths of epsilon, rounded up


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
