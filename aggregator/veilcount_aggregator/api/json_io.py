"""JSON bodies of requests and responses, and content negotiation between JSON and tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

import msgspec
from flask import Response, request
from msgspec import Struct

from veilcount_shared.wire import JSON_TYPE

from .. import queries
from ..queries.export import ArrowUnavailable, Stream
from .compressed_body import respond
from .problems import PROBLEM_TYPE, Problem, refusal

Body = TypeVar("Body", bound=Struct)


def json_response(value: Struct, status: int = 200) -> Response:
    """Return a value as JSON."""
    return Response(msgspec.json.encode(value), status, mimetype=JSON_TYPE)


def problem_response(problem: Problem) -> Response:
    """Return a problem document."""
    return Response(problem.body, problem.status, problem.headers, mimetype=PROBLEM_TYPE)


def parse_body(kind: type[Body]) -> Body:
    """Return the request's JSON body as a type, or refuse it."""
    if request.mimetype != JSON_TYPE:
        raise refusal("unsupported", f"give {JSON_TYPE}", "Content-Type")
    try:
        return msgspec.json.decode(request.get_data(), type=kind)
    except msgspec.ValidationError as error:
        raise refusal("bad-field", str(error), "body") from error
    except (msgspec.DecodeError, RecursionError) as error:
        raise refusal("bad-request", "the body is not JSON", "body") from error


def negotiated(result: object, tables: Mapping[str, Stream]) -> Response:
    """Return a query's result in the media type that the request prefers."""
    kinds = [JSON_TYPE, *tables]
    kind = request.accept_mimetypes.best_match(kinds) if request.accept_mimetypes.provided else None
    if kind is None and request.accept_mimetypes.provided:
        raise refusal("not-acceptable", f"give one of {', '.join(kinds)}", "Accept")
    if kind in {None, JSON_TYPE}:
        return _varying([queries.encode(result)], JSON_TYPE)
    try:
        return _varying(tables[str(kind)](result), str(kind))
    except ArrowUnavailable as error:
        raise refusal("not-acceptable", str(error), "Accept") from error


def _varying(pieces: Iterable[bytes], kind: str) -> Response:
    response = respond(pieces, kind)
    response.headers["Vary"] = "Accept"
    return response
