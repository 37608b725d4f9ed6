"""Problems of the issuer (RFC 9457): the closed table of their types, and errors mapped to them."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from types import MappingProxyType

from veilcount_aggregator.errors import OverCap, StoreError
from veilcount_serving.origins import WRONG_ORIGIN
from veilcount_shared.errors import TokenError
from veilcount_shared.problem_details import (
    FAILED,
    RETRY_SECONDS,
    Problem,
    ProblemError,
    ProblemKind,
)
from veilcount_shared.tokens import MAX_REQUESTS

_RETRY = "retry after the seconds in the Retry-After header"

#: the closed list, with status, title and fix: a name keeps its meaning for ever
_KINDS: dict[str, tuple[int, str, str]] = {
    "bad-field": (400, "Invalid field", "the place says which field, the detail what to send"),
    "bad-request": (400, "Malformed request", "send JSON as docs/issuer.md describes it"),
    "no-account": (
        401,
        "Missing or invalid account token",
        "send `Authorization: Bearer` and an account token that has not expired",
    ),
    "wrong-origin": (403, WRONG_ORIGIN.title, WRONG_ORIGIN.fix),
    "not-found": (404, "Not found", "no such path, or no collection of this fingerprint"),
    "wrong-method": (405, "Method not allowed", "use a method that the Allow header names"),
    "period-begun": (
        409,
        "A requested period has begun",
        "leave out the periods in `over`; nothing was issued",
    ),
    "over-cap": (
        409,
        "More than an account may have",
        "ask for no more than `left` of each period and `periods_left` others; nothing was issued",
    ),
    "too-large": (413, "Body too large", f"send at most {MAX_REQUESTS} requests at once"),
    "unsupported": (415, "Unsupported media type", "send application/json"),
    "too-many": (429, "Rate limit exceeded", _RETRY),
    "failed": (500, FAILED.title, FAILED.fix),
    "unavailable": (503, "Store unavailable", f"{_RETRY}; nothing was issued"),
}
ISSUER_PROBLEMS = MappingProxyType(
    {name: ProblemKind(name, HTTPStatus(row[0]), *row[1:]) for name, row in _KINDS.items()}
)
_BY_STATUS: Mapping[int, str] = {
    400: "bad-request",
    404: "not-found",
    405: "wrong-method",
    413: "too-large",
    415: "unsupported",
}


def refuse(name: str, detail: str = "", place: str = "", **facts: object) -> ProblemError:
    """Return an error of this type; `facts` are members of its document."""
    kind = ISSUER_PROBLEMS[name]
    return ProblemError(Problem(kind, detail or kind.fix, place, _headers(name), facts))


def refuse_for(seconds: int) -> ProblemError:
    """Return the error of a client that is to come back after so many seconds."""
    kind = ISSUER_PROBLEMS["too-many"]
    return ProblemError(Problem(kind, kind.fix, headers={"Retry-After": str(seconds)}))


def issuer_problem(error: Exception) -> Problem:
    """Return the problem that an error is to the caller; other errors reveal nothing."""
    match error:
        case ProblemError():
            return error.problem
        case OverCap():
            left = {str(period): number for period, number in error.left.items()}
            detail, periods_left = str(error), error.periods_left
            return refuse("over-cap", detail, left=left, periods_left=periods_left).problem
        case TokenError():
            return refuse("bad-field", error.problem, error.what).problem
        case StoreError():
            return refuse("unavailable").problem
    return refuse("failed").problem


def problem_of_status(status: int, headers: dict[str, str]) -> Problem:
    """Return the problem of a bare HTTP status."""
    kind = ISSUER_PROBLEMS[_BY_STATUS.get(status, "failed" if status >= 500 else "bad-request")]  # noqa: PLR2004 - HTTP's own border
    return Problem(kind, kind.fix, headers=headers)


def _headers(name: str) -> dict[str, str]:
    if name in {"unavailable", "failed"}:
        return {"Retry-After": str(RETRY_SECONDS)}
    return {"WWW-Authenticate": "Bearer"} if name == "no-account" else {}
