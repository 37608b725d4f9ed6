"""The numbers that RFC 9180 and RFC 9292 print, computed here; for HPKE by `pyhpke` as well.

The product encrypts one message under each key, without associated data [RFC 9458, section 4.3].
The vectors have associated data and further sequence numbers: their authentication tags are thus
checked with the other implementation alone, the ciphertexts under each nonce with both.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from pyhpke import AEADId, CipherSuite, KDFId, KEMId, KEMKeyPair

from veilcount_shared.errors import ObliviousError
from veilcount_shared.oblivious_http import hpke
from veilcount_shared.oblivious_http.binary_http import Request, Response
from veilcount_shared.oblivious_http.key_config import AES_128_GCM, CHACHA20_POLY1305

hexed = bytes.fromhex
INFO = b"Ode on a Grecian Urn"
PLAIN = b"Beauty is truth, truth beauty"
TAG_BYTES = 16
SEQUENCES = (0, 1, 2, 4, 255, 256)
EXPORTER_CONTEXTS = (b"", b"\0", b"TestContext")


@dataclass(frozen=True)
class Setup:
    """One base setup of RFC 9180, appendix A: its keys, and all that follows from them."""

    aead: int
    ephemeral: str
    receiver: str
    enc: str
    shared: str
    key: str
    base_nonce: str
    exporter: str
    ciphertexts: tuple[str, ...]  # of SEQUENCES, under the associated data "Count-0" ...
    exported: tuple[str, ...]  # of EXPORTER_CONTEXTS, 32 bytes each


SETUPS = {
    "A.1.1": Setup(
        AES_128_GCM,
        "52c4a758a802cd8b936eceea314432798d5baf2d7e9235dc084ab1b9cfa2f736",
        "4612c550263fc8ad58375df3f557aac531d26850903e55a9f23f21d8534e8ac8",
        "37fda3567bdbd628e88668c3c8d7e97d1d1253b6d4ea6d44c150f741f1bf4431",
        "fe0e18c9f024ce43799ae393c7e8fe8fce9d218875e8227b0187c04e7d2ea1fc",
        "4531685d41d65f03dc48f6b8302c05b0",
        "56d890e5accaaf011cff4b7d",
        "45ff1c2e220db587171952c0592d5f5ebe103f1561a2614e38f2ffd47e99e3f8",
        (
            "f938558b5d72f1a23810b4be2ab4f84331acc02fc97babc53a52ae8218a355a96d8770ac83d07bea87e13c512a",
            "af2d7e9ac9ae7e270f46ba1f975be53c09f8d875bdc8535458c2494e8a6eab251c03d0c22a56b8ca42c2063b84",
            "498dfcabd92e8acedc281e85af1cb4e3e31c7dc394a1ca20e173cb72516491588d96a19ad4a683518973dcc180",
            "583bd32bc67a5994bb8ceaca813d369bca7b2a42408cddef5e22f880b631215a09fc0012bc69fccaa251c0246d",
            "7175db9717964058640a3a11fb9007941a5d1757fda1a6935c805c21af32505bf106deefec4a49ac38d71c9e0a",
            "957f9800542b0b8891badb026d79cc54597cb2d225b54c00c5238c25d05c30e3fbeda97d2e0e1aba483a2df9f2",
        ),
        (
            "3853fe2b4035195a573ffc53856e77058e15d9ea064de3e59f4961d0095250ee",
            "2e8f0b54673c7029649d4eb9d5e33bf1872cf76d623ff164ac185da9e88c21a5",
            "e9e43065102c3836401bed8c3c3c75ae46be1639869391d62c61f1ec7af54931",
        ),
    ),
    "A.2.1": Setup(
        CHACHA20_POLY1305,
        "f4ec9b33b792c372c1d2c2063507b684ef925b8c75a42dbcbf57d63ccd381600",
        "8057991eef8f1f1af18f4a9491d16a1ce333f695d4db8e38da75975c4478e0fb",
        "1afa08d3dec047a643885163f1180476fa7ddb54c6a8029ea33f95796bf2ac4a",
        "0bbe78490412b4bbea4812666f7916932b828bba79942424abb65244930d69a7",
        "ad2744de8e17f4ebba575b3f5f5a8fa1f69c2a07f6e7500bc60ca6e3e3ec1c91",
        "5c4d98150661b848853b547f",
        "a3b010d4994890e2c6968a36f64470d3c824c8f5029942feb11e7a74b2921922",
        (
            "1c5250d8034ec2b784ba2cfd69dbdb8af406cfe3ff938e131f0def8c8b60b4db21993c62ce81883d2dd1b51a28",
            "6b53c051e4199c518de79594e1c4ab18b96f081549d45ce015be002090bb119e85285337cc95ba5f59992dc98c",
            "71146bd6795ccc9c49ce25dda112a48f202ad220559502cef1f34271e0cb4b02b4f10ecac6f48c32f878fae86b",
            "63357a2aa291f5a4e5f27db6baa2af8cf77427c7c1a909e0b37214dd47db122bb153495ff0b02e9e54a50dbe16",
            "18ab939d63ddec9f6ac2b60d61d36a7375d2070c9b683861110757062c52b8880a5f6b3936da9cd6c23ef2a95c",
            "7a4a13e9ef23978e2c520fd4d2e757514ae160cd0cd05e556ef692370ca53076214c0c40d4c728d6ed9e727a5b",
        ),
        (
            "4bbd6243b8bb54cec311fac9df81841b6fd61f56538a775e7c80a9f40160606e",
            "8c1df14732580e5501b00f82b10a1647b40713191b7c1240ac80e2b68808ba69",
            "5acb09211139c43b3090489a9da433e8a30ee7188ba8b0a9a1ccf0c229283e53",
        ),
    ),
}


@pytest.mark.parametrize("setup", SETUPS.values(), ids=SETUPS)
def test_hpke_base_setup(setup: Setup) -> None:
    """RFC 9180, appendices A.1.1 and A.2.1, at both ends."""
    receiver = X25519PrivateKey.from_private_bytes(hexed(setup.receiver))
    ephemeral = X25519PrivateKey.from_private_bytes(hexed(setup.ephemeral))
    public = receiver.public_key().public_bytes_raw()

    enc, sender = hpke.encapsulate(public, setup.aead, INFO, ephemeral)

    assert enc.hex() == setup.enc
    assert hpke._shared_secret(ephemeral, public, enc + public).hex() == setup.shared
    assert hpke.decapsulate(receiver, enc, setup.aead, INFO) == sender
    found = sender.key.hex(), sender.nonce.hex(), sender.exporter.hex()
    assert found == (setup.key, setup.base_nonce, setup.exporter)
    assert [
        sender.export(exporter_context, 32).hex() for exporter_context in EXPORTER_CONTEXTS
    ] == [*setup.exported]
    assert body(sender.seal(PLAIN)) == body(hexed(setup.ciphertexts[0]))
    for sequence, ciphertext in zip(SEQUENCES, setup.ciphertexts, strict=True):
        nonce = (int(setup.base_nonce, 16) ^ sequence).to_bytes(12, "big")  # section 5.2
        sealed = hpke.encrypt(setup.aead, sender.key, nonce, PLAIN)
        assert body(sealed) == body(hexed(ciphertext)), sequence


def body(sealed: bytes) -> bytes:
    """Return a ciphertext without its tag, which alone depends on the associated data."""
    return sealed[:-TAG_BYTES]


@pytest.mark.parametrize("setup", SETUPS.values(), ids=SETUPS)
def test_another_implementation_computes_the_same_numbers(setup: Setup) -> None:
    """Each number above, tags included: one that was mistyped is found."""
    suite = CipherSuite.new(KEMId.DHKEM_X25519_HKDF_SHA256, KDFId.HKDF_SHA256, AEADId(setup.aead))
    receiver = suite.kem.deserialize_private_key(hexed(setup.receiver))
    public = X25519PrivateKey.from_private_bytes(hexed(setup.receiver)).public_key()
    ephemeral = suite.kem.deserialize_private_key(hexed(setup.ephemeral))
    pair = KEMKeyPair(ephemeral, suite.kem.deserialize_public_key(hexed(setup.enc)))

    enc, sender = suite.create_sender_context(
        suite.kem.deserialize_public_key(public.public_bytes_raw()), info=INFO, eks=pair
    )

    assert enc.hex() == setup.enc
    assert suite.kem.decap(enc, receiver).hex() == setup.shared
    assert [
        sender.export(exporter_context, 32).hex() for exporter_context in EXPORTER_CONTEXTS
    ] == [*setup.exported]
    wanted = dict(zip(SEQUENCES, setup.ciphertexts, strict=True))
    for sequence in range(max(SEQUENCES) + 1):
        sealed = sender.seal(PLAIN, aad=b"Count-%d" % sequence)
        assert sealed.hex() == wanted.get(sequence, sealed.hex()), sequence


#: RFC 9292, section 5.1: the request, of known and of indeterminate length
REQUEST = """
    00034745 54056874 74707300 0a2f6865 6c6c6f2e 74787440 6c0a7573 65722d61
    67656e74 34637572 6c2f372e 31362e33 206c6962 6375726c 2f372e31 362e3320
    4f70656e 53534c2f 302e392e 376c207a 6c69622f 312e322e 3304686f 73740f77
    77772e65 78616d70 6c652e63 6f6d0f61 63636570 742d6c61 6e677561 67650665
    6e2c206d 690000
