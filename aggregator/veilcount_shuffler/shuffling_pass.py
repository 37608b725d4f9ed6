"""The shuffle, in two passes: into buckets by HMAC, then each bucket sorted, doubles left out.

Its key is the crowd's secret, which the operating system drew and which ends with the crowd: the
order is random, and the same after a crash. Memory is that of one bucket, whatever the crowd.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO

from veilcount_shared.randomness import RandomSource
from veilcount_shared.shuffling.part import PART_REPORTS, batch_digest
from veilcount_shared.shuffling.plain_report import PlainReport
from veilcount_shared.shuffling.sealed_report import seal_report

from .crowd_folder import CrowdFolder
from .disk import PENDING, Disk
from .held_file import COVERS, encode_record, held_files, read_records
from .served_crowds import ServedCrowd

BUCKET_BYTES = 8 << 20
MOST_BUCKETS = 512
MAC_BYTES = 16
_BUCKET = "bucket"


@dataclass(frozen=True, slots=True)
class Order:
    """What a shuffled crowd consists of."""

    reports: int  # without covers and doubles
    covers: int
    digest: bytes  # of its parts


def shuffle(
    crowd: ServedCrowd,
    folder: CrowdFolder,
    disk: Disk,
    randomness: RandomSource,
    bucket_bytes: int = BUCKET_BYTES,
) -> Order:
    """Write the order of a sealed crowd durably, covers among the reports; the same once more."""
    _draw_covers(crowd, folder, disk, randomness)
    files = [*held_files(folder.path), folder.path / COVERS]
    size = sum(file.stat().st_size for file in files)
    number = min(MOST_BUCKETS, size // bucket_bytes + 1)
    buckets = [folder.path / f"{_BUCKET}.{place}" for place in range(number)]
    _distribute(files, buckets, crowd.size, folder.secret(), disk)
    total, digest = _write_order(buckets, crowd.size, folder.order, disk)
    return Order(total - crowd.covers, crowd.covers, digest)


def _draw_covers(
    crowd: ServedCrowd, folder: CrowdFolder, disk: Disk, randomness: RandomSource
) -> None:
    """Make the covers durable, once: a second draw would tell them from reports."""
    path = folder.path / COVERS
    if not path.exists():
        disk.replace(path, b"".join(map(encode_record, sealed_covers(crowd, randomness))))


def _distribute(
    files: Iterable[Path], buckets: list[Path], size: int, secret: bytes, disk: Disk
) -> None:
    """Write each record after its HMAC to the bucket of its first bits."""
    number = len(buckets)
    with ExitStack() as stack:
        writers = [stack.enter_context(_writer(path, disk)).write for path in buckets]
        for file in files:
            for sealed in read_records(file, size):
                mac = hmac.digest(secret, sealed, "sha256")[:MAC_BYTES]
                writers[(mac[0] << 8 | mac[1]) * number >> 16](mac + sealed)


def _write_order(buckets: list[Path], size: int, order: Path, disk: Disk) -> tuple[int, bytes]:
    """Write the sorted buckets one after the other; return how many records, and their digest."""
    pending = order.with_name(order.name + PENDING)
    records = (sealed for path in buckets for sealed in _sorted_records(path, size))
    total, digests = 0, []
    with _writer(pending, disk) as file:
        while part := list(islice(records, PART_REPORTS)):
            sealed = b"".join(part)
            digests.append(hashlib.sha256(sealed).digest())
            file.write(sealed)
            total += len(part)
        file.flush()
        disk.sync(file.fileno())
    disk.publish(pending, order)
    for path in buckets:
        disk.unlink(path)
    return total, batch_digest(digests)


def _sorted_records(path: Path, size: int) -> Iterator[bytes]:
    """Yield the sealed reports of a bucket in the order of their HMACs, each once."""
    raw, width = path.read_bytes(), MAC_BYTES + size
    records = {
        raw[start : start + MAC_BYTES]: raw[start + MAC_BYTES : start + width]
        for start in range(0, len(raw), width)
    }
    for mac in sorted(records):
        yield records[mac]


def _writer(path: Path, disk: Disk) -> IO[bytes]:
    """Open a file that is written from the start: what a crash left of it goes."""
    disk.step("write")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
    return os.fdopen(os.open(path, flags, 0o600), "wb", buffering=1 << 16)


def sealed_covers(crowd: ServedCrowd, randomness: RandomSource) -> Iterator[bytes]:
    """Yield the covers of a crowd, as many as its definition says."""
    collection = crowd.collection
    for _ in range(crowd.covers):
        message = collection.randomizer.cover(randomness)
        plain = PlainReport(collection.pack(message)).encode()
        yield seal_report(crowd.config, crowd.crowd_id, crowd.period, plain)
