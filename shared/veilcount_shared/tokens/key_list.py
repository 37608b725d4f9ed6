"""The public keys of a collection's tokens, one a period, and the digest that a definition pins.

A key is an SPKI in DER, as RFC 8017 and RFC 5280 write an RSA key of 2,048 bits with the exponent
65537: one encoding, so its frame is compared and no parser is needed.
"""

from __future__ import annotations

import hashlib
import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence

from ..errors import TokenError
from .blind_rsa import PublicKey

MODULUS_BYTES = 256
_FRAME = bytes.fromhex("30820122300d06092a864886f70d01010105000382010f003082010a0282010100")
_EXPONENT = bytes.fromhex("0203010001")
KEY_BYTES = len(_FRAME) + MODULUS_BYTES + len(_EXPONENT)


def parse_key(encoded: bytes) -> PublicKey:
    """Return the key of its encoding."""
    modulus = encoded[len(_FRAME) : -len(_EXPONENT)]
    is_full_length = len(encoded) == KEY_BYTES
    if not is_full_length or not encoded.startswith(_FRAME) or not encoded.endswith(_EXPONENT):
        raise TokenError("key", "give the SPKI of an RSA key of 2,048 bits, exponent 65537")
    if modulus[0] < 0x80 or modulus[-1] % 2 == 0:  # noqa: PLR2004 - 2,048 bits: the highest is set
        raise TokenError("key", "its modulus is no odd number of 2,048 bits")
    return PublicKey(int.from_bytes(modulus, "big"))


def encode_key(key: PublicKey) -> bytes:
    """Return the encoding of a key."""
    return _FRAME + key.n.to_bytes(MODULUS_BYTES, "big") + _EXPONENT


def key_list_name(pinned: str) -> str:
    """Return the name of the file of a list, beside the definitions that pin it."""
    return f"token_keys/{pinned}.json"


def encode_key_list(keys: Sequence[bytes]) -> str:
    """Return a list as JSON, the same for everybody."""
    listed = [urlsafe_b64encode(key).rstrip(b"=").decode() for key in keys]
    return json.dumps({"keys": listed})


def decode_key_list(text: str | bytes) -> list[bytes]:
    """Return the encoded keys of a list; raise TokenError if it is none."""
    try:
        listed = json.loads(text)["keys"]
        return [urlsafe_b64decode(key + "=" * (-len(key) % 4)) for key in listed]
    except (LookupError, TypeError, ValueError, RecursionError):
        problem = 'give {"keys": [base64url, ...]}'
    raise TokenError("keys", problem)  # out here: the cause would carry the whole text along


def digest(keys: Sequence[bytes]) -> str:
    """Return the SHA-256, in hex, of the encoded keys in the order of their periods."""
    return hashlib.sha256(b"".join(keys)).hexdigest()


def check_key_list(keys: Sequence[bytes], periods: int, pinned: str) -> list[PublicKey]:
    """Return the keys of a list that is the pinned one; another may be one person's alone."""
    if len(keys) != periods:
        raise TokenError("keys", f"{len(keys)} for {periods} periods")
    parsed = [parse_key(key) for key in keys]
    if digest(keys) != pinned:
        fix = "they are not those of the definition: the issuer may give each person another list"
        raise TokenError("keys", fix)
    return parsed
