"""The document of all doors, OpenAPI 3.1: made of the types that validate, and of one table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from veilcount_shared.wire import JSON_TYPE, MAX_BODY, PACKED_TYPE

from ..analysis.planning import PlanResult
from ..auth.api_keys import Role
from ..ingest.decode.json_fast import JsonBatch
from ..queries import (
    BudgetQuery,
    BudgetResult,
    CompareQuery,
    CompareResult,
    ContrastQuery,
    ContrastResult,
    EstimateQuery,
    EstimateResult,
    PlanQuery,
)
from ..queries.export import WRITERS
from ..queries.json_encoding import schema_of
from ..queries.query_params import Param, QueryParams, params
from . import schemas as messages
from .metrics import TYPE as METRICS_TYPE
from .problems import KINDS, PROBLEM_TYPE

VERSION = "3.1.0"
PREFIX = "#/components/schemas/"
TOML_TYPE = "application/toml"
HTML_TYPE = "text/html"

Schema = dict[str, Any]
Bodies = Mapping[str, type | None]  # by media type; None: bytes that are no JSON


@dataclass(frozen=True, slots=True)
class Door:
    """One method of one path."""

    method: str
    path: str
    says: str
    answers: Mapping[int, Bodies]
    refuses: tuple[str, ...] = ()
    takes: Bodies | None = None
    role: Role | None = None
    query: type[QueryParams] | None = None


def _json(kind: type) -> Bodies:
    return {JSON_TYPE: kind}


def _table(kind: type) -> Bodies:
    return {JSON_TYPE: kind, **dict.fromkeys(WRITERS)}


_DEVICE = ("no-key", "wrong-role", "too-many", "failed", "unavailable")
_GUARDED = ("no-key", "wrong-role", "too-many", "failed", "unavailable", "busy")
_READ = ("bad-field", "bad-request", "unsupported", "too-large")
_ASKED = (*_GUARDED, "bad-field", "not-acceptable")

DOORS = (
    Door(
        "post",
        "/v1/reports",
        "Take a batch: one verdict a report, once what is counted is durable."
        f" At most {MAX_BODY:,} bytes; JSON may be compressed by gzip.",
        {200: _json(messages.Verdicts)},
        (*_DEVICE, "wrong-length", "unknown-version", *_READ, "incomplete", "busy"),
        {PACKED_TYPE: None, JSON_TYPE: JsonBatch},
        Role.DEVICE,
    ),
    Door(
        "delete",
        "/v1/pseudonyms/{fingerprint}/{pseudonym}",
        "Close a row: no slot of it is free any more. For whoever knows the pseudonym.",
        {204: {}},
        (*_DEVICE, "not-found"),
        role=Role.DEVICE,
    ),
    Door(
        "get",
        "/v1/collections",
        "All collections, each by its newest definition.",
        {200: _json(messages.CollectionLines)},
        _GUARDED,
        role=Role.ANALYST,
    ),
    Door(
        "post",
        "/v1/collections",
        "Take a definitions file: from now on, in every worker, its series are counted."
        " Files that it names come along; nothing is read from the server's disk.",
        {200: _json(messages.Pushed), 201: _json(messages.Pushed)},
        (*_GUARDED, *_READ, "bad-definition"),
        {JSON_TYPE: messages.Definitions, TOML_TYPE: None},
        Role.ADMIN,
    ),
    Door(
        "get",
        "/v1/collections/{name}",
        "One collection's series side by side: what each promises, and what came of it.",
        {200: _json(messages.CollectionView)},
        (*_GUARDED, "not-found"),
        role=Role.ANALYST,
    ),
    Door(
        "post",
        "/v1/collections/{name}/close",
        "Take no more reports for a collection, under any of its definitions.",
        {200: _json(messages.Closed)},
        (*_GUARDED, "not-found"),
        role=Role.ADMIN,
    ),
    Door(
        "get",
        "/v1/collections/{name}/estimate",
        "The answers of a local collection, debiased, each figure with its interval; series side by"
        " side. Days are widened to whole periods. As a table, a row a figure.",
        {200: _table(EstimateResult)},
        (*_ASKED, "not-found"),
        role=Role.ANALYST,
        query=EstimateQuery,
    ),
    Door(
        "get",
        "/v1/collections/{name}/compare",
        "Two sides that share no answers: segments, ranges of days or series. Each difference with"
        " its interval, p in the family of all values, and what would have been found.",
        {200: _table(CompareResult)},
        (*_ASKED, "not-found"),
        role=Role.ANALYST,
        query=CompareQuery,
    ),
    Door(
        "get",
        "/v1/collections/{name}/budget",
        "What a person reveals of an event, a day and a life: promised, counted, and what it means."
        " How many pseudonyms spent how much, an admin sees.",
        {200: _json(BudgetResult)},
        (*_ASKED, "not-found"),
        role=Role.ANALYST,
        query=BudgetQuery,
    ),
    Door(
        "get",
        "/v1/collections/{name}/contrast",
        "The same question locally, behind a shuffler, and by a trusted curator: errors, guarantees"
        " and how many devices each takes.",
        {200: _json(ContrastResult)},
        (*_ASKED, "not-found"),
        role=Role.ANALYST,
        query=ContrastQuery,
    ),
    Door(
        "get",
        "/v1/plan",
        "Any of devices, epsilon and error from the other two; with what it means, and the"
        " definition to paste.",
        {200: _json(PlanResult)},
        _ASKED,
        role=Role.ANALYST,
        query=PlanQuery,
    ),
    Door(
        "post",
        "/v1/collections/{name}/releases",
        "Ask the trusted curator of a central collection. The answer is charged to each period's"
        " budget and the same for ever after, free; a dry run is charged nothing and reads no"
        " answers. Refused, the problem says what is requested, spent and remaining.",
        {200: _json(messages.ReleaseAnswer)},
        (
            *_GUARDED,
            *_READ,
            "not-found",
            "still-filling",
            "insufficient-budget",
            "releases-locked",
            "releases-waiting",
        ),
        _json(messages.WantedRelease),
        Role.ANALYST,
    ),
    Door(
        "get",
        "/v1/collections/{name}/releases",
        "All releases of a central collection, and what each period's budget has left.",
        {200: _json(messages.CollectionReleases)},
        (*_GUARDED, "not-found", "bad-field"),
        role=Role.ANALYST,
    ),
    Door(
        "get",
        "/v1/keys",
        "All keys that were ever made; never a key itself.",
        {200: _json(messages.KeyLines)},
        _GUARDED,
        role=Role.ADMIN,
    ),
    Door(
        "post",
        "/v1/keys",
        "Make a key. It is shown in this answer and never again.",
        {201: _json(messages.NewKey)},
        (*_GUARDED, *_READ),
        _json(messages.WantedKey),
        Role.ADMIN,
    ),
    Door(
        "delete",
        "/v1/keys/{identity}",
        "Take a key back: within a second no worker takes it.",
        {200: _json(messages.KeyLine)},
        (*_GUARDED, "not-found"),
        role=Role.ADMIN,
    ),
    Door(
        "get",
        "/v1/audit",
        "What operators did, the oldest first.",
        {200: _json(messages.Acts)},
        _GUARDED,
        role=Role.ADMIN,
    ),
    Door("get", "/healthz", "The process answers.", {200: _json(messages.Alive)}),
    Door(
        "get",
        "/readyz",
        "Whether reports can be taken and kept: the store answers within two seconds and is not"
        " fenced.",
        {200: _json(messages.Readiness), 503: _json(messages.Readiness)},
    ),
    Door(
        "get",
        "/metrics",
        "The figures of the service, for Prometheus, summed over all workers.",
        {200: {METRICS_TYPE: None}},
        _GUARDED,
        role=Role.ANALYST,
    ),
    Door("get", "/openapi.json", "This document.", {200: {JSON_TYPE: None}}),
    Door("get", "/docs", "This document, to be read.", {200: {HTML_TYPE: None}}),
)


def document(version: str) -> dict[str, Any]:
    """Return the document of this version of the aggregator."""
    kinds = sorted(_kinds(), key=lambda kind: kind.__name__)
    _, schemas = msgspec.json.schema_components(
        kinds, schema_hook=schema_of, ref_template=PREFIX + "{name}"
    )
    paths: dict[str, Any] = {}
    for door in DOORS:
        paths.setdefault(door.path, {})[door.method] = _operation(door)
    return {
        "openapi": VERSION,
        "info": {
            "title": "veilcount",
            "version": version,
            "description": "Counts randomized answers. Errors are problem documents (RFC 9457).",
        },
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
    }


def _kinds() -> set[type]:
    bodies = [body for door in DOORS for body in (door.takes or {}, *door.answers.values())]
    named = {kind for body in bodies for kind in body.values() if kind is not None}
    return named | {messages.ProblemDocument}


def _operation(door: Door) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": _name(door),
        "description": door.says,
        "parameters": [
            *(_parameter(name) for name in _parameters(door.path)),
            *(map(_query_parameter, params(door.query)) if door.query else ()),
        ],
        "responses": dict(_responses(door)),
    }
    if door.takes:
        operation["requestBody"] = {"required": True, "content": _content(door.takes)}
    if door.role:
        # A device needs none as long as no device key was made.
        free: list[Schema] = [{}] if door.role is Role.DEVICE else []
        operation["security"] = [{"key": []}, *free]
        operation["x-role"] = door.role.value
    return operation


def _name(door: Door) -> str:
    words = [part.strip("{}").removesuffix(".json") for part in door.path.split("/") if part]
    return "_".join([door.method, *(word for word in words if word != "v1")])


def _parameters(path: str) -> Iterator[str]:
    yield from (part.strip("{}") for part in path.split("/") if part.startswith("{"))


def _parameter(name: str) -> dict[str, Any]:
    schema = {"type": "string", "minLength": 1}
    return {"name": name, "in": "path", "required": True, "schema": schema}


def _query_parameter(param: Param) -> dict[str, Any]:
    return {
        "name": param.name,
        "in": "query",
        "required": param.required,
        "description": param.description,
        "schema": param.schema,
    }


def _responses(door: Door) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the answers and, by status, the problems that share it."""
    for status, bodies in door.answers.items():
        yield str(status), {"description": "Done." if status < 300 else "Not so.", **_of(bodies)}  # noqa: PLR2004 - HTTP's own border
    problems: dict[int, list[str]] = {}
    for name in dict.fromkeys(door.refuses):
        problems.setdefault(KINDS[name].status.value, []).append(name)
    for status, names in sorted(problems.items()):
        says = "; ".join(f"{KINDS[name].title} ({name})" for name in names)
        answer = {"description": f"{says}.", **_of({PROBLEM_TYPE: messages.ProblemDocument})}
        yield str(status), answer


def _of(bodies: Bodies) -> dict[str, Any]:
    return {"content": _content(bodies)} if bodies else {}


def _content(bodies: Bodies) -> dict[str, Any]:
    return {media: {"schema": _schema(media, kind)} for media, kind in bodies.items()}


def _schema(media: str, kind: type | None) -> Schema:
    if kind is not None:
        return {"$ref": f"{PREFIX}{kind.__name__}"}
    if media == JSON_TYPE:
        return {"type": "object"}
    return {"type": "string"}
