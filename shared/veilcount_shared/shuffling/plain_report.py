"""The report inside a sealed one: of one size whatever it holds.

    1 version | token: 16 pseudonym, 256 token | message, of its definition's width | zeros |
    16 zeros, or the mark of a canary

Fingerprint and period are not in it: a report is sealed for one crowd and one period.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ..errors import BadField, WrongLength
from ..limits import PSEUDONYM_BYTES, TOKEN_BYTES

VERSION = 1
MARK_BYTES = 16
PLAIN_BYTES, PLAIN_BYTES_WITH_TOKEN = 192, 512
NO_MARK = bytes(MARK_BYTES)


def plain_size(token_bytes: int) -> int:
    """Return the length of every plain report of a collection."""
    return PLAIN_BYTES_WITH_TOKEN if token_bytes else PLAIN_BYTES


def message_limit(token_bytes: int) -> int:
    """Return the widest message that fits."""
    head = 1 + (PSEUDONYM_BYTES + TOKEN_BYTES if token_bytes else 0)
    return plain_size(token_bytes) - head - MARK_BYTES


@dataclass(frozen=True, slots=True)
class PlainReport:
    """A message, with its pseudonym and token where the definition has tokens."""

    message: bytes = field(repr=False)  # none of them is for logs
    pseudonym: bytes = field(default=b"", repr=False)
    token: bytes = field(default=b"", repr=False)
    mark: bytes = field(default=NO_MARK, repr=False)

    def encode(self) -> bytes:
        """Return its bytes."""
        content = bytes([VERSION]) + self.pseudonym + self.token + self.message
        size = plain_size(len(self.token)) - MARK_BYTES
        if len(content) > size:
            raise WrongLength("message", f"give {message_limit(len(self.token))} bytes at most")
        return content.ljust(size, b"\0") + self.mark

    @classmethod
    def decode(cls, raw: bytes, message_bytes: int, token_bytes: int = 0) -> PlainReport:
        """Return the report of its bytes, or refuse them."""
        if len(raw) != plain_size(token_bytes):
            raise WrongLength("report", f"give {plain_size(token_bytes)} bytes")
        if raw[0] != VERSION:
            raise BadField("version", f"give {VERSION}")
        head = 1 + (PSEUDONYM_BYTES if token_bytes else 0)
        start = head + token_bytes
        if any(raw[start + message_bytes : -MARK_BYTES]):
            raise BadField("padding", "give zeros")
        return cls(
            raw[start : start + message_bytes], raw[1:head], raw[head:start], raw[-MARK_BYTES:]
        )
