"""An envelope: what a device posts to a shuffler, `POST /v1/envelopes`.

    "VE" | 1 version | 1 flags | 16 crowd | 4 period | 2 width of the token, token |
    2 size, sealed report

The token would admit a sender to the shuffler; there is none yet, and its width is 0.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

from ..errors import BadField, UnknownVersion, WrongLength
from .crowd import CROWD_BYTES

ENVELOPE_TYPE = "application/vnd.veilcount.envelope"
MAGIC, VERSION = b"VE", 1
MAX_SEALED = 1024
_HEAD = struct.Struct(f">2sBB{CROWD_BYTES}sIH")
_SIZE = struct.Struct(">H")


@dataclass(frozen=True, slots=True)
class Envelope:
    """A sealed report, with the crowd and the period that it is for."""

    crowd_id: bytes
    period: int
    sealed: bytes = field(repr=False)

    def encode(self) -> bytes:
        """Return its bytes."""
        head = _HEAD.pack(MAGIC, VERSION, 0, self.crowd_id, self.period, 0)
        return head + _SIZE.pack(len(self.sealed)) + self.sealed

    @classmethod
    def decode(cls, raw: bytes) -> Envelope:
        """Return the envelope of its bytes, or refuse them."""
        start = _HEAD.size + _SIZE.size
        if len(raw) < start:
            raise WrongLength("envelope", "it is too short")
        magic, version, flags, crowd_id, period, token_width = _HEAD.unpack_from(raw)
        if magic != MAGIC:
            raise BadField("magic", f"give {MAGIC!r}")
        if version != VERSION:
            raise UnknownVersion("version", f"give {VERSION}")
        if flags:
            raise BadField("flags", "give 0")
        if token_width:
            raise BadField("token", "give none: no token is issued for envelopes")
        (size,) = _SIZE.unpack_from(raw, _HEAD.size)
        if size > MAX_SEALED or len(raw) != start + size:
            raise WrongLength("sealed", "its length is not the one that it states")
        return cls(crowd_id, period, raw[start:])
