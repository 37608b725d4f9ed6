"""Segments to cells: which tallies a question about some segments is about."""

from __future__ import annotations

from veilcount_shared import Collection

from ..errors import QueryError
from ..text.result_columns import spelled
from .estimate_query import Segments


def cells(collection: Collection, asked: Segments) -> list[int]:
    """Return the cells in which all asked segments have the asked values, or refuse."""
    declared = dict(collection.segments)
    for name, value in asked:
        if name not in declared:
            raise QueryError("segment", f"{name}:{value}", _declared(collection))
        if value not in map(spelled, declared[name]):
            known = ", ".join(f"{name}:{spelled(label)}" for label in declared[name])
            raise QueryError("segment", f"{name}:{value}", f"give one of {known}")
    wanted = dict(asked)
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
