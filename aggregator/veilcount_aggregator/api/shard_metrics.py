"""Metrics by shard: availability, memory and append-only file of its server, commits.

Shards are named by their numbers, and the part that keeps definitions and keys `records`; no label
is an address. What a server says of its memory stands at each shard that it has; what waits for a
server, and its commits, at the first of its shards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from ..ingest.group_commit import SEVERAL
from ..store import ShardHealth
from .exposition import Labels, metric

#: gauges by name: what each says, and the shard's figure
GAUGES: Mapping[str, tuple[str, Callable[[ShardHealth], int | None]]] = {
    "shard_up": ("1: the shard takes reports.", lambda shard: int(shard.up)),
    "shard_memory_bytes": ("Memory that the shard's server uses.", lambda s: s.memory_bytes),
    "shard_memory_limit_bytes": (
        "Memory that the shard's server may use; 0: any amount.",
        lambda shard: shard.memory_limit_bytes,
    ),
    "shard_aof_failing": (
        "1: the server's last write or rewrite of its append-only file failed.",
        lambda shard: _as_number(shard.aof_failing),
    ),
    "shard_aof_rewriting": (
        "1: the server rewrites its append-only file.",
        lambda shard: _as_number(shard.aof_rewriting),
    ),
    "shard_aof_delayed_fsyncs": (
        "Fsyncs that the server put off, since it started.",
        lambda shard: shard.aof_delayed_fsyncs,
    ),
}


def shard_metrics(shards: Sequence[ShardHealth]) -> Iterator[str]:
    """Yield how each shard is, as the worker that answers sees it."""
    for name, (says, figure) in GAUGES.items():
        found = [(_label(shard.name), figure(shard)) for shard in shards]
        known = [(labels, number) for labels, number in found if number is not None]
        yield from metric(name, "gauge", says, known)
    states = [((*_label(shard.name), ("state", shard.breaker)), 1) for shard in shards]
    says = "The circuit breaker of the shard's server in the worker that answers, 1."
    yield from metric("shard_breaker", "gauge", says, states)


def queue_metrics(queues: Mapping[int, int]) -> Iterator[str]:
    """Yield how many reports wait for each server."""
    waiting = [(_label(_shard(lane)), reports) for lane, reports in queues.items()]
    says = "Reports that wait for the shard's server in the worker that answers."
    yield from metric("shard_waiting_reports", "gauge", says, waiting)


def commit_metrics(commits: Mapping[str, int], microseconds: Mapping[str, int]) -> Iterator[str]:
    """Yield how many commits each server made, and how long they took, over all workers."""
    numbers = [(_label(_shard(int(lane))), number) for lane, number in commits.items()]
    seconds = [(_label(_shard(int(lane))), took / 1e6) for lane, took in microseconds.items()]
    yield from metric("shard_commits_total", "counter", "Commits.", numbers)
    says = "Seconds from a commit to its acknowledgement, added up."
    yield from metric("shard_commit_seconds_total", "counter", says, seconds)


def _shard(lane: int) -> str:
    return "several" if lane == SEVERAL else str(lane)


def _label(shard: str) -> Labels:
    return (("shard", shard),)


def _as_number(figure: float | None) -> int | None:
    return None if figure is None else int(figure)
