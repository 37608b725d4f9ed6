"""Heads of plain requests: written in one form, with one length, without anything special.

A head counts as plain only if each of its lines is a name, a colon, one space and a value, as every
parser writes it: no folded line, no odd space or line end, no name twice. So no other parser can
read another length.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from .request_ids import HEADER as REQUEST_ID

MOST_BODY = 16 << 10  # as devices send them
MOST_FIELDS = 64
FORWARDED_FOR = "x-forwarded-for"
#: fields by which a request asks for more than a response: what is not plain is passed on
_SPECIAL = frozenset(
    {"transfer-encoding", "te", "trailer", "expect", "upgrade", "http2-settings"}
    | {"keep-alive", "proxy-connection", "origin"}
)
#: fields that name one request or one sender: such a head does not come again, or is not to stay
_UNIQUE = frozenset({REQUEST_ID.lower(), FORWARDED_FOR})
_LINES = re.compile(
    rb"(?:[A-Za-z0-9-]++: [\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?\r\n)++\r\n"  # RFC 9112, 5
)
_LENGTH = re.compile(r"[1-9][0-9]{0,4}")


class PlainHead(NamedTuple):
    """A plain request's length, its fields by their names in small letters, and its last wish."""

    size: int
    closes: bool
    fields: dict[str, str]

    @property
    def is_unique(self) -> bool:
        """Whether it is of one request or one sender."""
        return not _UNIQUE.isdisjoint(self.fields)


def parse_plain(head: bytes, start: bytes) -> PlainHead | None:
    """Return the head of a plain request with this start line; None: it is not surely plain."""
    if not (head.startswith(start) and _LINES.fullmatch(head, len(start))):
        return None
    lines = head[len(start) : -4].decode().split("\r\n")
    if len(lines) > MOST_FIELDS:
        return None
    fields: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(": ")
        fields[name.lower()] = value
    if len(fields) < len(lines) or not _SPECIAL.isdisjoint(fields):
        return None
    return _plain(fields)


def _plain(fields: dict[str, str]) -> PlainHead | None:
    length = fields.get("content-length", "")
    connection = fields.get("connection", "keep-alive").lower()
    if "host" not in fields or connection not in {"keep-alive", "close"}:
        return None
    if not _LENGTH.fullmatch(length) or int(length) > MOST_BODY:
        return None
    return PlainHead(int(length), connection == "close", fields)
