"""Tokens: what follows from a secret, what the issuer signs, which signatures verify."""

from __future__ import annotations

from typing import Any

from veilcount_shared.errors import TokenError
from veilcount_shared.schedule import derive_token_salt
from veilcount_shared.tokens import (
    PublicKey,
    SlotSecret,
    check_key_list,
    decode_key_list,
    digest,
    encode_key,
    encode_key_list,
    parse_key,
    verify,
)
from veilcount_shared.tokens.blind_rsa import blind_with

Vector = dict[str, Any]


def tokens(document: Vector) -> Vector:
    """Return the document with all that follows from secrets and keys."""
    private = document["private"]
    key = PublicKey(int(private["n"], 16))
    return document | {
        "keys": _keys([key, PublicKey(int(document["other"], 16))]),
        "slots": [_slot(key, int(private["d"], 16), row["slot"]) for row in document["slots"]],
        "verified": [
            [message, token, verify(key, bytes.fromhex(message), bytes.fromhex(token))]
            for message, token, _ in document["verified"]
        ],
        "refused": [
            [why, encoded, _is_refused(encoded)] for why, encoded, _ in document["refused"]
        ],
    }


def _keys(keys: list[PublicKey]) -> Vector:
    encoded = [encode_key(key) for key in keys]
    written = encode_key_list(encoded)
    if check_key_list(decode_key_list(written), len(keys), digest(encoded)) != keys:
        raise AssertionError("the list is another one when it is read back")
    return {"spki": [each.hex() for each in encoded], "list": written, "digest": digest(encoded)}


def _slot(key: PublicKey, d: int, stated: list[Any]) -> Vector:
    secret, fingerprint, period, answer = stated
    slot = SlotSecret(bytes.fromhex(secret), fingerprint, period, answer)
    blinding = slot.blind(key)
    signed = pow(int.from_bytes(blinding.blinded, "big"), d, key.n).to_bytes(key.size, "big")
    return {
        "slot": stated,
        "pseudonym": slot.pseudonym.hex(),
        "salt": derive_token_salt(slot.secret, fingerprint, period, answer).hex(),
        "message": slot.message.hex(),
        "blinded": blinding.blinded.hex(),
        "signed": signed.hex(),
        "token": slot.finalize(key, signed).hex(),
    }


def _is_refused(encoded: str) -> bool:
    try:
        parse_key(bytes.fromhex(encoded))
    except TokenError:
        return True
    return False


# -- which are pinned ------------------------------------------------------------------------------

#: the third is blinded by its second draw; the fourth token and the modulus fit into 256 bytes
_SLOTS = [
    *((bytes(range(32)).hex(), "ab" * 32, 0, 0), (bytes(range(32)).hex(), "ab" * 32, 0, 1)),
    *((bytes(range(32)).hex(), "ab" * 32, 3, 0), (bytes(range(32)).hex(), "ab" * 32, 5, 0)),
    *((bytes(range(32)).hex(), "ab" * 32, 300, 0), ("ff" * 32, "0123456789abcdef" * 4, 1, 2)),
]


def token_inputs(private: Vector, other: str) -> Vector:
    """Return what is pinned of tokens under an issuer's key, without the results."""
    document = tokens(
        {
            "about": "`private`: an issuer's test key, of RSA. `keys`: its public key and `other`,"
            " of periods 0 and 1: the encoding of each, the list, the digest that a definition"
            " pins. `slots`: secret, fingerprint, period and number of the answer; what follows;"
            " `signed` is the issuer's reply, all in hexadecimal. `verified`: a message, a"
            " signature, whether it verifies. `refused`: encodings of keys, and whether they are.",
            "private": private,
            "other": other,
            "slots": [{"slot": list(slot)} for slot in _SLOTS],
            "verified": [],
            "refused": [],
        }
    )
    first, second = document["slots"][:2]
    modulus, spki = int(private["n"], 16), document["keys"]["spki"][0]
    fourth = document["slots"][3]
    above = int(fourth["token"], 16) + modulus
    document["verified"] = [
        [first["message"], first["token"], None],
        [first["message"], second["token"], None],
        [first["message"][:-2] + "00", first["token"], None],
        [first["message"], first["token"][:-2] + "00", None],
        [fourth["message"], f"{above:0512x}", None],
        [fourth["message"], f"00{fourth['token']}", None],
        [first["message"], "00" * 256, None],
        [first["message"], _signed(first["message"], 20, private), None],
        [first["message"], _signed(first["message"], 48, private, 0x10), None],
    ]
    document["refused"] = [
        ["the key", spki, None],
        ["a byte more", spki + "00", None],
        ["exponent 3", spki[:-10] + "0203000003", None],
        ["an even modulus", f"{spki[:-12]}{0:02x}{spki[-10:]}", None],
        ["2,047 bits", f"{spki[:66]}7f{spki[68:]}", None],
    ]
    return document


def _signed(message: str, salt_bytes: int, private: Vector, change: int = 0) -> str:
    """Return a signature of a message with a salt of another length, or another trailer."""
    n, d = (int(private[key], 16) for key in ("n", "d"))
    encoded = blind_with(PublicKey(n), bytes.fromhex(message), bytes(salt_bytes), 1).blinded
    return f"{pow(int.from_bytes(encoded, 'big') ^ change, d, n):0512x}"
