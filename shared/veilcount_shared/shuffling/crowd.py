"""A crowd: all sealed reports that a server could not tell apart before it opened them.

Its name is a hash of everything that tells them apart: the definition, the period, the whole
configuration of the key (two keys under one id would divide it), the suite and the size.
"""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass

from ..collection import Collection
from ..enums import Linkage
from ..limits import TOKEN_BYTES
from ..oblivious_http.key_config import HKDF_SHA256, X25519, KeyConfig
from .plain_report import plain_size

CROWD_BYTES = 16
HEADER_BYTES, ENC_BYTES, TAG_BYTES = 7, 32, 16
_FIELDS = struct.Struct(">32sI32sHHHH")


def sealed_size(plain_size: int) -> int:
    """Return the length of a sealed report."""
    return HEADER_BYTES + ENC_BYTES + plain_size + TAG_BYTES


@dataclass(frozen=True, slots=True)
class Crowd:
    """What names a crowd. `key_config` is the key's configuration as its file has it."""

    fingerprint: str
    period: int
    key_config: bytes
    aead: int
    size: int  # of a sealed report

    @property
    def crowd_id(self) -> bytes:
        """Its 16 bytes."""
        fields = _FIELDS.pack(
            bytes.fromhex(self.fingerprint),
            self.period,
            hashlib.sha256(self.key_config).digest(),
            X25519,
            HKDF_SHA256,
            self.aead,
            self.size,
        )
        return hashlib.sha256(b"veilcount crowd" + fields).digest()[:CROWD_BYTES]

    @classmethod
    def of_period(
        cls, collection: Collection, period: int, encoded: bytes, config: KeyConfig
    ) -> Crowd:
        """Return the crowd that a device with this key, whole and decoded, is in."""
        token_bytes = TOKEN_BYTES if collection.linkage is Linkage.TOKEN else 0
        size = sealed_size(plain_size(token_bytes))
        return cls(collection.fingerprint, period, encoded, config.aeads[0], size)
