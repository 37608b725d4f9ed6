"""A request's bytes to columns, or an error that names the place.

A fast decoder returns what is surely right; all else goes to `veilcount_shared`, which names the
place. It is searched for among a few reports only: among a thousand that costs as much as several
devices' requests, and no device sends a body that has one.
"""

from __future__ import annotations

from veilcount_shared.errors import WireError, WrongLength
from veilcount_shared.report import Batch
from veilcount_shared.wire import BINARY_TYPE, MAX_BODY, decode_binary

from .binary_fast import decode_binary_fast
from .columns import DecodedBody, columns_from_reports

#: reports of a body among which an invalid one is searched for
EXPLAINED_REPORTS = 100
_PLAIN = frozenset({"", "identity"})


class UnsupportedBody(WireError):
    """A body in a type or a coding that is not read here."""


class BodyTooLarge(WrongLength):
    """A body that is longer than any batch."""


def decode_body(content_type: str, encoding: str, raw: bytes) -> DecodedBody:
    """Decode a body to columns; the two headers are as they were sent, or empty."""
    if content_type.partition(";")[0].strip().lower() != BINARY_TYPE:
        why = f"give {BINARY_TYPE}: `veilcount encode` translates a batch from JSON"
        raise UnsupportedBody("Content-Type", why)
    if encoding.strip().lower() not in _PLAIN:
        why = "give none: a body is never compressed, or its length would depend on its messages"
        raise UnsupportedBody("Content-Encoding", why)
    if len(raw) > MAX_BODY:
        raise too_large()
    return decode_binary_fast(raw) or _from_batch(decode_binary(raw, EXPLAINED_REPORTS))


def _from_batch(batch: Batch) -> DecodedBody:
    return DecodedBody(
        len(batch.reports), columns_from_reports(batch.reports), batch.losses, batch.test
    )


def too_large() -> BodyTooLarge:
    """Return the error of a body whose length alone refuses it."""
    return BodyTooLarge("body", f"{MAX_BODY:,} bytes at most")
