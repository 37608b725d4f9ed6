"""The record of a batch: what became of a crowd, signed by its shuffler.

    "VC" | 1 version | 1 state | 16 crowd | 4 period | 4 reports | 4 covers | 32 digest |
    64 signature

Numbers and digest are zeros where nothing was handed over: how few took part is not said.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum

from ..errors import BadField, UnknownVersion, WrongLength
from .crowd import CROWD_BYTES
from .part import DIGEST_BYTES, SIGNATURE_BYTES

RECORD_TYPE = "application/vnd.veilcount.batch-record"
MAGIC, VERSION = b"VC", 1
SIGNED_PREFIX = b"veilcount batch record\0"
_FIELDS = struct.Struct(f">2sBB{CROWD_BYTES}sIII{DIGEST_BYTES}s")
NO_DIGEST = bytes(DIGEST_BYTES)


class BatchState(IntEnum):
    """What became of a crowd, as its shuffler says."""

    HANDED_OVER = 1
    BELOW_LEAST = 2
    EXPIRED = 3  # the aggregator stayed away
    LOST = 4  # the store was restored, and knew less than its witness


@dataclass(frozen=True, slots=True)
class BatchRecord:
    """The record of one crowd and period."""

    state: BatchState
    crowd_id: bytes
    period: int
    reports: int = 0
    covers: int = 0
    digest: bytes = NO_DIGEST
    signature: bytes = bytes(SIGNATURE_BYTES)

    def signed(self) -> bytes:
        """Return the bytes that the signature is of, prefix included."""
        return SIGNED_PREFIX + self._content()

    def encode(self) -> bytes:
        """Return its bytes."""
        return self._content() + self.signature

    def _content(self) -> bytes:
        fields = (self.crowd_id, self.period, self.reports, self.covers, self.digest)
        return _FIELDS.pack(MAGIC, VERSION, self.state, *fields)

    @classmethod
    def decode(cls, raw: bytes) -> BatchRecord:
        """Return the record of its bytes, or refuse them; the signature is not verified here."""
        if len(raw) != _FIELDS.size + SIGNATURE_BYTES:
            raise WrongLength("record", f"give {_FIELDS.size + SIGNATURE_BYTES} bytes")
        magic, version, state, *fields = _FIELDS.unpack_from(raw)
        if magic != MAGIC:
            raise BadField("magic", f"give {MAGIC!r}")
        if version != VERSION:
            raise UnknownVersion("version", f"give {VERSION}")
        if state not in tuple(BatchState):
            raise BadField("state", f"give 1 to {max(BatchState)}")
        crowd_id, period, reports, covers, digest = fields
        signature = raw[_FIELDS.size :]
        record = cls(BatchState(state), crowd_id, period, reports, covers, digest, signature)
        nothing = (record.reports, record.covers, record.digest) == (0, 0, NO_DIGEST)
        if (record.state is BatchState.HANDED_OVER) is nothing:
            raise BadField("reports", "give numbers where a batch was handed over, else zeros")
        return record
