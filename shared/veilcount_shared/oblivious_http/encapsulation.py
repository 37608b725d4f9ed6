"""Encapsulated requests and responses [RFC 9458, section 4]."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from ..errors import ObliviousError, UnknownKey
from .hpke import (
    KEY_SIZES,
    NONCE_BYTES,
    HpkeContext,
    decapsulate,
    decrypt,
    encapsulate,
    encrypt,
    expand,
    extract,
)
from .key_config import HKDF_SHA256, KEY_BYTES, X25519, KeyConfig

REQUEST_TYPE, RESPONSE_TYPE = "message/ohttp-req", "message/ohttp-res"
KEYS_TYPE = "application/ohttp-keys"
_HEADER = struct.Struct(">BHHH")
_REQUEST, _RESPONSE = b"message/bhttp request", b"message/bhttp response"


@dataclass(frozen=True, slots=True)
class ObliviousExchange:
    """One request and its response, at either end."""

    context: HpkeContext
    enc: bytes

    def seal(self, plain: bytes, nonce: bytes) -> bytes:
        """Return the encapsulated response, under a random nonce of `nonce_bytes`."""
        key, iv = self._keys(nonce)
        return nonce + encrypt(self.context.aead, key, iv, plain)

    def open(self, sealed: bytes) -> bytes:
        """Return the response of an encapsulated one."""
        if len(sealed) < self.nonce_bytes:
            raise ObliviousError("response", "it is too short")
        key, iv = self._keys(sealed[: self.nonce_bytes])
        return decrypt(self.context.aead, key, iv, sealed[self.nonce_bytes :])

    @property
    def nonce_bytes(self) -> int:
        """How long the nonce of a response is."""
        return max(KEY_SIZES[self.context.aead], NONCE_BYTES)

    def _keys(self, nonce: bytes) -> tuple[bytes, bytes]:
        secret = self.context.export(_RESPONSE, self.nonce_bytes)
        base = extract(self.enc + nonce, secret)
        key = expand(base, b"key", KEY_SIZES[self.context.aead])
        return key, expand(base, b"nonce", NONCE_BYTES)


def seal_request(
    config: KeyConfig, plain: bytes, ephemeral: X25519PrivateKey | None = None
) -> tuple[bytes, ObliviousExchange]:
    """Return a freshly encapsulated request, and what opens its response."""
    header = _HEADER.pack(config.key_id, X25519, HKDF_SHA256, config.aeads[0])
    info = _REQUEST + b"\0" + header
    enc, context = encapsulate(config.public, config.aeads[0], info, ephemeral)
    return header + enc + context.seal(plain), ObliviousExchange(context, enc)


def open_request(
    keys: Mapping[int, X25519PrivateKey], sealed: bytes
) -> tuple[bytes, ObliviousExchange]:
    """Return the request of an encapsulated one, and what seals its response."""
    start = _HEADER.size + KEY_BYTES
    if len(sealed) < start:
        raise ObliviousError("request", "it is too short")
    header, enc = sealed[: _HEADER.size], sealed[_HEADER.size : start]
    key_id, kem, kdf, aead = _HEADER.unpack(header)
    if key_id not in keys or (kem, kdf) != (X25519, HKDF_SHA256) or aead not in KEY_SIZES:
        raise UnknownKey
    context = decapsulate(keys[key_id], enc, aead, _REQUEST + b"\0" + header)
    return context.open(sealed[start:]), ObliviousExchange(context, enc)
