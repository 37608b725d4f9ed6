"""Holds, shuffles and delivers a crowd of so many reports; prints the peak of its memory in MB.

    python -m tests.shuffler.large_crowd FOLDER REPORTS [--one-bucket]

All of it in one process, which is more than any process of a server does. What is sealed is random
bytes: nothing here opens it. `--one-bucket` is the planted fault: a shuffle in memory.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from unittest.mock import patch

from veilcount_shared.shuffling.batch_record import BatchRecord, BatchState
from veilcount_shared.shuffling.envelope import Envelope
from veilcount_shared.shuffling.part import BatchPart, batch_digest
from veilcount_shuffler import hand_over, shuffling_pass
from veilcount_shuffler.holding import EnvelopeAnswer
from veilcount_shuffler.served_crowds import ServedCrowd

from .parties import CheckingAggregator, HandClock, ShufflerStore

GROUP = 1000


class CountingAggregator(CheckingAggregator):
    """Verifies every part, and keeps its digest alone."""

    def take_part(self, raw: bytes) -> list[int]:
        """Take a part."""
        part = BatchPart.decode(raw)
        self.public.verify(part.signature, part.signed())
        assert self.heads.setdefault(part.head.crowd_id, part.head) == part.head
        self.parts.setdefault(part.head.crowd_id, {})[part.number] = part.digest
        return []


def main(arguments: Sequence[str]) -> None:
    """Move a crowd from its first report to its last part."""
    folder, reports, *options = arguments
    store = ShufflerStore(Path(folder), HandClock())
    aggregator = CountingAggregator(store.aggregator.public, store.clock)
    store.aggregator = aggregator
    hold(store, int(reports))
    store.leave()
    one_bucket = partial(shuffling_pass.shuffle, bucket_bytes=1 << 50)
    shuffle = one_bucket if "--one-bucket" in options else shuffling_pass.shuffle
    with patch.object(hand_over, "shuffle", shuffle):
        store.rounds()
    check(aggregator, store.crowd, int(reports))
    store.close()
    print(peak_megabytes())


def peak_megabytes() -> int:
    """Return the most memory that this program had; getrusage knows that of who started it."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    (peak,) = (line.split()[1] for line in lines if line.startswith("VmHWM:"))
    return int(peak) // 1024


def hold(store: ShufflerStore, reports: int) -> None:
    """Have so many reports acknowledged."""
    worker, crowd = store.worker(), store.crowd
    for first in range(0, reports, GROUP):
        number = min(GROUP, reports - first)
        group = [
            Envelope(crowd.crowd_id, crowd.period, os.urandom(crowd.size)) for _ in range(number)
        ]
        assert worker.hold(group) == [EnvelopeAnswer.HELD] * number


def check(aggregator: CountingAggregator, crowd: ServedCrowd, reports: int) -> None:
    """Have the whole batch arrived, as its record says."""
    digests = aggregator.parts[crowd.crowd_id]
    record: BatchRecord = aggregator.records[0]
    assert (record.state, record.reports) == (BatchState.HANDED_OVER, reports)
    assert record.digest == batch_digest(digests[number] for number in range(len(digests)))


if __name__ == "__main__":
    main(sys.argv[1:])
