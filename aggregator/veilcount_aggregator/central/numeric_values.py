"""The numbers that a collection's values stand for, for sums, means and conditions."""

from __future__ import annotations

from collections.abc import Sequence

from veilcount_shared import Collection
from veilcount_shared.domain import Boolean, Choice, Cross, Number

from ..errors import QueryError

MAX_NUMBER = 1 << 30  # with as many answers, a sum still fits 64 bits

Numbers = Sequence[int]


def numeric_values(collection: Collection) -> Numbers | None:
    """Return the number that each input stands for, where all stand for one."""
    match collection.domain:
        case Boolean():
            return (0, 1)
        case Number(low=low, high=high):
            return range(int(low), int(high) + 1)
        case Choice() as choice:
            numbers = tuple(label for label in choice.labels if isinstance(label, int))
            return numbers if len(numbers) == choice.size else None
        case Cross():
            return None


def require_summable(query: str, collection: Collection) -> Numbers:
    """Return the numbers of a collection that a sum or mean may be asked of."""
    numbers = numeric_values(collection)
    if numbers is None:
        raise QueryError("query", query, f'{collection.name} is not a number: ask "histogram"')
    if max(map(abs, numbers)) > MAX_NUMBER:
        raise QueryError("query", query, f"only for numbers within +/- {MAX_NUMBER:,}: scale them")
    return numbers
