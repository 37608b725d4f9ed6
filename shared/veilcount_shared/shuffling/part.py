"""A part of a batch: what a shuffler posts to an aggregator, `POST /v1/batches`, signed.

    "VS" | 1 version | 1 flags | 16 batch | 16 crowd | 4 period | 4 reports | 4 covers |
    32 digest | 2 part | 2 parts | 4 count | 2 size | count x sealed report | 64 signature

`reports` is without covers and doubles; `digest` is `batch_digest` of the parts: parts may come in
any order and at any process, and no state of a hash can be stored between them. Ed25519 signs the
bytes before the signature, after a prefix of their own.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable
from dataclasses import dataclass, field

from ..errors import BadField, UnknownVersion, WrongLength
from .crowd import CROWD_BYTES
from .envelope import MAX_SEALED

PART_TYPE = "application/vnd.veilcount.batch"
MAGIC, VERSION = b"VS", 1
SIGNED_PREFIX = b"veilcount part\0"
PART_REPORTS = 4096
BATCH_ID_BYTES, DIGEST_BYTES, SIGNATURE_BYTES = 16, 32, 64
MAX_PARTS = (1 << 16) - 1
_HEAD = struct.Struct(f">2sBB{BATCH_ID_BYTES}s{CROWD_BYTES}sIII{DIGEST_BYTES}sHHIH")


@dataclass(frozen=True, slots=True)
class BatchHead:
    """What all parts of a batch say alike."""

    batch_id: bytes
    crowd_id: bytes
    period: int
    reports: int
    covers: int
    digest: bytes
    parts: int
    size: int  # of a sealed report

    @property
    def total(self) -> int:
        """How many sealed reports the batch has."""
        return self.reports + self.covers


@dataclass(frozen=True, slots=True)
class BatchPart:
    """Part `number`, from 0, of a batch."""

    head: BatchHead
    number: int
    sealed: bytes = field(repr=False)  # of `count` reports, one after the other
    signature: bytes = field(default=bytes(SIGNATURE_BYTES), repr=False)

    @property
    def count(self) -> int:
        """How many sealed reports it has."""
        return len(self.sealed) // self.head.size

    @property
    def digest(self) -> bytes:
        """The SHA-256 of its sealed reports in their order."""
        return hashlib.sha256(self.sealed).digest()

    def signed(self) -> bytes:
        """Return the bytes that the signature is of, prefix included."""
        return SIGNED_PREFIX + self._content()

    def encode(self) -> bytes:
        """Return its bytes."""
        return self._content() + self.signature

    def _content(self) -> bytes:
        head = self.head
        fields = (head.batch_id, head.crowd_id, head.period, head.reports, head.covers)
        rest = (head.digest, self.number, head.parts, self.count, head.size)
        return _HEAD.pack(MAGIC, VERSION, 0, *fields, *rest) + self.sealed

    @classmethod
    def decode(cls, raw: bytes) -> BatchPart:
        """Return the part of its bytes, or refuse them; the signature is not verified here."""
        if len(raw) < _HEAD.size + SIGNATURE_BYTES:
            raise WrongLength("part", "it is too short")
        magic, version, flags, *fields = _HEAD.unpack_from(raw)
        if magic != MAGIC:
            raise BadField("magic", f"give {MAGIC!r}")
        if version != VERSION:
            raise UnknownVersion("version", f"give {VERSION}")
        if flags:
            raise BadField("flags", "give 0")
        batch_id, crowd_id, period, reports, covers, digest, number, parts, count, size = fields
        _check_numbers(number, parts, count, size, reports + covers)
        if len(raw) != _HEAD.size + count * size + SIGNATURE_BYTES:
            raise WrongLength("part", "its length is not the one that it states")
        head = BatchHead(batch_id, crowd_id, period, reports, covers, digest, parts, size)
        return cls(head, number, raw[_HEAD.size : -SIGNATURE_BYTES], raw[-SIGNATURE_BYTES:])


def batch_digest(part_digests: Iterable[bytes]) -> bytes:
    """Return the digest of a batch: the SHA-256 of those of its parts, in their order."""
    return hashlib.sha256(b"".join(part_digests)).digest()


def part_count(total: int) -> int:
    """Return how many parts a batch of so many sealed reports has."""
    return -(-total // PART_REPORTS)


def _check_numbers(number: int, parts: int, count: int, size: int, total: int) -> None:
    if not 1 <= size <= MAX_SEALED:
        raise BadField("size", f"give 1 to {MAX_SEALED}")
    if not total or parts != part_count(total):
        raise BadField("parts", f"give one for each {PART_REPORTS} sealed reports")
    if number >= parts:
        raise BadField("part", "give a number below that of the parts")
    if count != min(PART_REPORTS, total - number * PART_REPORTS):
        raise BadField("count", f"give {PART_REPORTS}, in the last part the rest")
