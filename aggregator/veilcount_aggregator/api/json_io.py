"""Answers in JSON, and requests in JSON: the same types both ways."""

from __future__ import annotations

from typing import TypeVar

import msgspec
from flask import Response, request
from msgspec import Struct

from veilcount_shared.wire import JSON_TYPE

from .problems import PROBLEM_TYPE, Problem, refusal

Wanted = TypeVar("Wanted", bound=Struct)


def answer(said: Struct, status: int = 200) -> Response:
    """Return a value as JSON."""
    return Response(msgspec.json.encode(said), status, mimetype=JSON_TYPE)


def answer_problem(problem: Problem) -> Response:
    """Return a problem document."""
    return Response(problem.body, problem.status, problem.headers, mimetype=PROBLEM_TYPE)


def asked(kind: type[Wanted]) -> Wanted:
    """Return the request's body as a type, or refuse it."""
    if request.mimetype != JSON_TYPE:
        raise refusal("unsupported", f"give {JSON_TYPE}", "Content-Type")
    try:
        return msgspec.json.decode(request.get_data(), type=kind)
    except msgspec.ValidationError as error:
        raise refusal("bad-field", str(error), "body") from error
    except (msgspec.DecodeError, RecursionError) as error:
        raise refusal("bad-request", "the body is not JSON", "body") from error
