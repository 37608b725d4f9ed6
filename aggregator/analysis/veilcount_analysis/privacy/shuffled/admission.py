"""Whether a definition has the covers that its promise needs: by them alone, never by its n."""

from __future__ import annotations

from veilcount_shared import Collection
from veilcount_shared.errors import DefinitionError

from .covers import least_covers


def require_covers(collection: Collection) -> None:
    """Refuse a definition whose covers do not give its epsilon and delta by themselves."""
    rules = collection.batch
    if rules is None or rules.epsilon is None or rules.delta is None:
        return
    needed = least_covers(collection.mechanism, rules.epsilon, rules.delta)
    if rules.covers < needed:
        fix = (
            f"give {needed:,} or more: fewer do not give epsilon = {float(rules.epsilon):g} at"
            f" delta = {float(rules.delta):g} by themselves"
        )
        raise DefinitionError("batch.covers", rules.covers, fix, collection=collection.name)
