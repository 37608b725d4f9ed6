"""The published numbers of an issuer: for each period, how many accounts it issued tokens to.

An issuer that signs a period's tokens for one account alone recognizes that account's report, and
no blinding keeps it from that. So it publishes one number a period, final when the period begins,
as one file for everybody: people who compare their copies see whether it publishes the same to all.

    line = {"accounts": A, "before": B, "begins": D, "collection": F, "period": P, "signature": S}

B is the SHA-256 of the line before (zeros before the first), without its newline, so a copy pins
all lines up to its last one; S is an Ed25519 signature [RFC 8032] of the other five. Nothing here
reads a store or a clock: whoever has a file and the issuer's public key can check it.
"""

from __future__ import annotations

import hashlib
from base64 import urlsafe_b64decode
from collections.abc import Sequence
from datetime import date
from typing import Annotated

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from msgspec import Meta, Struct

from veilcount_aggregator.errors import NumbersInvalid
from veilcount_shared.wire import encode_base64

_PURPOSE = b"veilcount issued numbers 1\0"  # no signature of anything else is a line
START = "0" * 64  # the hash before the first line

Sha256 = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]


class IssuedNumber(Struct, frozen=True, forbid_unknown_fields=True):
    """How many accounts a period's tokens were issued to; its fields are in the order of a line."""

    accounts: Annotated[int, Meta(ge=0)]
    before: Sha256
    begins: date
    collection: Sha256
    period: Annotated[int, Meta(ge=0, le=0xFFFF)]
    signature: str = ""

    def line(self) -> bytes:
        """Return the line of the file, without its newline."""
        return msgspec.json.encode(self)

    def signed_message(self) -> bytes:
        """Return the bytes that the issuer signs."""
        return _PURPOSE + msgspec.structs.replace(self, signature="").line()

    def sign(self, key: Ed25519PrivateKey) -> IssuedNumber:
        """Return this number with its signature; the same one for the same number."""
        return msgspec.structs.replace(
            self, signature=encode_base64(key.sign(self.signed_message()))
        )

    def is_signed_by(self, key: Ed25519PublicKey) -> bool:
        """Whether the signature is the issuer's."""
        try:
            key.verify(_decode(self.signature), self.signed_message())
        except (InvalidSignature, ValueError):
            return False
        return True


def hash_line(line: bytes) -> str:
    """Return what the next line has as `before`."""
    return hashlib.sha256(line).hexdigest()


def encode_numbers(lines: Sequence[bytes]) -> bytes:
    """Return the file of these lines."""
    return b"".join(line + b"\n" for line in lines)


def verify_numbers(content: bytes, key: Ed25519PublicKey) -> list[IssuedNumber]:
    """Return the numbers of a file, or raise NumbersInvalid at the first line that is not right.

    Lines that are missing at the end show only against another copy: a file grows.
    """
    lines = content.split(b"\n")
    if lines.pop():
        raise NumbersInvalid(len(lines) + 1, "it has no end")
    numbers: list[IssuedNumber] = []
    before = START
    for line in lines:
        numbers.append(_follow(numbers, before, line, key))
        before = hash_line(line)
    return numbers


def first_difference(
    numbers: Sequence[IssuedNumber], others: Sequence[IssuedNumber]
) -> tuple[IssuedNumber, IssuedNumber] | None:
    """Return the first two numbers of one period that differ; None: one file begins the other."""
    pairs = zip(numbers, others, strict=False)  # one of them may be the older copy
    return next((pair for pair in pairs if pair[0] != pair[1]), None)


def _follow(
    numbers: Sequence[IssuedNumber], before: str, line: bytes, key: Ed25519PublicKey
) -> IssuedNumber:
    """Return the number of the line after these."""
    place = len(numbers) + 1
    number = _parse(place, line)
    if not number.is_signed_by(key):
        raise NumbersInvalid(place, "its signature is not of this key")
    if (number.period, number.before) != (len(numbers), before):
        raise NumbersInvalid(place, "it does not follow the line before it")
    if numbers and not _is_next(numbers[-1], number):
        raise NumbersInvalid(place, "its collection or first day does not follow the line before")
    return number


def _is_next(earlier: IssuedNumber, number: IssuedNumber) -> bool:
    return number.collection == earlier.collection and number.begins > earlier.begins


def _parse(place: int, line: bytes) -> IssuedNumber:
    try:
        number = msgspec.json.decode(line, type=IssuedNumber)
    except msgspec.MsgspecError:
        raise NumbersInvalid(place, "it is no line of such a file") from None
    if number.line() != line:
        raise NumbersInvalid(place, "it is not written as the issuer writes it")
    return number


def _decode(text: str) -> bytes:
    """Return the bytes of a signature; ValueError: written in another way than the issuer's.

    Else anybody could rewrite a line and show it as a second one of the issuer's.
    """
    raw = urlsafe_b64decode(text + "=" * (-len(text) % 4))
    if encode_base64(raw) != text:
        raise ValueError("a signature is not encoded uniquely")
    return raw
