"""How many answers remain of a token collection, by the day on which a person consents.

Tokens are fetched in the period of the consent and are good from the next one on, so a person gives
as many answers as are asked for, or as many as periods are left.
"""

from __future__ import annotations

from datetime import date
from itertools import pairwise

from ..enums import Linkage
from ..periods import first_day, period_name
from .definition import Collection


def answers_by_consent(collection: Collection) -> list[tuple[date, int]]:
    """Return from which day of consent on how many answers remain; empty without tokens."""
    if collection.linkage is not Linkage.TOKEN:
        return []
    days = [collection.start] + [
        first_day(collection.unit, collection.start, period)
        for period in range(1, collection.periods)
    ]
    remaining = [
        min(collection.answering, collection.periods - period - 1)
        for period in range(collection.periods)
    ]
    steps = [(days[0], remaining[0])]
    steps += [
        (day, after)
        for day, (before, after) in zip(days[1:], pairwise(remaining), strict=True)
        if after != before
    ]
    return steps


def describe_answers(collection: Collection) -> str | None:
    """Return the same as a sentence; None without tokens."""
    steps = answers_by_consent(collection)[1:]
    if not steps:
        return None
    (first, left), (last, _) = steps[0], steps[-1]
    fewer = "" if left == 0 else f", from {first} on one fewer each {period_name(collection.unit)}"
    return (
        f"by the day of consent: {collection.answering * collection.per_day} answers before"
        f" {first}{fewer}, none from {last} on: tokens are fetched a period ahead"
    )
