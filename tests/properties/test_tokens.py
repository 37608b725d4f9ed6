"""Blind signatures: the vectors of RFC 9474, another implementation, and what must not verify."""

import base64
import hmac
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from veilcount_client.testing import SeededRandomSource
from veilcount_shared import schedule
from veilcount_shared.errors import TokenError
from veilcount_shared.tokens import (
    PublicKey,
    SlotSecret,
    blind,
    check_key_list,
    digest,
    encode_key,
    finalize,
    parse_key,
    verify,
)
from veilcount_shared.tokens.blind_rsa import SALT_BYTES, blind_with

VECTORS = json.loads((Path(__file__).parent.parent / "data" / "rfc9474.json").read_text())
PSS = padding.PSS(padding.MGF1(hashes.SHA384()), 48)


@pytest.fixture(scope="module")
def signer() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, 2048)


def public(signer: rsa.RSAPrivateKey) -> PublicKey:
    return PublicKey(signer.public_key().public_numbers().n)


def sign(signer: rsa.RSAPrivateKey, blinded: bytes) -> bytes:
    n, d = signer.public_key().public_numbers().n, signer.private_numbers().d
    return pow(int.from_bytes(blinded, "big"), d, n).to_bytes(256, "big")


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["name"])
def test_rfc_9474(vector: dict[str, str]) -> None:
    n, e, d, inverse = (int(vector[name], 16) for name in ("n", "e", "d", "inv"))
    message = bytes.fromhex(vector["msg_prefix"] + vector["msg"])
    salt = bytes.fromhex(vector["salt"])
    key = PublicKey(n, e)
    assert message.hex() == vector["input_msg"]
    blinded = blind_with(key, message, salt, inverse).blinded
    assert blinded.hex() == vector["blinded_msg"]
    signed = pow(int.from_bytes(blinded, "big"), d, n).to_bytes(key.size, "big")
    assert signed.hex() == vector["blind_sig"]
    signature = finalize(key, message, signed, inverse, len(salt))
    assert signature.hex() == vector["sig"]
    assert not verify(key, message + b"0", signature, len(salt))


def test_another_implementation_verifies_it(signer: rsa.RSAPrivateKey) -> None:
    key = public(signer)
    blinding = blind(key, b"a slot", bytes(SALT_BYTES), SeededRandomSource(1))
    token = finalize(key, b"a slot", sign(signer, blinding.blinded), blinding.inverse)
    signer.public_key().verify(token, b"a slot", PSS, hashes.SHA384())
    other = signer.sign(b"a slot", PSS, hashes.SHA384())
    assert verify(key, b"a slot", other)


def test_no_change_of_one_byte_verifies(signer: rsa.RSAPrivateKey) -> None:
    key = public(signer)
    token = signer.sign(b"a slot", PSS, hashes.SHA384())
    for place in range(256):
        changed = bytearray(token)
        changed[place] ^= 1 + place % 255
        assert not verify(key, b"a slot", bytes(changed))
    assert not verify(key, b"a slot", token[1:])
    assert not verify(key, b"a slot", (int.from_bytes(token, "big") + key.n).to_bytes(257, "big"))


def test_a_slot_asks_alike_twice_and_no_two_slots_are_alike() -> None:
    key = PublicKey(int(VECTORS[0]["n"], 16))
    slots = [
        SlotSecret(bytes([person]) * 32, series * 64, period, answer)
        for person in (1, 2)
        for series in "ab"
        for period in (0, 1)
        for answer in (0, 1)
    ]
    assert [slot.blind(key) for slot in slots] == [slot.blind(key) for slot in slots]
    assert len({slot.blind(key).blinded for slot in slots}) == len(slots)
    assert len({slot.pseudonym for slot in slots}) == len(slots)


def spell(*fields: str | int) -> bytes:
    parts = [str(field).encode() for field in ("veilcount", 1, *fields)]
    return b"".join(len(part).to_bytes(4, "big") + part for part in parts)


def test_pseudonym_and_salt_follow_from_the_secret_as_the_specification_says(
    signer: rsa.RSAPrivateKey,
) -> None:
    key, secret, slot = public(signer), bytes(range(32)), ("ab" * 32, 3, 1)
    named = SlotSecret(secret, *slot)
    pseudonym = hmac.digest(secret, spell("token", "pseudonym", *slot), "sha256")[:16]
    salt = hmac.digest(secret, spell("token", "salt", *slot), "sha384")

    assert named.pseudonym == pseudonym
    assert schedule.derive_token_salt(secret, *slot) == salt
    blinding = named.blind(key)
    assert blinding == blind_with(key, named.message, salt, blinding.inverse)


def test_a_reply_that_is_no_signature_is_refused(signer: rsa.RSAPrivateKey) -> None:
    key, slot = public(signer), SlotSecret(bytes(32), "a" * 64, 3, 0)
    signed = sign(signer, slot.blind(key).blinded)
    assert verify(key, slot.message, slot.finalize(key, signed))
    other = rsa.generate_private_key(65537, 2048)
    for wrong in (sign(other, slot.blind(key).blinded)[:255], bytes(256), signed[::-1]):
        with pytest.raises(TokenError):
            slot.finalize(key, wrong)


def test_a_list_is_the_pinned_one_or_refused(signer: rsa.RSAPrivateKey) -> None:
    spki = signer.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    other = encode_key(PublicKey(public(signer).n - 2))
    assert encode_key(parse_key(spki)) == spki
    keys = [spki, other]
    assert check_key_list(keys, 2, digest(keys))[0] == public(signer)
    for wrong, periods in ((keys, 3), (keys[::-1], 2), ([spki, spki], 2)):
        with pytest.raises(TokenError):
            check_key_list(wrong, periods, digest(keys))


@pytest.mark.parametrize(
    "change", [lambda key: key[:-1], lambda key: key + b"0", lambda key: b"1" + key[1:]]
)
def test_an_encoding_of_another_form_is_refused(
    signer: rsa.RSAPrivateKey, change: Callable[[bytes], bytes]
) -> None:
    with pytest.raises(TokenError):
        parse_key(change(encode_key(public(signer))))
    with pytest.raises(TokenError):
        parse_key(base64.b64encode(encode_key(public(signer))))
