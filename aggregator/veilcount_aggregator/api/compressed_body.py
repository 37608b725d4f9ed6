"""A long response body, held compressed until it is sent.

Its length is known before its first byte goes out, so that one that breaks off is noticed; and a
client that reads slowly keeps a tenth of it in memory, and no computation waiting.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator

from flask import Response

PIECE = 1 << 18
_FASTEST = 1


class CompressedBody:
    """A body in separately compressed pieces."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        """Take all pieces at once; whatever they raise is raised here."""
        self.length = 0
        self._held: list[bytes] = []
        for piece in pieces:
            self.length += len(piece)
            self._held.extend(zlib.compress(part, _FASTEST) for part in _cut(piece))

    def __iter__(self) -> Iterator[bytes]:
        """Yield what was taken, once."""
        self._held.reverse()
        while self._held:
            yield zlib.decompress(self._held.pop())


def respond(pieces: Iterable[bytes], kind: str) -> Response:
    """Return a response of this media type; it says how long it is."""
    body = CompressedBody(pieces)
    return Response(body, mimetype=kind, headers={"Content-Length": str(body.length)})


def _cut(piece: bytes) -> Iterator[memoryview]:
    view = memoryview(piece)
    for begin in range(0, len(piece), PIECE):
        yield view[begin : begin + PIECE]
