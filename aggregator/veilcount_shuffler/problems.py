"""The problems of a shuffler's endpoint: a device keeps its report after any but `over`."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from types import MappingProxyType

from veilcount_shared.problem_details import (
    FAILED,
    INCOMPLETE,
    OVER,
    RETRY_SECONDS,
    UNKNOWN_VERSION,
    Problem,
    ProblemKind,
)
from veilcount_shared.shuffling.envelope import ENVELOPE_TYPE

_RETRY = "retry after the seconds in the Retry-After header"
_KINDS: dict[str, tuple[int, str, str]] = {
    "bad-field": (400, "Invalid envelope", "send an envelope as the specification lays it out"),
    "wrong-size": (400, "Wrong size", "send a sealed report of the crowd's size"),
    "not-found": (404, "Not found", "no such path: POST /v1/envelopes"),
    "unknown-crowd": (
        404,
        "Unknown crowd",
        "keep the report and retry: its period is not over here, or its definition is not loaded",
    ),
    "wrong-method": (405, "Method not allowed", "use POST"),
    "too-large": (413, "Body too large", "send one envelope, with its Content-Length"),
    "unsupported": (415, "Unsupported media type", f"send {ENVELOPE_TYPE}"),
    "too-many": (429, "Rate limit exceeded", _RETRY),
    "unavailable": (503, "Unavailable", f"{_RETRY}; the report was not acknowledged"),
}
SHUFFLER_PROBLEMS: Mapping[str, ProblemKind] = MappingProxyType(
    {name: ProblemKind(name, HTTPStatus(row[0]), *row[1:]) for name, row in _KINDS.items()}
    | {kind.name: kind for kind in (FAILED, INCOMPLETE, OVER, UNKNOWN_VERSION)}
)
_RETRIED = frozenset({"too-many", "unavailable", "failed"})


def problem(name: str, detail: str = "", seconds: int = RETRY_SECONDS) -> Problem:
    """Return a problem of a type."""
    kind = SHUFFLER_PROBLEMS[name]
    headers = {"Retry-After": str(seconds)} if name in _RETRIED else {}
    return Problem(kind, detail or kind.fix, headers=headers)
