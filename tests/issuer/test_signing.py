"""The signer: the vectors of RFC 9474, what it refuses, and what never leaves it."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from veilcount_aggregator.errors import SigningFault, SigningUnavailable
from veilcount_issuer.signing import SigningKey
from veilcount_shared.errors import TokenError
from veilcount_shared.installing import install
from veilcount_shared.tokens import finalize

VECTORS = json.loads((Path(__file__).parents[1] / "data" / "rfc9474.json").read_text())


def signing_key(vector: dict[str, str]) -> SigningKey:
    return SigningKey.from_primes(*(int(vector[name], 16) for name in ("p", "q", "e", "d")))


KEY = signing_key(VECTORS[0])
BLINDED = bytes.fromhex(VECTORS[0]["blinded_msg"])


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["name"])
def test_rfc_9474(vector: dict[str, str]) -> None:
    """The same signature each time, though each time another base is exponentiated."""
    key, blinded = signing_key(vector), bytes.fromhex(vector["blinded_msg"])
    signed = {key.sign(blinded) for _ in range(2)}
    message, salt = bytes.fromhex(vector["input_msg"]), bytes.fromhex(vector["salt"])
    token = finalize(key.public, message, min(signed), int(vector["inv"], 16), len(salt))

    assert {each.hex() for each in signed} == {vector["blind_sig"]}
    assert token.hex() == vector["sig"]


def test_nobody_chooses_what_is_exponentiated(monkeypatch: pytest.MonkeyPatch) -> None:
    """The private exponent meets another, uniform base each time, whatever was sent."""
    bases: list[int] = []
    original = SigningKey._exponentiate

    def record(key: SigningKey, message: int) -> int:
        bases.append(int(message))
        return original(key, message)

    monkeypatch.setattr(SigningKey, "_exponentiate", record)
    for _ in range(3):
        KEY.sign(BLINDED)

    assert len({*bases, int.from_bytes(BLINDED, "big")}) == 4


@pytest.mark.parametrize("half", ["d_p", "d_q", "q_inverse"])
def test_a_wrong_half_never_leaves(half: str) -> None:
    """A fault of one half alone would reveal a factor of the modulus."""
    faulty = replace(KEY, **{half: getattr(KEY, half) ^ 4})
    with pytest.raises(SigningFault):
        faulty.sign(BLINDED)


def test_what_is_no_blinded_message_is_refused() -> None:
    n, size = KEY.public.n, KEY.public.size
    numbers = (0, 1, n - 1, n, n + 1, n + int.from_bytes(BLINDED, "big") % 2, 256**size - 1)
    whole = [number.to_bytes(size, "big") for number in numbers]
    for wrong in (*whole, BLINDED[1:], b"\0" + BLINDED, b""):
        with pytest.raises(TokenError, match="blinded"):
            KEY.sign(wrong)
    for least_or_most in (2, n - 2):
        assert KEY.sign(least_or_most.to_bytes(size, "big"))


def test_without_gmpy2_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gmpy2", None)
    with pytest.raises(SigningUnavailable, match=re.escape(install("issuer"))):
        KEY.sign(BLINDED)


def test_a_key_is_not_shown() -> None:
    assert str(KEY.p) not in repr(KEY)
