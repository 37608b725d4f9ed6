"""Binary HTTP messages of known length [RFC 9292]: requests and final responses, strictly."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..errors import ObliviousError

Fields = tuple[tuple[str, str], ...]

REQUEST, RESPONSE = 0, 1  # known-length framing
_SIZES = (1, 2, 4, 8)  # bytes of a number, by its two highest bits [RFC 9000, section 16]
FINAL = range(200, 600)
MAX_FIELDS = 64  # a device sends two; reading the hundred thousands of a long body takes a second


@dataclass(frozen=True, slots=True)
class Request:
    """A request: method, scheme, authority, path; fields; content."""

    method: str
    path: str
    fields: Fields = ()
    content: bytes = b""
    scheme: str = "https"
    authority: str = ""

    def encode(self) -> bytes:
        """Return its bytes."""
        control = (self.method, self.scheme, self.authority, self.path)
        head = b"".join(_text(text.encode()) for text in control)
        return _number(REQUEST) + head + _rest(self.fields, self.content)

    @classmethod
    def decode(cls, raw: bytes) -> Request:
        """Return the request of its bytes."""
        reader = _Reader(raw)
        if reader.number() != REQUEST:
            raise ObliviousError("framing", "no request of known length")
        method, scheme, authority, path = (reader.text() for _ in range(4))
        return cls(method, path, *reader.rest(), scheme, authority)


@dataclass(frozen=True, slots=True)
class Response:
    """A final response: status; fields; content."""

    status: int
    fields: Fields = ()
    content: bytes = b""

    def encode(self) -> bytes:
        """Return its bytes."""
        return _number(RESPONSE) + _number(self.status) + _rest(self.fields, self.content)

    @classmethod
    def decode(cls, raw: bytes) -> Response:
        """Return the response of its bytes."""
        reader = _Reader(raw)
        if reader.number() != RESPONSE:
            raise ObliviousError("framing", "no response of known length")
        status = reader.number()
        if status not in FINAL:
            raise ObliviousError("status", "no final response")
        return cls(status, *reader.rest())


def _number(number: int) -> bytes:
    place = next(i for i, size in enumerate(_SIZES) if number < 1 << 8 * size - 2)
    size = _SIZES[place]
    return (number | place << 8 * size - 2).to_bytes(size, "big")


def _text(raw: bytes) -> bytes:
    return _number(len(raw)) + raw


def _rest(fields: Sequence[tuple[str, str]], content: bytes) -> bytes:
    lines = b"".join(_text(part.encode()) for field in fields for part in field)
    return _text(lines) + _text(content) + _text(b"")  # no trailers


class _Reader:
    """A cursor in a message that only moves forward."""

    def __init__(self, raw: bytes) -> None:
        self._raw, self._place = raw, 0

    def number(self) -> int:
        size = _SIZES[self._take(1)[0] >> 6]
        self._place -= 1
        return int.from_bytes(self._take(size), "big") & (1 << 8 * size - 2) - 1

    def text(self) -> str:
        raw = self._take(self.number())
        if not raw.isascii():
            raise ObliviousError("text", "only ASCII")
        return raw.decode()

    def rest(self) -> tuple[Fields, bytes]:
        """Return fields and content; what was left out is empty, zeros at the end are padding."""
        fields = tuple(_Reader(self._section())._fields())
        content = self._section()
        self._section()  # trailers
        if self._raw[self._place :].strip(b"\0"):
            raise ObliviousError("padding", "only zero bytes")
        return fields, content

    def _fields(self) -> Iterator[tuple[str, str]]:
        for _ in range(MAX_FIELDS):
            if self._place == len(self._raw):
                return
            if not (name := self.text()):
                raise ObliviousError("fields", "one has no name")
            yield name, self.text()
        if self._place < len(self._raw):
            raise ObliviousError("fields", f"{MAX_FIELDS} at most")

    def _section(self) -> bytes:
        return self._take(self.number()) if self._place < len(self._raw) else b""

    def _take(self, size: int) -> bytes:
        part = self._raw[self._place : self._place + size]
        if len(part) != size:
            raise ObliviousError("message", f"it ends at byte {len(self._raw)}, inside a part")
        self._place += size
        return part
