"""HPKE in base mode with X25519 and HKDF-SHA256 [RFC 9180]: one message, and an exported secret."""

from __future__ import annotations

import hmac
import struct
from collections.abc import Callable
from dataclasses import dataclass

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305

from ..errors import ObliviousError
from .key_config import AES_128_GCM, CHACHA20_POLY1305, HKDF_SHA256, X25519

HASH_BYTES = 32
NONCE_BYTES = 12
KEY_SIZES = {AES_128_GCM: 16, CHACHA20_POLY1305: 32}
_AEADS: dict[int, Callable[[bytes], AESGCM | ChaCha20Poly1305]] = {
    AES_128_GCM: AESGCM,
    CHACHA20_POLY1305: ChaCha20Poly1305,
}
_KEM = b"KEM" + struct.pack(">H", X25519)


@dataclass(frozen=True, slots=True)
class HpkeContext:
    """What both ends derive from one encapsulated key."""

    aead: int
    key: bytes
    nonce: bytes
    exporter: bytes

    def seal(self, plain: bytes) -> bytes:
        """Encrypt the first message."""
        return encrypt(self.aead, self.key, self.nonce, plain)

    def open(self, sealed: bytes) -> bytes:
        """Decrypt the first message."""
        return decrypt(self.aead, self.key, self.nonce, sealed)

    def export(self, context: bytes, size: int) -> bytes:
        """Return a secret that both ends have."""
        return _labeled_expand(_suite(self.aead), self.exporter, b"sec", context, size)


def encapsulate(
    public: bytes, aead: int, info: bytes, ephemeral: X25519PrivateKey | None = None
) -> tuple[bytes, HpkeContext]:
    """Return a fresh encapsulated key for a public key, and the sender's context."""
    own = ephemeral or X25519PrivateKey.generate()
    enc = own.public_key().public_bytes_raw()
    shared = _shared_secret(own, public, enc + public)
    return enc, _schedule(shared, aead, info)


def decapsulate(private: X25519PrivateKey, enc: bytes, aead: int, info: bytes) -> HpkeContext:
    """Return the receiver's context."""
    shared = _shared_secret(private, enc, enc + private.public_key().public_bytes_raw())
    return _schedule(shared, aead, info)


def encrypt(aead: int, key: bytes, nonce: bytes, plain: bytes) -> bytes:
    """Encrypt under a key and nonce that are used once."""
    return _AEADS[aead](key).encrypt(nonce, plain, b"")


def decrypt(aead: int, key: bytes, nonce: bytes, sealed: bytes) -> bytes:
    """Decrypt, or raise ObliviousError."""
    try:
        return _AEADS[aead](key).decrypt(nonce, sealed, b"")
    except (InvalidTag, ValueError):
        raise ObliviousError("message", "it does not decrypt under this key") from None


def extract(salt: bytes, secret: bytes) -> bytes:
    """HKDF-Extract [RFC 5869]."""
    return hmac.digest(salt or bytes(HASH_BYTES), secret, "sha256")


def expand(key: bytes, info: bytes, size: int) -> bytes:
    """HKDF-Expand [RFC 5869]."""
    blocks, block = b"", b""
    for i in range(-(-size // HASH_BYTES)):
        block = hmac.digest(key, block + info + bytes([i + 1]), "sha256")
        blocks += block
    return blocks[:size]


def _shared_secret(private: X25519PrivateKey, public: bytes, context: bytes) -> bytes:
    try:
        exchanged = private.exchange(X25519PublicKey.from_public_bytes(public))
    except ValueError:  # of a point of small order
        raise ObliviousError("key", "it is no X25519 public key") from None
    key = _labeled_extract(_KEM, b"", b"eae_prk", exchanged)
    return _labeled_expand(_KEM, key, b"shared_secret", context, HASH_BYTES)


def _schedule(shared: bytes, aead: int, info: bytes) -> HpkeContext:
    suite = _suite(aead)
    context = b"\0" + _labeled_extract(suite, b"", b"psk_id_hash", b"")  # base mode
    context += _labeled_extract(suite, b"", b"info_hash", info)
    secret = _labeled_extract(suite, shared, b"secret", b"")
    return HpkeContext(
        aead,
        _labeled_expand(suite, secret, b"key", context, KEY_SIZES[aead]),
        _labeled_expand(suite, secret, b"base_nonce", context, NONCE_BYTES),
        _labeled_expand(suite, secret, b"exp", context, HASH_BYTES),
    )


def _suite(aead: int) -> bytes:
    return b"HPKE" + struct.pack(">HHH", X25519, HKDF_SHA256, aead)


def _labeled_extract(suite: bytes, salt: bytes, label: bytes, secret: bytes) -> bytes:
    return extract(salt, b"HPKE-v1" + suite + label + secret)


def _labeled_expand(suite: bytes, key: bytes, label: bytes, info: bytes, size: int) -> bytes:
    return expand(key, struct.pack(">H", size) + b"HPKE-v1" + suite + label + info, size)
