"""The shards of a store as a table: which answer, how full they are, and what waits for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ...store import ShardHealth, Store

NEARLY_FULL = 0.8  # of the memory that a server may use: as the alert has it
UNKNOWN = "unknown"
MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Row:
    """One shard; a tone and a word for its state."""

    name: str
    tone: str
    state: str
    waiting: str
    memory: str
    file: str


def rows(store: Store, queues: Mapping[int, int]) -> list[Row]:
    """Return the shards of a store that has several, and the server of its records."""
    found = store.shards()
    return [_row(shard, queues) for shard in found] if len(found) > 2 else []  # noqa: PLR2004 - records and one shard


def _row(shard: ShardHealth, queues: Mapping[int, int]) -> Row:
    waiting = queues.get(int(shard.name), 0) if shard.name.isdecimal() else None
    tone, state = _state(shard)
    queue = "" if waiting is None else f"{waiting:,}"
    return Row(shard.name, tone, state, queue, _memory(shard), _file(shard))


def _state(shard: ShardHealth) -> tuple[str, str]:
    if not shard.up:
        return "bad", "away"
    if _is_nearly_full(shard):
        return "weak", "nearly full"
    return "good", "up"


def _is_nearly_full(shard: ShardHealth) -> bool:
    limit = shard.memory_limit_bytes
    return bool(limit) and (shard.memory_bytes or 0) > NEARLY_FULL * (limit or 0)


def _memory(shard: ShardHealth) -> str:
    if shard.memory_bytes is None:
        return UNKNOWN
    limit = shard.memory_limit_bytes
    of = f" of {limit / MIB:,.0f}" if limit else ""
    return f"{shard.memory_bytes / MIB:,.0f}{of} MiB"


def _file(shard: ShardHealth) -> str:
    if shard.aof_failing is None:
        return UNKNOWN
    if shard.aof_failing:
        return "the last write or rewrite failed"
    rewriting = "is being rewritten, " if shard.aof_rewriting else ""
    return f"{rewriting}{shard.aof_delayed_fsyncs or 0:,} fsyncs put off"
