"""Cover reports: drawn by the kind, and sealed as devices seal theirs, under the same key.

An aggregator that opens a batch cannot tell them from reports: key, suite, size and padding are
those of the crowd, and the randomness is the operating system's.
"""

from __future__ import annotations

from collections.abc import Iterator

from veilcount_shared.randomness import RandomSource
from veilcount_shared.shuffling.plain_report import PlainReport
from veilcount_shared.shuffling.sealed_report import seal_report

from .served_crowds import ServedCrowd


def sealed_covers(crowd: ServedCrowd, randomness: RandomSource) -> Iterator[bytes]:
    """Yield the covers of a crowd, as many as its definition says."""
    collection = crowd.collection
    for _ in range(crowd.covers):
        message = collection.randomizer.cover(randomness)
        plain = PlainReport(collection.pack(message)).encode()
        yield seal_report(crowd.config, crowd.crowd_id, crowd.period, plain)
