"""A file of published numbers: what is changed in it is detected, and two copies are compared."""

from __future__ import annotations

from base64 import urlsafe_b64decode
from datetime import date, timedelta

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from veilcount_aggregator.errors import NumbersInvalid
from veilcount_issuer import issued_numbers
from veilcount_issuer.issued_numbers import (
    START,
    IssuedNumber,
    encode_numbers,
    first_difference,
    hash_line,
    verify_numbers,
)

KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
OTHER_KEY = Ed25519PrivateKey.from_private_bytes(bytes(32))
FIRST_DAY = date(2026, 11, 2)
COLLECTION, ANOTHER = "ab" * 32, "cd" * 32
Lines = list[bytes]


def chain(
    accounts: list[int], key: Ed25519PrivateKey = KEY, collection: str = COLLECTION, days: int = 7
) -> Lines:
    """Return the lines of these numbers."""
    lines: Lines = []
    for period, number in enumerate(accounts):
        unsigned = IssuedNumber(
            accounts=number,
            before=hash_line(lines[-1]) if lines else START,
            begins=FIRST_DAY + timedelta(days=days * period),
            collection=collection,
            period=period,
        )
        lines.append(unsigned.sign(key).line())
    return lines


GENUINE = chain([3, 0, 412])
FILE = encode_numbers(GENUINE)


def numbers(content: bytes) -> list[IssuedNumber]:
    return verify_numbers(content, KEY.public_key())


def test_a_genuine_file_and_what_it_began_with_verify() -> None:
    for length in range(4):
        read = numbers(encode_numbers(GENUINE[:length]))
        assert [each.accounts for each in read] == [3, 0, 412][:length]
        assert encode_numbers([each.line() for each in read]) == encode_numbers(GENUINE[:length])


def test_the_form_of_a_line_is_this() -> None:
    """Whoever compares copies in years to come reads it: it is frozen."""
    assert GENUINE[0] == (
        b'{"accounts":3,"before":"' + b"0" * 64 + b'","begins":"2026-11-02","collection":"'
        + b"ab" * 32 + b'","period":0,"signature":"JGv2ouUFAHNTzFStfLJHVZszovfbDo5bzDjyld_JL3F0'
        b'DZEjmsl3DK6Rx0DOW5HGn31FDWuVS6iWGuccopDFCQ"}'
    )  # fmt: skip


def test_every_changed_byte_is_detected() -> None:
    for place in range(len(FILE)):
        for bit in (1, 2, 4, 32):
            changed = bytearray(FILE)
            changed[place] ^= bit
            with pytest.raises(NumbersInvalid):
                numbers(bytes(changed))


def test_every_cut_within_a_line_is_detected() -> None:
    """A cut between lines is an older file: it shows against another copy alone."""
    ends = {len(encode_numbers(GENUINE[:length])) for length in range(4)}
    for length in set(range(len(FILE))) - ends:
        with pytest.raises(NumbersInvalid, match="it has no end"):
            numbers(FILE[:length])


@pytest.mark.parametrize(
    ("lines", "line"),
    [
        (GENUINE[1:], 1),
        ([GENUINE[0], GENUINE[2]], 2),
        ([GENUINE[1], GENUINE[0], GENUINE[2]], 1),
        ([*GENUINE[:2], GENUINE[1]], 3),
        ([GENUINE[0], chain([4, 0])[1]], 2),
        (chain([3, 0], OTHER_KEY), 1),
        ([GENUINE[0], chain([3, 0], OTHER_KEY)[1]], 2),
        (chain([3, 0], days=0), 2),
        (chain([3, 0], days=-1), 2),
        ([GENUINE[0].replace(b":3", b": 3")], 1),
        ([GENUINE[0].replace(b'"accounts":3,', b'"accounts":3,"accounts":3,')], 1),
        ([GENUINE[0].replace(b'"accounts":3,', b"")], 1),
        ([GENUINE[0].replace(b'"accounts":3', b'"accounts":-3')], 1),
        ([GENUINE[0], b""], 2),
    ],
    ids=[
        "first line removed", "line removed", "reordered", "repeated", "of another chain",
        "another key", "another key in the chain", "same day", "earlier day", "space",
        "field twice", "field missing", "negative", "empty line",
    ],
)  # fmt: skip
def test_a_forged_edited_or_moved_line_is_detected(lines: Lines, line: int) -> None:
    with pytest.raises(NumbersInvalid) as invalid:
        numbers(encode_numbers(lines))

    assert invalid.value.line == line


def test_a_line_of_another_collection_does_not_follow() -> None:
    """Signed by the issuer, and with the right hash: only the collection differs."""
    second = IssuedNumber(0, hash_line(GENUINE[0]), date(2026, 11, 9), ANOTHER, 1).sign(KEY)
    with pytest.raises(NumbersInvalid, match="line 2: its collection"):
        numbers(encode_numbers([GENUINE[0], second.line()]))


def rewritten() -> bytes:
    """Return a genuine line whose signature is encoded in another way."""
    text = GENUINE[0].decode()
    last = text[-3]
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    other = alphabet[alphabet.index(last) ^ 1]
    return f'{text[:-3]}{other}"}}\n'.encode()


def test_nobody_can_rewrite_a_line_into_a_second_one_of_the_issuers() -> None:
    with pytest.raises(NumbersInvalid, match="signature"):
        numbers(rewritten())


def test_a_lenient_decoder_of_signatures_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: base64 whose last bits are ignored. A rewritten line accuses an honest issuer."""
    monkeypatch.setattr(issued_numbers, "_decode", lambda text: urlsafe_b64decode(text + "=="))

    assert first_difference(numbers(FILE), numbers(rewritten())) is not None


def test_an_older_copy_does_not_differ() -> None:
    for length in range(4):
        assert first_difference(numbers(FILE), numbers(encode_numbers(GENUINE[:length]))) is None


def test_two_numbers_of_one_period_differ() -> None:
    difference = first_difference(numbers(FILE), numbers(encode_numbers(chain([3, 1, 412, 7]))))

    assert difference is not None
    assert [(each.period, each.accounts) for each in difference] == [(1, 0), (1, 1)]
