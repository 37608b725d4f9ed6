"""A request's bytes to columns, or an error that names the place.

Each spelling has a quick reader, which returns only what is surely right; all else goes to the
decoders of `veilcount_shared`, which decide. What those would chew on for long is refused before.
"""

from __future__ import annotations

import zlib

from veilcount_shared.errors import BadField, WireError, WrongLength
from veilcount_shared.report import Batch
from veilcount_shared.wire import BINARY_TYPE, JSON_TYPE, MAX_BODY, decode_binary, decode_json

from .binary_fast import decode_packed_fast
from .columns import DecodedBody, columns_from_reports
from .json_fast import decode_json_fast

GZIP = "gzip"
_GZIP_WINDOW = 31  # zlib's number for the largest window in a gzip wrapping
_PLAIN = frozenset({"", "identity"})

#: a batch has one list, a thousand objects and 6,000 keys: no slip of a client makes it this many
_MOST = {b"[": 2_000, b"{": 6_000, b":": 20_000, b",": 20_000}

#: a number of 200 digits: Python reads one in a time that grows with its square. Outside of strings
#: a number follows one of these marks (a minus apart), and inside of them a batch has none of them
_SHAPES = bytes.maketrans(b"0123456789:,[ \t\r\n", b"9999999999:::::::")
_LONG_NUMBER = b":" + b"9" * 200
_MOST_LONG_NUMBERS = 20


class UnsupportedBody(WireError):
    """A body in a type or a coding that is not read here."""


class BodyTooLarge(WrongLength):
    """A body that is longer than any batch."""


def decode_body(content_type: str, encoding: str, raw: bytes) -> DecodedBody:
    """Return what a body says; the two headers are as they were sent, or empty."""
    kind = content_type.partition(";")[0].strip().lower()
    coding = encoding.strip().lower()
    if kind == BINARY_TYPE:
        if coding not in _PLAIN:  # the protocol's own reason
            why = "a packed body is never compressed: its length would depend on its messages"
            raise UnsupportedBody("Content-Encoding", why)
        return decode_packed_fast(_fitting(raw)) or _body(decode_binary(raw))
    if kind == JSON_TYPE:
        body = _fitting(_plain(coding, raw))
        return decode_json_fast(body) or _body(decode_json(_uncrowded(body)))
    raise UnsupportedBody("Content-Type", f"give {JSON_TYPE} or {BINARY_TYPE}")


def _body(batch: Batch) -> DecodedBody:
    return DecodedBody(
        len(batch.reports), columns_from_reports(batch.reports), batch.losses, batch.test
    )


def _fitting(body: bytes) -> bytes:
    if len(body) > MAX_BODY:
        raise too_large()
    return body


def too_large() -> BodyTooLarge:
    """Return the error of a body whose length alone refuses it."""
    return BodyTooLarge("body", f"{MAX_BODY:,} bytes at most")


def _plain(coding: str, raw: bytes) -> bytes:
    if coding in _PLAIN:
        return raw
    if coding != GZIP:
        raise UnsupportedBody("Content-Encoding", f"give none, or {GZIP}")
    stream = zlib.decompressobj(_GZIP_WINDOW)
    try:
        body = stream.decompress(raw, MAX_BODY + 1)  # never further: a bomb stays packed
    except zlib.error:
        body = b""
    if len(body) <= MAX_BODY and (not stream.eof or stream.unused_data):
        raise BadField("body", f"not one whole {GZIP} stream")
    return body


def _uncrowded(body: bytes) -> bytes:
    """Refuse what has more parts than any batch: the exact place would take too long to find."""
    crowded = any(body.count(mark) > most for mark, most in _MOST.items())
    if crowded or body.translate(_SHAPES, b"-").count(_LONG_NUMBER) > _MOST_LONG_NUMBERS:
        raise BadField("body", "no batch has so many parts")
    return body
