"""What counters take of memory: the figures by which definitions are admitted.

A definition of a million values has 1.4 million counters a tally, and a tally for each period and
cell of its segments. An engine makes them as reports come. The figures below are those of Redis,
which holds counters in memory; its allocator and its table of keys are in them, rounded up.

A tally of up to `PAGE` counters is one string of 8 bytes a counter. A larger one has pages, made
when they are first touched: a packed hash of the counters that are not zero, and a string once more
than `SPARSE` of them are. Every shard has a tally of its own for each cell.

A tally of hashes has pages too, but a report that brings a hash brings its counter: as many as
rows, which the limit of new pseudonyms bounds. The worst case below is that of its pages alone.
"""

from __future__ import annotations

from veilcount_analysis.series.hash_counts import DENSE_LIMIT
from veilcount_shared import Collection
from veilcount_shared.domain import HASH_BITS

#: counters of a page: with Redis's header still within an allocation of 16 KiB
PAGE = 2040
#: counters of a page up to which it is a packed hash: Redis is checked to pack that many
SPARSE = 128

COUNTER_BYTES = 8
TALLY_BYTES = 320  # a tally's key, or its index of pages; and the number of its reports
PAGE_BYTES = 224  # a page's key
ENTRY_BYTES = 8  # a counter of a sparse page: its place and a count below 32,768
PAGES_A_BYTE = 4  # of the index: two bits each

#: pages of a tally of hashes: up to a million hashes, all are packed
HASH_PAGES = 1 << 13
HASH_PAGE = (1 << HASH_BITS) // HASH_PAGES
HASH_BYTES = 90  # a counter of a hash, where its page is no packed hash any more


def pages(counters: int) -> int:
    """Return how many pages a tally has at most; 0: it is one string."""
    return 0 if counters <= PAGE else -(-counters // PAGE)


def tally_bytes(counters: int) -> int:
    """Return what a tally takes in which every counter is touched."""
    if counters > DENSE_LIMIT:
        return touched_bytes(counters, 0) + HASH_PAGES * PAGE_BYTES
    if counters <= PAGE:
        return TALLY_BYTES + COUNTER_BYTES * counters
    return _index_bytes(counters) + pages(counters) * (PAGE_BYTES + COUNTER_BYTES * PAGE)


def touched_bytes(counters: int, touches: int) -> int:
    """Return what a tally takes at most whose counters were touched so often.

    A counter costs most where it is alone in its page: a page of 129 is a string of 16 KiB, which
    is less for each of them.
    """
    if counters > DENSE_LIMIT:
        pages_touched = min(touches, HASH_PAGES)
        index = TALLY_BYTES + HASH_PAGES // 8
        return index + pages_touched * PAGE_BYTES + touches * HASH_BYTES
    if counters <= PAGE:
        return tally_bytes(counters)
    alone = _index_bytes(counters) + touches * (PAGE_BYTES + ENTRY_BYTES)
    return min(alone, tally_bytes(counters))


def _index_bytes(counters: int) -> int:
    return TALLY_BYTES + -(-pages(counters) // PAGES_A_BYTE)


def period_bytes(collection: Collection, shards: int = 1) -> int:
    """Return what the counters of one period take at most: every cell, in every shard."""
    return collection.cells * shards * tally_bytes(collection.mechanism.counters)


def worst_case(collection: Collection, shards: int = 1) -> int:
    """Return what a definition's counters take at most, over all its periods."""
    return collection.periods * period_bytes(collection, shards)
