"""A recorded value, for tests to compare."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

from veilcount_shared import Collection
from veilcount_shared.domain import Label


class RecordedValue(tuple[str, object]):  # noqa: SLOT001 - its segments are no item of the tuple
    """One recorded value: equal to (name, value), and knows its segments."""

    segments: Mapping[str, Label]

    def __new__(cls, name: str, value: object, segments: Mapping[str, Label] | None = None) -> Self:
        """Remember a value with the public segments it was recorded in."""
        recorded = super().__new__(cls, (name, value))
        recorded.segments = dict(segments or {})
        return recorded

    @property
    def name(self) -> str:
        """The collection."""
        return self[0]

    @property
    def value(self) -> object:
        """What was recorded, before any noise."""
        return self[1]


def segments_of(collection: Collection, cell: int) -> dict[str, Label]:
    """Return the segments that a cell's number stands for."""
    values: dict[str, Label] = {}
    for name, labels in reversed(collection.segments):
        cell, place = divmod(cell, len(labels))
        values[name] = labels[place]
    return dict(reversed(values.items()))
