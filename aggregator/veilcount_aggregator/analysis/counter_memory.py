"""What a definition's counters take at most, in words: for whoever writes or pushes one."""

from __future__ import annotations

from veilcount_shared import Collection
from veilcount_shared.collection.lint import Remark

from ..store.memory_limit import SERIES_MEMORY, worst_case
from ..text.number_format import format_bytes


def memory_at_most(collection: Collection) -> str:
    """Return the worst case of a store of one shard, and what it is the product of."""
    counters, cells = collection.mechanism.counters, collection.cells
    tallies = f"{_number(collection.periods, 'period')} x {_number(cells, 'cell')}"
    size = format_bytes(worst_case(collection))
    return f"counters take at most {size}: {tallies} x {_number(counters, 'counter')}"


def memory_remarks(collection: Collection) -> list[Remark]:
    """Return a remark where the worst case is beyond what a server allows by default."""
    if worst_case(collection) <= SERIES_MEMORY:
        return []
    text = (
        f"{memory_at_most(collection)}, in each shard; beyond {format_bytes(SERIES_MEMORY)}"
        " (--max-series-memory) reports are full: fewer values, segments or periods, or raise it"
    )
    return [Remark("memory", text)]


def _number(many: int, what: str) -> str:
    return f"{many:,} {what}{'s' * (many != 1)}"
