"""JSON bodies of requests and responses, and content negotiation between JSON and tables.

A long response body is held compressed until it is sent. Its length is known before its first byte
goes out, so that one that breaks off is noticed; and a client that reads slowly keeps a tenth of it
in memory, and no computation waiting.
"""

from __future__ import annotations

import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TypeVar

import msgspec
from flask import Response, request
from msgspec import Struct

from veilcount_shared.problem_details import PROBLEM_TYPE, Problem
from veilcount_shared.wire import JSON_TYPE

from ... import queries
from ...queries.export import ArrowUnavailable, Stream
from .problems import refusal

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


Body = TypeVar("Body", bound=Struct)


def json_response(value: Struct, status: int = 200) -> Response:
    """Return a value as JSON."""
    return Response(msgspec.json.encode(value), status, mimetype=JSON_TYPE)


def empty_response(status: int) -> Response:
    """Return a response without content, and so without its type."""
    response = Response(status=status)
    del response.headers["Content-Type"]
    return response


def problem_response(problem: Problem) -> Response:
    """Return a problem document."""
    return Response(problem.body, problem.status, problem.headers, mimetype=PROBLEM_TYPE)


def parse_body(kind: type[Body]) -> Body:
    """Return the request's JSON body as a type, or refuse it."""
    if request.mimetype != JSON_TYPE:
        raise refusal("unsupported", f"give {JSON_TYPE}", "Content-Type")
    try:
        return msgspec.json.decode(request.get_data(cache=False), type=kind)
    except msgspec.ValidationError as error:
        raise refusal("bad-field", str(error), "body") from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise refusal("bad-request", "the body is not JSON", "body") from error


def preferred_type(tables: Collection[str]) -> str:
    """Return the media type that the request prefers: JSON or that of a table."""
    kinds = [JSON_TYPE, *tables]
    if not request.accept_mimetypes.provided:
        return JSON_TYPE
    kind = request.accept_mimetypes.best_match(kinds)
    if kind is None:
        raise refusal("not-acceptable", f"give one of {', '.join(kinds)}", "Accept")
    return str(kind)


def negotiated(result: object, tables: Mapping[str, Stream]) -> Response:
    """Return a query's result in the media type that the request prefers."""
    kind = preferred_type(tables)
    if kind == JSON_TYPE:
        return _varying([queries.encode(result)], JSON_TYPE)
    try:
        return _varying(tables[kind](result), kind)
    except ArrowUnavailable as error:
        raise refusal("not-acceptable", str(error), "Accept") from error


def _varying(pieces: Iterable[bytes], kind: str) -> Response:
    response = respond(pieces, kind)
    response.headers["Vary"] = "Accept"
    return response
