"""Problem documents (RFC 9457): a type, and one occurrence of it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from http import HTTPStatus

from .errors import VeilcountError

PROBLEM_TYPE = "application/problem+json"
RETRY_SECONDS = 2
#: the URI of a type is this and its name; no registry and no domain is needed for a random UUID
TYPE_PREFIX = "urn:uuid:ffa19561-2b8d-4e5b-9e7f-7dc428f3213e#"
INSTANCE_PREFIX = "urn:uuid:"


@dataclass(frozen=True, slots=True)
class ProblemKind:
    """One type of problem."""

    name: str
    status: HTTPStatus
    title: str
    fix: str
    registered: str = ""  # the URI of a type that an RFC defines

    @property
    def uri(self) -> str:
        """The type's permanent URI."""
        return self.registered or TYPE_PREFIX + self.name


#: after which a device keeps its reports: its server may be updated after it
UNKNOWN_VERSION = ProblemKind(
    "unknown-version",
    HTTPStatus.BAD_REQUEST,
    "Unsupported protocol version",
    "bring the device's library and the aggregator to releases that share a version",
)
#: of a shuffler: the one problem after which a device drops a report
OVER = ProblemKind(
    "over", HTTPStatus.GONE, "Crowd is over", "drop the report: its crowd takes no more"
)
#: of whatever serves HTTP here
INCOMPLETE = ProblemKind(
    "incomplete", HTTPStatus.REQUEST_TIMEOUT, "Incomplete body", "send it again"
)
FAILED = ProblemKind(
    "failed",
    HTTPStatus.INTERNAL_SERVER_ERROR,
    "Internal error",
    "send it again later; the operator finds the cause in the log",
)


@dataclass(frozen=True, slots=True)
class Problem:
    """One occurrence of a problem: its type, detail and place."""

    kind: ProblemKind
    detail: str
    place: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    facts: dict[str, object] = field(default_factory=dict)
    request: str = ""  # the random UUID of the request, also in its log line if it has one

    @property
    def status(self) -> int:
        """The HTTP status."""
        return self.kind.status.value

    @property
    def body(self) -> bytes:
        """The document."""
        fields: dict[str, object] = {
            "type": self.kind.uri,
            "title": self.kind.title,
            "status": self.status,
            "detail": self.detail,
        }
        place = {"place": self.place} if self.place else {}
        instance = {"instance": INSTANCE_PREFIX + self.request} if self.request else {}
        return json.dumps(fields | place | instance | self.facts).encode()


class ProblemError(VeilcountError):
    """A refused request, with the problem that is its response."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.detail)
        self.problem = problem


def problem_of(kind: ProblemKind, *, retry: bool = False) -> Problem:
    """Return a problem without a detail of its own; with `retry` it says when to come back."""
    return Problem(kind, kind.fix, headers={"Retry-After": str(RETRY_SECONDS)} if retry else {})
