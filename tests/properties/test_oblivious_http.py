"""Oblivious HTTP: the vectors of its RFC, another implementation, and every changed byte."""

from __future__ import annotations

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st
from pyhpke import AEADId, CipherSuite, KDFId, KEMId

from veilcount_shared.errors import ObliviousError, UnknownKey
from veilcount_shared.oblivious_http.binary_http import MAX_FIELDS, Request, Response
from veilcount_shared.oblivious_http.encapsulation import open_request, seal_request
from veilcount_shared.oblivious_http.hpke import decapsulate, encapsulate
from veilcount_shared.oblivious_http.key_config import KeyConfig, decode_configs, encode_configs

hexed = bytes.fromhex
#: RFC 9458, appendix A
PRIVATE = X25519PrivateKey.from_private_bytes(
    hexed("3c168975674b2fa8e465970b79c8dcf09f1c741626480bd4c6162fc5b6a98e1a")
)
CONFIG = hexed(
    "01002031e1f05a740102115220e9af918f738674aec95f54db6e04eb705aae8e79815500080001000100010003"
)
EPHEMERAL = X25519PrivateKey.from_private_bytes(
    hexed("bc51d5e930bda26589890ac7032f70ad12e4ecb37abb1b65b1256c9c48999c73")
)
PLAIN = hexed("00034745540568747470730b6578616d706c652e636f6d012f")
SEALED = hexed(
    "010020000100014b28f881333e7c164ffc499ad9796f877f4e1051ee6d31bad19dec96c208b4726374e4691359"
    "06992e1268c594d2a10c695d858c40a026e7965e7d86b83dd440b2c0185204b4d63525"
)
NONCE = hexed("c789e7151fcba46158ca84b04464910d")
ANSWER = hexed("c789e7151fcba46158ca84b04464910d86f9013e404feea014e7be4a441f234f857fbd")
#: RFC 9180, appendices A.1.1 (AES-128-GCM) and A.2.1 (ChaCha20-Poly1305): ephemeral and receiver's
#: private key, and the encapsulated key that follows
INFO = hexed("4f6465206f6e2061204772656369616e2055726e")


def test_rfc_9458() -> None:
    (config,) = decode_configs(len(CONFIG).to_bytes(2, "big") + CONFIG)
    sealed, sender_side = seal_request(config, PLAIN, EPHEMERAL)
    plain, gateway_side = open_request({1: PRIVATE}, SEALED)

    assert config.public == PRIVATE.public_key().public_bytes_raw()
    assert config.encode() == CONFIG
    assert sealed == SEALED
    assert plain == PLAIN
    assert gateway_side.seal(hexed("0140c8"), NONCE) == ANSWER
    assert sender_side.open(ANSWER) == hexed("0140c8")
    assert Request.decode(PLAIN) == Request("GET", "/", authority="example.com")
    assert Response.decode(hexed("0140c8")) == Response(200)


@pytest.mark.parametrize("aead", [1, 3])
def test_another_implementation_opens_what_this_one_seals_and_the_reverse(aead: int) -> None:
    private = X25519PrivateKey.generate()
    suite = CipherSuite.new(KEMId.DHKEM_X25519_HKDF_SHA256, KDFId.HKDF_SHA256, AEADId(aead))
    public = private.public_key().public_bytes_raw()
    theirs_public = suite.kem.deserialize_public_key(public)
    theirs_private = suite.kem.deserialize_private_key(private.private_bytes_raw())

    enc, ours = encapsulate(public, aead, INFO)
    receiver = suite.create_recipient_context(enc, theirs_private, info=INFO)
    assert receiver.open(ours.seal(b"a report")) == b"a report"
    assert receiver.export(b"context", 32) == ours.export(b"context", 32)

    enc, sender = suite.create_sender_context(theirs_public, info=INFO)
    receiving = decapsulate(private, enc, aead, INFO)
    assert receiving.open(sender.seal(b"a report")) == b"a report"
    assert receiving.export(b"context", 32) == sender.export(b"context", 32)


def test_no_changed_byte_is_opened() -> None:
    private = X25519PrivateKey.generate()
    config = KeyConfig(7, private.public_key().public_bytes_raw())
    sealed, sender_side = seal_request(config, b"a report")
    _, gateway_side = open_request({7: private}, sealed)
    answer = gateway_side.seal(b"verdicts", bytes(range(16)))
    for place in range(len(sealed)):
        changed = sealed[:place] + bytes([sealed[place] ^ 1]) + sealed[place + 1 :]
        with pytest.raises(ObliviousError):
            open_request({7: private}, changed)
    for place in range(len(answer)):
        changed = answer[:place] + bytes([answer[place] ^ 1]) + answer[place + 1 :]
        with pytest.raises(ObliviousError):
            sender_side.open(changed)
    for size in range(len(sealed)):
        with pytest.raises(ObliviousError):
            open_request({7: private}, sealed[:size])
    with pytest.raises(UnknownKey):
        open_request({8: private}, sealed)


texts = st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=80)
fields = st.lists(st.tuples(texts.filter(bool), texts), max_size=4).map(tuple)
contents = st.binary(max_size=300)


@given(method=texts, path=texts, fields=fields, content=contents, padding=st.integers(0, 40))
def test_messages_survive(
    method: str, path: str, fields: tuple[tuple[str, str], ...], content: bytes, padding: int
) -> None:
    request, response = Request(method, path, fields, content), Response(404, fields, content)

    assert Request.decode(request.encode() + bytes(padding)) == request
    assert Response.decode(response.encode() + bytes(padding)) == response


def test_fields_have_names_and_are_few() -> None:
    """Each takes work: of a body full of them, a gateway's event loop would stand for a second."""
    most = (("a", ""),) * MAX_FIELDS

    assert Request.decode(Request("GET", "/", most).encode()).fields == most
    for wrong in ((*most, ("a", "")), (("", "a"),)):
        with pytest.raises(ObliviousError, match="fields"):
            Request.decode(Request("GET", "/", wrong).encode())


@given(raw=st.binary(max_size=120))
def test_any_bytes_are_a_message_or_a_clean_error(raw: bytes) -> None:
    for decode in (Request.decode, Response.decode, decode_configs, open_with_key):
        try:
            decode(raw)
        except ObliviousError:
            continue


def open_with_key(raw: bytes) -> object:
    return open_request({1: PRIVATE}, raw)


def test_a_list_of_keys_survives_and_unknown_algorithms_are_skipped() -> None:
    configs = [KeyConfig(1, bytes(32)), KeyConfig(2, bytes([9]) * 32, (3,))]
    strange = (0).to_bytes(1) + (0x10).to_bytes(2, "big") + bytes(60)

    assert decode_configs(encode_configs(configs)) == configs
    mixed = len(strange).to_bytes(2, "big") + strange + encode_configs(configs)
    assert decode_configs(mixed) == configs
    for wrong in (b"", b"\0", encode_configs(configs)[:-1], b"\0\0"):
        with pytest.raises(ObliviousError):
            decode_configs(wrong)
