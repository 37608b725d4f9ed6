"""Problems of the aggregator: the closed table of their types, and errors mapped to them.

A device drops a batch permanently on 400, 413 and 422, except for an unknown version: none of these
is ever the status of a fault of the server, the store or the network.
"""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from types import MappingProxyType

from veilcount_analysis.errors import NoiseUnavailable, QueryError
from veilcount_serving.errors import Overloaded, SettingsError
from veilcount_serving.origins import WRONG_ORIGIN
from veilcount_shared.errors import (
    BadField,
    DefinitionError,
    UnknownVersion,
    WireError,
    WrongLength,
    format_value,
)
from veilcount_shared.oblivious_http.key_config import KEY_PROBLEM
from veilcount_shared.problem_details import (
    FAILED,
    INCOMPLETE,
    RETRY_SECONDS,
    UNKNOWN_VERSION,
    Problem,
    ProblemError,
    ProblemKind,
    problem_of,
)

from ...errors import (
    BatchTooEarly,
    BatchTooLate,
    ClockUntrusted,
    CounterMemoryExceeded,
    InsufficientBudget,
    JournalMissing,
    PeriodStillOpen,
    RecordDiffers,
    ReleasesLocked,
    ReleasesWaiting,
    SecondBatch,
    StoreError,
)
from ...intake.decode import BodyTooLarge, UnsupportedBody

CLOCK_RETRY_SECONDS = 60  # a clock is mended by NTP or by a person
RESULT_TOO_LARGE = (
    "the result needs more memory than a process that computes may use: request fewer values, days"
    " or series, or set --analysis-memory"
)
EPSILONS = ("requested", "spent", "remaining")  # of the period that has least left


_RETRY = "retry after the seconds in the Retry-After header"
_UNCOUNTED = f"{_RETRY}; nothing was counted"


def _row(kind: ProblemKind) -> tuple[int, str, str]:
    return kind.status.value, kind.title, kind.fix


#: the closed list, with status, title and fix: a name keeps its meaning for ever
_KINDS: dict[str, tuple[int, str, str]] = {
    "unknown-version": _row(UNKNOWN_VERSION),
    "wrong-length": (
        400,
        "Wrong length or count",
        "send what the protocol describes: the place says which part",
    ),
    "bad-field": (
        400,
        "Invalid field",
        "send what the protocol describes: the place says which field",
    ),
    "bad-request": (400, "Malformed request", "compare the request with /openapi.json"),
    "gateway-key": (
        400,
        "Unknown key of an encapsulated request",
        "use a key of GET /v1/ohttp-keys that the app ships; the one of this request was retired",
    ),
    "no-key": (
        401,
        "Missing or invalid API key",
        "send `Authorization: Bearer` and a key of `veilcount keys create`",
    ),
    "wrong-role": (403, "Key of another role", "use a key of the role that the detail names"),
    "not-signed-in": (
        403,
        "Not signed in",
        "the detail says what is missing; an operator finds it in the file of --sign-in",
    ),
    "wrong-origin": _row(WRONG_ORIGIN),
    "not-found": (404, "Not found", "compare the path with /openapi.json"),
    "wrong-method": (405, "Method not allowed", "use a method that the Allow header names"),
    "not-acceptable": (
        406,
        "No acceptable media type",
        "send an Accept header with a media type that the detail names",
    ),
    "incomplete": _row(INCOMPLETE),
    "too-large": (413, "Body too large", "send less at once"),
    "unsupported": (
        415,
        "Unsupported media type or content coding",
        "send one that the detail names",
    ),
    "bad-definition": (
        422,
        "Invalid definition",
        "fix the key that the detail names; `veilcount_client check` finds the same offline",
    ),
    "counter-memory": (
        409,
        "Counters do not fit the memory",
        "define fewer values or cells, a shorter time, or have the operator raise the limit",
    ),
    "open-period": (
        409,
        "A requested period is still open",
        "request closed periods, or wait until this one closes",
    ),
    "second-batch": (
        409,
        "A second batch",
        "stop the shuffler: its store was restored, or there are two; nothing was counted",
    ),
    "batch-early": (
        409,
        "The period of this batch is not over",
        "hand it over after the end of the grace, and compare the clocks",
    ),
    "record-differs": (
        409,
        "The record differs from its batch",
        "compare what the shuffler signed with what it handed over",
    ),
    "batch-late": (410, "The period of this batch is closed", "record the batch as expired"),
    "insufficient-budget": (409, "Insufficient privacy budget", "request less, or other periods"),
    "releases-locked": (
        409,
        "Releases are locked",
        "ask the operator to run `veilcount store unlock`, which records again what was spent",
    ),
    "journal-missing": (
        501,
        "This aggregator has no release journal",
        "ask the operator to start the server with --journal FILE; nothing was released",
    ),
    "releases-waiting": (
        503,
        "A host has not confirmed the store yet",
        f"{_RETRY}; nothing was released",
    ),
    "noise-unavailable": (
        501,
        "This aggregator cannot draw central noise",
        "ask the operator to install what the detail names",
    ),
    "too-many": (429, "Rate limit exceeded", _RETRY),
    "failed": _row(FAILED),
    "unavailable": (503, "Store unavailable", _UNCOUNTED),
    "clock": (503, "Server clock in doubt", _UNCOUNTED),
    "busy": (503, "Overloaded", _UNCOUNTED),
}
_REGISTERED = {"gateway-key": KEY_PROBLEM}
PROBLEM_KINDS = MappingProxyType(
    {
        name: ProblemKind(name, HTTPStatus(row[0]), *row[1:], _REGISTERED.get(name, ""))
        for name, row in _KINDS.items()
    }
)

