"""Heads of plain requests: written in one form, with one length, without anything special.

A head counts as plain only if what the parser read of it, written down again, is what was sent: no
folded line, no odd space or line end, no name twice. So no other parser can read another length.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import httptools

MOST_BODY = 16 << 10  # as devices send them
#: fields by which a request asks for more than a response: what is not plain is passed on
_SPECIAL = frozenset(
    {b"transfer-encoding", b"te", b"trailer", b"expect", b"upgrade", b"http2-settings"}
    | {b"keep-alive", b"proxy-connection", b"origin"}
)
_NAME = re.compile(rb"[A-Za-z0-9-]+")
_VALUE = re.compile(rb"[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?")
_LENGTH = re.compile(r"[1-9][0-9]{0,4}")


@dataclass(frozen=True, slots=True)
class PlainHead:
    """A plain request's length, its fields by their names in small letters, and its last wish."""

    size: int
    closes: bool
    fields: dict[str, str]


class _Fields(list[tuple[bytes, bytes]]):
    """The fields of a head, in the order in which they were sent."""

    def on_header(self, name: bytes, value: bytes) -> None:
        """Add a field: the parser calls this."""
        self.append((name, value))


def parse_plain(head: bytes, start: bytes) -> PlainHead | None:
    """Return the head of a plain request with this start line; None: it is not surely plain."""
    sent = _Fields()
    try:
        httptools.HttpRequestParser(sent).feed_data(head)
    except (httptools.HttpParserError, httptools.HttpParserUpgrade):
        return None
    if b"".join([start, *(b"%b: %b\r\n" % field for field in sent), b"\r\n"]) != head:
        return None
    if not all(_NAME.fullmatch(name) and _VALUE.fullmatch(value) for name, value in sent):
        return None
    names = {name.lower() for name, _ in sent}
    if len(names) < len(sent) or names & _SPECIAL:
        return None
    return _plain({name.lower().decode(): value.decode() for name, value in sent})


def _plain(fields: dict[str, str]) -> PlainHead | None:
    length = fields.get("content-length", "")
    connection = fields.get("connection", "keep-alive").lower()
    if "host" not in fields or connection not in {"keep-alive", "close"}:
        return None
    if not _LENGTH.fullmatch(length) or int(length) > MOST_BODY:
        return None
    return PlainHead(int(length), connection == "close", fields)
