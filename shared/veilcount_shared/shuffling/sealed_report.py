"""A sealed report: one plain report, encrypted to the aggregator for one crowd and period.

    1 key id | 2 KEM | 2 KDF | 2 AEAD | 32 encapsulated key | ciphertext | 16 tag

HPKE's base mode [RFC 9180]; the info binds header, crowd and period, so it cannot be moved.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from ..errors import ObliviousError, UnknownKey
from ..oblivious_http.hpke import KEY_SIZES, decapsulate, encapsulate
from ..oblivious_http.key_config import HKDF_SHA256, X25519, KeyConfig
from .crowd import CROWD_BYTES, ENC_BYTES, HEADER_BYTES

_HEADER = struct.Struct(">BHHH")
_BOUND = struct.Struct(f">{CROWD_BYTES}sI")


def seal_report(
    config: KeyConfig,
    crowd_id: bytes,
    period: int,
    plain: bytes,
    ephemeral: X25519PrivateKey | None = None,
) -> bytes:
    """Return the report sealed afresh, with the first suite of the key."""
    header = _HEADER.pack(config.key_id, X25519, HKDF_SHA256, config.aeads[0])
    info = report_info(header, crowd_id, period)
    enc, context = encapsulate(config.public, config.aeads[0], info, ephemeral)
    return header + enc + context.seal(plain)


def open_report(
    keys: Mapping[int, X25519PrivateKey], crowd_id: bytes, period: int, sealed: bytes
) -> bytes:
    """Return the plain report, or raise ObliviousError."""
    start = HEADER_BYTES + ENC_BYTES
    if len(sealed) < start:
        raise ObliviousError("report", "it is too short")
    header, enc = sealed[:HEADER_BYTES], sealed[HEADER_BYTES:start]
    key_id, kem, kdf, aead = _HEADER.unpack(header)
    if key_id not in keys or (kem, kdf) != (X25519, HKDF_SHA256) or aead not in KEY_SIZES:
        raise UnknownKey
    context = decapsulate(keys[key_id], enc, aead, report_info(header, crowd_id, period))
    return context.open(sealed[start:])


def report_info(header: bytes, crowd_id: bytes, period: int) -> bytes:
    """Return HPKE's info: what the report cannot be separated from."""
    return b"veilcount report\0" + header + _BOUND.pack(crowd_id, period)
