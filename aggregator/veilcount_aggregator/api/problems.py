"""Problem documents, as RFC 9457 has them: one closed table of what can be wrong, for every door.

A device drops a batch for good on 400, 413, 415 and 422: none of these is ever said for a fault of
ours, of the store's or of the network's.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from http import HTTPStatus
from types import MappingProxyType

from veilcount_shared.errors import (
    BadField,
    DefinitionError,
    UnknownVersion,
    VeilcountError,
    WireError,
    WrongLength,
    format_value,
)

from ..errors import (
    ClockUntrusted,
    InsufficientBudget,
    Overloaded,
    PeriodStillOpen,
    QueryError,
    ReleaseRefused,
    ReleasesWaiting,
    SettingsError,
    StoreError,
)
from ..ingest.decode import BodyTooLarge, UnsupportedBody

PROBLEM_TYPE = "application/problem+json"
URN = "urn:veilcount:problem:"
RETRY_SECONDS = 2
CLOCK_RETRY_SECONDS = 60  # a clock is mended by NTP or by a person
TOO_LARGE_ANSWER = (
    "this answer takes more memory than the analysis process may use: ask for fewer values, days"
    " or series, or set --analysis-memory"
)
EPSILONS = ("requested", "spent", "remaining")  # of the period that has least left


@dataclass(frozen=True, slots=True)
class Kind:
    """One way in which a request goes wrong."""

    name: str
    status: HTTPStatus
    title: str
    mend: str

    @property
    def urn(self) -> str:
        """Its name for ever."""
        return URN + self.name


def _table(*kinds: Kind) -> MappingProxyType[str, Kind]:
    return MappingProxyType({kind.name: kind for kind in kinds})


#: the closed list: a name keeps its meaning for ever
KINDS = _table(
    Kind(
        "unknown-version",
        HTTPStatus.BAD_REQUEST,
        "This version of the protocol is not spoken here",
        "bring the device's library and the aggregator to releases that share a version",
    ),
    Kind(
        "wrong-length",
        HTTPStatus.BAD_REQUEST,
        "Too short, too long or too many",
        "send what the protocol describes: the place says which part",
    ),
    Kind(
        "bad-field",
        HTTPStatus.BAD_REQUEST,
        "A field is missing, unknown or out of range",
        "send what the protocol describes: the place says which field",
    ),
    Kind(
        "bad-request",
        HTTPStatus.BAD_REQUEST,
        "No request that can be read",
        "compare it with the document at /openapi.json",
    ),
    Kind(
        "no-key",
        HTTPStatus.UNAUTHORIZED,
        "A key is needed, and none that is known was shown",
        "send `Authorization: Bearer` and a key of `veilcount keys create`",
    ),
    Kind(
        "wrong-role",
        HTTPStatus.FORBIDDEN,
        "This key opens other doors",
        "use a key of the role that is named",
    ),
    Kind(
        "not-found",
        HTTPStatus.NOT_FOUND,
        "Nothing is here",
        "compare the path with the document at /openapi.json",
    ),
    Kind(
        "wrong-method",
        HTTPStatus.METHOD_NOT_ALLOWED,
        "This door is opened another way",
        "use a method that the Allow header names",
    ),
    Kind(
        "not-acceptable",
        HTTPStatus.NOT_ACCEPTABLE,
        "None of the types that are asked for is given here",
        "name one that is given in the Accept header",
    ),
    Kind(
        "incomplete",
        HTTPStatus.REQUEST_TIMEOUT,
        "The body ended before its length",
        "send it again",
    ),
    Kind(
        "too-large",
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        "The body is longer than this door takes",
        "send less at once",
    ),
    Kind(
        "unsupported",
        HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
        "A type or a coding of the body that is not read here",
        "send one that is named",
    ),
    Kind(
        "bad-definition",
        HTTPStatus.UNPROCESSABLE_ENTITY,
        "A definition that cannot be used",
        "mend the key that is named: `veilcount_client check` says the same on your machine",
    ),
    Kind(
        "still-filling",
        HTTPStatus.CONFLICT,
        "A period that is asked for takes reports still",
        "ask for periods that are over, or later",
    ),
    Kind(
        "insufficient-budget",
        HTTPStatus.CONFLICT,
        "A period's budget does not pay for this release",
        "ask for less epsilon, or for other periods",
    ),
    Kind(
        "releases-locked",
        HTTPStatus.CONFLICT,
        "No release is made until the operator has seen to it",
        "tell the operator: `veilcount store unlock` enters again what was spent",
    ),
    Kind(
        "releases-waiting",
        HTTPStatus.SERVICE_UNAVAILABLE,
        "Not every host has confirmed the store as it is now",
        "come back after the seconds of the Retry-After header; nothing has left",
    ),
    Kind(
        "too-many",
        HTTPStatus.TOO_MANY_REQUESTS,
        "More requests than this key may send",
        "come back after the seconds of the Retry-After header",
    ),
    Kind(
        "failed",
        HTTPStatus.INTERNAL_SERVER_ERROR,
        "The aggregator failed: a fault of its own",
        "send it again later; the operator finds the place in the log",
    ),
    Kind(
        "unavailable",
        HTTPStatus.SERVICE_UNAVAILABLE,
        "The store cannot promise anything just now",
        "come back after the seconds of the Retry-After header; nothing was counted",
    ),
    Kind(
        "clock",
        HTTPStatus.SERVICE_UNAVAILABLE,
        "The clock of this host is in doubt",
        "come back after the seconds of the Retry-After header; nothing was counted",
    ),
    Kind(
        "busy",
        HTTPStatus.SERVICE_UNAVAILABLE,
        "Too much waits already",
        "come back after the seconds of the Retry-After header; nothing was counted",
    ),
)

_OF_STATUS = {
    HTTPStatus.BAD_REQUEST: "bad-request",
    HTTPStatus.NOT_FOUND: "not-found",
    HTTPStatus.METHOD_NOT_ALLOWED: "wrong-method",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "too-large",
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE: "unsupported",
    HTTPStatus.SERVICE_UNAVAILABLE: "busy",
}


@dataclass(frozen=True, slots=True)
class Problem:
    """What is answered: the kind, what is wrong this time, and where."""

    kind: Kind
    detail: str
    place: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    facts: dict[str, str] = field(default_factory=dict)

    @property
    def status(self) -> int:
        """The HTTP status."""
        return self.kind.status.value

    @property
    def body(self) -> bytes:
        """The document."""
        fields = {
            "type": self.kind.urn,
            "title": self.kind.title,
            "status": self.status,
            "detail": self.detail,
        }
        place = {"place": self.place} if self.place else {}
        return json.dumps(fields | place | self.facts).encode()


class ProblemError(VeilcountError):
    """A request that a door turns away, with what is answered."""

    def __init__(self, problem: Problem) -> None:
        """Keep the problem."""
        super().__init__(problem.detail)
        self.problem = problem


def refusal(name: str, detail: str = "", place: str = "", **headers: str) -> ProblemError:
    """Return the refusal of a kind; `_` in a header's name stands for `-`."""
    kind = KINDS[name]
    spelled = {header.replace("_", "-"): value for header, value in headers.items()}
    return ProblemError(Problem(kind, detail or kind.mend, place, spelled))


