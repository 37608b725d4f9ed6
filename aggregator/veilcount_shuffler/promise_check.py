"""The shuffler's own check of what a definition promises: do its covers suffice by themselves?

What a person is shown as the second figure rests on this, not on the aggregator's word. This is the
one module of the shuffler that computes; what serves never imports it.
"""

from __future__ import annotations

from collections.abc import Iterable

from veilcount_analysis.privacy.shuffled import least_covers
from veilcount_shared import Collection
from veilcount_shared.errors import DefinitionError


def check_promises(collections: Iterable[Collection]) -> None:
    """Refuse a definition with too few covers, with the number that is needed."""
    for collection in collections:
        rules = collection.batch
        if rules is None or rules.epsilon is None or rules.delta is None:
            continue  # no promise against the server
        needed = least_covers(collection.randomizer, rules.epsilon, rules.delta)
        if rules.covers < needed:
            fix = f"{collection.name}: batch.epsilon and batch.delta need {needed:,} covers"
            raise DefinitionError("batch.covers", rules.covers, fix)
