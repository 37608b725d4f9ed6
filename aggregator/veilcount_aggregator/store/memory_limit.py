"""Memory of counters: its limits, and the formula that accounts it.

A definition of a million values has 1.4 million counters a tally, and a tally for each period and
cell of its segments. An engine makes them as reports come, accounts what they take, and refuses
(`full`) what would exceed a limit before it writes anything. The figures below are those of Redis,
which holds counters in memory; its allocator and its table of keys are in them, rounded up.

A tally of up to `PAGE` counters is one string of 8 bytes a counter. A larger one has pages, made
when they are first touched: a packed hash of the counters that are not zero, and a string once more
than `SPARSE` of them are. A series' limit is shared out evenly among the store's shards.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from veilcount_shared import Collection

SERIES_MEMORY = 256 << 20  # bytes


#: counters of a page: with Redis's header still within an allocation of 16 KiB
PAGE = 2040
#: counters of a page up to which it is a packed hash: Redis is checked to pack that many
SPARSE = 128

COUNTER_BYTES = 8
TALLY_BYTES = 320  # a tally's key, or its index of pages; and the number of its reports
PAGE_BYTES = 224  # a page's key
ENTRY_BYTES = 8  # a counter of a sparse page: its place and a count below 32,768
PAGES_A_BYTE = 4  # of the index: two bits each

#: what counters may take of Redis's `maxmemory`; the rest is for rows and records
SHARE = 0.6
UNLIMITED = 1 << 53  # the largest integer that Lua counts to exactly


@dataclass(frozen=True, slots=True)
class MemoryLimits:
    """Bytes that counters may take before a report that needs more is refused."""

    series: int = SERIES_MEMORY
    store: int | None = None  # None: the engine's own; of Redis a share of `maxmemory`


DEFAULT_LIMITS = MemoryLimits()


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """Bytes that the counters of a store take by the engine's account."""

    series: Mapping[str, int]  # by fingerprint
    limit: int | None  # of all series together, where the operator sets none; None: unlimited
    shards: int = 1

    @property
    def total(self) -> int:
        """What all series take together."""
        return sum(self.series.values())

    def series_limit(self, limits: MemoryLimits) -> int:
        """Return what each series may take."""
        if limits.store is not None or self.limit is None:
            return limits.series
        return min(limits.series, series_cap(self.limit))

    def store_limit(self, limits: MemoryLimits) -> int | None:
        """Return what all series may take together; None: any number."""
        return limits.store if limits.store is not None else self.limit


def pages(counters: int) -> int:
    """Return how many pages a tally has at most; 0: it is one string."""
    return 0 if counters <= PAGE else -(-counters // PAGE)


def tally_bytes(counters: int) -> int:
    """Return what a tally takes in which every counter is touched."""
    if counters <= PAGE:
        return TALLY_BYTES + COUNTER_BYTES * counters
    index = -(-pages(counters) // PAGES_A_BYTE)
    return TALLY_BYTES + index + pages(counters) * (PAGE_BYTES + COUNTER_BYTES * PAGE)


def worst_case(collection: Collection, shards: int = 1) -> int:
    """Return what a definition's counters take at most: every period, every cell, every shard."""
    tallies = collection.periods * collection.cells * shards
    return tallies * tally_bytes(collection.mechanism.counters)


def series_cap(limit: int) -> int:
    """Return what one series may take of an engine's own limit, whatever the series' limit is.

    Half of it: where `maxmemory` is small, one definition must not use up what all share.
    """
    return limit // 2


def share(limit: int, shards: int) -> int:
    """Return a shard's share of a limit, rounded up."""
    return -(-limit // shards)