"""
REQUEST_INDETERMINATE = """
    02034745 54056874 74707300 0a2f6865 6c6c6f2e 7478740a 75736572 2d616765
    6e743463 75726c2f 372e3136 2e33206c 69626375 726c2f37 2e31362e 33204f70
    656e5353 4c2f302e 392e376c 207a6c69 622f312e 322e3304 686f7374 0f777777
    2e657861 6d706c65 2e636f6d 0f616363 6570742d 6c616e67 75616765 06656e2c
    206d6900 00000000 00000000 00000000
"""
#: RFC 9292, section 5.2: the response that was chunked, of known length, with a trailer
RESPONSE = """
    0140c800 1d546869 7320636f 6e74656e 7420636f 6e746169 6e732043 524c462e
    0d0a0d07 74726169 6c657204 74657874
"""


def test_binary_http_request() -> None:
    """It survives to the byte; what may be cut off or padded changes nothing (section 3.8)."""
    raw = hexed(REQUEST)
    agent = "curl/7.16.3 libcurl/7.16.3 OpenSSL/0.9.7l zlib/1.2.3"
    fields = (("user-agent", agent), ("host", "www.example.com"), ("accept-language", "en, mi"))
    request = Request("GET", "/hello.txt", fields)

    assert request.encode() == raw
    for same in (raw, raw[:-1], raw[:-2], raw + bytes(10)):
        assert Request.decode(same) == request
    with pytest.raises(ObliviousError):
        Request.decode(raw[:-3])


def test_binary_http_response() -> None:
    """Its content is read, and its trailer left out: no response of the gateway has any."""
    raw = hexed(RESPONSE)
    response = Response(200, (), b"This content contains CRLF.\r\n")

    assert Response.decode(raw) == response
    assert Response.decode(response.encode() + bytes(3)) == response
    with pytest.raises(ObliviousError):
        Response.decode(raw[:-1])


def test_binary_http_of_indeterminate_length_is_refused() -> None:
    """Known length is all that this client sends: the gateway takes nothing else."""
    with pytest.raises(ObliviousError, match="known length"):
        Request.decode(hexed(REQUEST_INDETERMINATE))
