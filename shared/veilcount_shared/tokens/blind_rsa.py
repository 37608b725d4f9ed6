"""Blind signatures, the asker's side: RSABSSA-SHA384-PSS-Deterministic [RFC 9474].

The signer sees m r^e mod n for a uniform r, which is uniform whatever the message m is; nobody can
join it to the signature that results. A key whose exponent is not invertible would leak a part of
m, but only where no signature verifies: so what does not verify is never used (`finalize`).

Big integers of the standard library. Verification is public, so its time reveals nothing; blinding
happens once a slot, on the device of whom the blinded message is about.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass
from math import gcd

from ..errors import TokenError
from ..randomness import RandomSource

HASH_BYTES = 48  # SHA-384
SALT_BYTES = HASH_BYTES
_TRAILER = 0xBC


@dataclass(frozen=True, slots=True)
class PublicKey:
    """The modulus and exponent of a signer's key."""

    n: int
    e: int = 65537

    @property
    def size(self) -> int:
        """The length of the modulus, and of a signature, in bytes."""
        return (self.n.bit_length() + 7) // 8


@dataclass(frozen=True, slots=True)
class BlindedMessage:
    """What is sent to the signer, and what takes the blinding off again."""

    blinded: bytes
    inverse: int


def blind(key: PublicKey, message: bytes, salt: bytes, randomness: RandomSource) -> BlindedMessage:
    """Return the blinded message; the same randomness blinds alike, so it can be asked again."""
    r = _invertible(key.n, randomness)
    return blind_with(key, message, salt, pow(r, -1, key.n))


def blind_with(key: PublicKey, message: bytes, salt: bytes, inverse: int) -> BlindedMessage:
    """Return the message under a given salt and blinding [RFC 9474, section 4.2]."""
    encoded = int.from_bytes(_encode_pss(message, key.size, salt), "big")
    if gcd(encoded, key.n) != 1:
        raise TokenError("key", "its modulus is no product of two large primes")
    blinded = encoded * pow(pow(inverse, -1, key.n), key.e, key.n) % key.n
    return BlindedMessage(blinded.to_bytes(key.size, "big"), inverse)


def finalize(
    key: PublicKey, message: bytes, signed: bytes, inverse: int, salt_bytes: int = SALT_BYTES
) -> bytes:
    """Return the signature of the message, checked [RFC 9474, section 4.4]."""
    if len(signed) != key.size:
        raise TokenError("signature", f"give {key.size} bytes")
    whole = int.from_bytes(signed, "big") * inverse % key.n
    signature = whole.to_bytes(key.size, "big")
    if not verify(key, message, signature, salt_bytes):
        raise TokenError("signature", "it is not one of this key for this message")
    return signature


def verify(key: PublicKey, message: bytes, signature: bytes, salt_bytes: int = SALT_BYTES) -> bool:
    """Whether a signature is the key's for a message: RSASSA-PSS [RFC 8017, section 8.1.2]."""
    number = int.from_bytes(signature, "big")
    if len(signature) != key.size or number >= key.n:
        return False
    encoded = pow(number, key.e, key.n).to_bytes(key.size, "big")
    masked, hashed, trailer = encoded[: -HASH_BYTES - 1], encoded[-HASH_BYTES - 1 : -1], encoded[-1]
    block = _mask(masked, hashed)
    padding = bytes(len(block) - salt_bytes - 1) + b"\1"
    salt = block[len(padding) :]
    return (
        trailer == _TRAILER
        and masked[0] < 0x80  # noqa: PLR2004 - the highest bit is unused
        and block.startswith(padding)
        and hmac.compare_digest(hashed, _salted_hash(message, salt))
    )


def _invertible(n: int, randomness: RandomSource) -> int:
    while True:
        r = randomness.below(n)
        if r > 1 and gcd(r, n) == 1:
            return r


def _encode_pss(message: bytes, size: int, salt: bytes) -> bytes:
    """EMSA-PSS-ENCODE for a modulus that fills its bytes [RFC 8017, section 9.1.1]."""
    hashed = _salted_hash(message, salt)
    block = bytes(size - len(salt) - HASH_BYTES - 2) + b"\1" + salt
    return _mask(block, hashed) + hashed + bytes([_TRAILER])


def _mask(block: bytes, seed: bytes) -> bytes:
    """Return a block with the mask of a seed put on, or taken off; its highest bit is unused."""
    masked = bytearray(a ^ b for a, b in zip(block, _mgf1(seed, len(block)), strict=True))
    masked[0] &= 0x7F
    return bytes(masked)


def _mgf1(seed: bytes, size: int) -> bytes:
    blocks = (hashlib.sha384(seed + i.to_bytes(4, "big")) for i in range(-(-size // HASH_BYTES)))
    return b"".join(block.digest() for block in blocks)[:size]


def _salted_hash(message: bytes, salt: bytes) -> bytes:
    return hashlib.sha384(bytes(8) + hashlib.sha384(message).digest() + salt).digest()