def problem_of(error: Exception) -> Problem:
    """Return what an error is to whoever asked. One that nobody foresaw tells nothing of itself."""
    if isinstance(error, ProblemError):
        return error.problem
    if isinstance(error, StoreError):
        # Its words may hold paths and addresses of ours: they are for the log.
        return _told("unavailable", _after(RETRY_SECONDS))
    return _known(error) or failed()


def _known(error: Exception) -> Problem | None:
    if isinstance(error, MemoryError):
        return Problem(KINDS["busy"], TOO_LARGE_ANSWER, headers=_after(RETRY_SECONDS))
    return _foreseen(error)


def _foreseen(error: Exception) -> Problem | None:
    match error:
        case WireError():
            return Problem(KINDS[_wire(error)], str(error), error.place)
        case DefinitionError():
            place = f"[{error.collection}] {error.key}" if error.collection else error.key
            return Problem(KINDS["bad-definition"], str(error), place)
        case SettingsError():
            return Problem(KINDS["bad-field"], str(error), error.name)
        case Overloaded() | ClockUntrusted():
            return _later(error)
        case QueryError() | ReleaseRefused():
            return _unreleased(error)
    return None


def _later(error: Overloaded | ClockUntrusted) -> Problem:
    if isinstance(error, Overloaded):
        return Problem(KINDS["busy"], str(error), headers=_after(error.seconds))
    return Problem(KINDS["clock"], str(error), headers=_after(CLOCK_RETRY_SECONDS))


def _unreleased(error: QueryError | ReleaseRefused) -> Problem:
    match error:
        case QueryError():
            return Problem(KINDS["bad-field"], str(error), error.field)
        case PeriodStillOpen():
            return Problem(KINDS["still-filling"], str(error), "to")
        case InsufficientBudget():
            exact = {name: format_value(getattr(error, name)) for name in EPSILONS}
            return Problem(KINDS["insufficient-budget"], str(error), "epsilon", facts=exact)
        case ReleasesWaiting():
            return Problem(KINDS["releases-waiting"], str(error), headers=_after(RETRY_SECONDS))
    return Problem(KINDS["releases-locked"], str(error))


def failed() -> Problem:
    """Return what may be said of a fault of ours."""
    return _told("failed", _after(RETRY_SECONDS))


def problem_of_status(status: int, headers: dict[str, str]) -> Problem:
    """Return what a bare HTTP status is."""
    name = _OF_STATUS.get(HTTPStatus(status), "failed" if status >= 500 else "bad-request")  # noqa: PLR2004 - HTTP's own border
    return _told(name, headers)


def _told(name: str, headers: dict[str, str]) -> Problem:
    return Problem(KINDS[name], KINDS[name].mend, headers=headers)


def _after(seconds: int) -> dict[str, str]:
    return {"Retry-After": str(seconds)}


def _wire(error: WireError) -> str:
    match error:
        case BodyTooLarge():
            return "too-large"
        case UnsupportedBody():
            return "unsupported"
        case UnknownVersion():
            return "unknown-version"
        case WrongLength():
            return "wrong-length"
        case BadField():
            return "bad-field"
    raise TypeError(type(error).__name__)  # pragma: no cover - the tree of errors has no other leaf