_BY_STATUS = {
    HTTPStatus.BAD_REQUEST: "bad-request",
    HTTPStatus.NOT_FOUND: "not-found",
    HTTPStatus.METHOD_NOT_ALLOWED: "wrong-method",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "too-large",
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE: "unsupported",
    HTTPStatus.SERVICE_UNAVAILABLE: "busy",
}


def refusal(name: str, detail: str = "", place: str = "", **headers: str) -> ProblemError:
    """Return an error of this type; `_` in a header's name stands for `-`."""
    kind = PROBLEM_KINDS[name]
    spelled = {header.replace("_", "-"): value for header, value in headers.items()}
    return ProblemError(Problem(kind, detail or kind.fix, place, spelled))


#: by the class of an error, the first that fits
_BY_ERROR: Mapping[type[Exception], str] = {
    BodyTooLarge: "too-large",
    UnsupportedBody: "unsupported",
    UnknownVersion: "unknown-version",
    WrongLength: "wrong-length",
    BadField: "bad-field",
    DefinitionError: "bad-definition",
    CounterMemoryExceeded: "counter-memory",
    SettingsError: "bad-field",
    QueryError: "bad-field",
    Overloaded: "busy",
    MemoryError: "busy",
    StoreError: "unavailable",
    ClockUntrusted: "clock",
    SecondBatch: "second-batch",
    BatchTooEarly: "batch-early",
    BatchTooLate: "batch-late",
    RecordDiffers: "record-differs",
    PeriodStillOpen: "open-period",
    InsufficientBudget: "insufficient-budget",
    ReleasesWaiting: "releases-waiting",
    NoiseUnavailable: "noise-unavailable",
    ReleasesLocked: "releases-locked",
    JournalMissing: "journal-missing",
}


def problem_from_error(error: Exception) -> Problem:
    """Return the problem that an error is to the caller; unknown errors reveal nothing."""
    if isinstance(error, ProblemError):
        return error.problem
    name = next((name for kind, name in _BY_ERROR.items() if isinstance(error, kind)), None)
    if name is None:
        return internal_error()
    if isinstance(error, StoreError):
        # Its message may hold paths and addresses: it goes to the log only.
        return _generic(name, _after(RETRY_SECONDS))
    detail = RESULT_TOO_LARGE if isinstance(error, MemoryError) else str(error)
    problem = Problem(PROBLEM_KINDS[name], detail, _place(error), _delay(error))
    if isinstance(error, InsufficientBudget):
        problem.facts.update({name: format_value(getattr(error, name)) for name in EPSILONS})
    return problem


def _place(error: Exception) -> str:
    match error:
        case WireError(place=place) | SettingsError(name=place) | QueryError(field=place):
            return place
        case DefinitionError():
            return f"[{error.collection}] {error.key}" if error.collection else error.key
        case PeriodStillOpen():
            return "to"
        case InsufficientBudget(unit=unit):
            return unit
    return ""


def _delay(error: Exception) -> dict[str, str]:
    match error:
        case Overloaded():
            return _after(error.seconds)
        case ClockUntrusted():
            return _after(CLOCK_RETRY_SECONDS)
        case MemoryError() | ReleasesWaiting():
            return _after(RETRY_SECONDS)
    return {}


def internal_error() -> Problem:
    """Return the problem of an unexpected error, without details."""
    return problem_of(FAILED, retry=True)


def problem_from_status(status: int, headers: dict[str, str]) -> Problem:
    """Return the problem of a bare HTTP status."""
    name = _BY_STATUS.get(HTTPStatus(status), "failed" if status >= 500 else "bad-request")  # noqa: PLR2004 - HTTP's own border
    return _generic(name, headers)


def _generic(name: str, headers: dict[str, str]) -> Problem:
    return Problem(PROBLEM_KINDS[name], PROBLEM_KINDS[name].fix, headers=headers)


def _after(seconds: int) -> dict[str, str]:
    return {"Retry-After": str(seconds)}
