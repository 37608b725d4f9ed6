"""The cells (combinations of segments) that a query selects."""

from __future__ import annotations

from veilcount_shared import Collection

from ..errors import QueryError
from ..text.result_columns import spelled
from .estimate_query import Segments


def cells(collection: Collection, query: Segments) -> list[int]:
    """Return the cells in which the given segments have the given values, or refuse."""
    declared = dict(collection.segments)
    for name, value in query:
        if name not in declared:
            raise QueryError("segment", f"{name}:{value}", _declared(collection))
        if value not in map(spelled, declared[name]):
            known = ", ".join(f"{name}:{spelled(label)}" for label in declared[name])
            raise QueryError("segment", f"{name}:{value}", f"give one of {known}")
    wanted = dict(query)
    found = [0]
    for name, labels in collection.segments:  # the first segment is the highest digit
        fit = [
            place
            for place, label in enumerate(labels)
            if name not in wanted or spelled(label) == wanted[name]
        ]
        found = [head * len(labels) + place for head in found for place in fit]
    return found


def _declared(collection: Collection) -> str:
    names = ", ".join(name for name, _ in collection.segments)
    return f"its segments are {names}" if names else "it has no segments: remove it"
