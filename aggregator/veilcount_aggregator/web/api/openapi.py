"""The OpenAPI 3.1 document, generated from the declared endpoints and their types."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from veilcount_analysis.query_params import Param, params
from veilcount_shared.problem_details import PROBLEM_TYPE
from veilcount_shared.wire import JSON_TYPE

from ...json_results import schema_of
from ...records.api_keys import Role
from .endpoint import Endpoint
from .problems import PROBLEM_KINDS
from .schemas import ProblemDocument

VERSION = "3.1.0"
PREFIX = "#/components/schemas/"

Schema = dict[str, Any]
Bodies = Mapping[str, type | None]  # by media type; None: bytes that are no JSON


def document(version: str, endpoints: Sequence[Endpoint]) -> dict[str, Any]:
    """Return the document of these endpoints, for this version of the aggregator."""
    kinds = sorted(_types(endpoints), key=lambda kind: kind.__name__)
    _, schemas = msgspec.json.schema_components(
        kinds, schema_hook=schema_of, ref_template=PREFIX + "{name}"
    )
    paths: dict[str, Any] = {}
    for endpoint in endpoints:
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = _operation(endpoint)
    return {
        "openapi": VERSION,
        "info": {
            "title": "veilcount",
            "version": version,
            "description": "Local differential privacy statistics: reports, estimates, releases."
            " Errors are problem documents (RFC 9457).",
        },
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
    }


def _types(endpoints: Sequence[Endpoint]) -> set[type]:
    bodies = [
        body for endpoint in endpoints for body in (endpoint.request_types, endpoint.response_types)
    ]
    return {kind for body in bodies for kind in body.values() if kind} | {ProblemDocument}


def _operation(endpoint: Endpoint) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": _name(endpoint),
        "description": endpoint.description,
        "parameters": [
            *map(_path_parameter, _names(endpoint.path)),
            *map(_query_parameter, params(endpoint.query) if endpoint.query else ()),
        ],
        "responses": dict(_responses(endpoint)),
    }
    if endpoint.request_types:
        operation["requestBody"] = {"required": True, "content": _content(endpoint.request_types)}
    if endpoint.role:
        # A device needs no key until a first device key is created.
        keyless: list[Schema] = [{}] if endpoint.role is Role.DEVICE else []
        operation["security"] = [{"key": []}, *keyless]
        operation["x-role"] = endpoint.role.value
    return operation


def _name(endpoint: Endpoint) -> str:
    parts = [part.strip("{}").removesuffix(".json") for part in endpoint.path.split("/")]
    return "_".join([endpoint.method.lower(), *(part for part in parts if part not in {"", "v1"})])


def _names(path: str) -> Iterator[str]:
    yield from (part.strip("{}") for part in path.split("/") if part.startswith("{"))


def _path_parameter(name: str) -> dict[str, Any]:
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


def _responses(endpoint: Endpoint) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the responses and, by status, the problems that share it."""
    for status in endpoint.statuses:
        says = "Success." if status < 300 else "Not ready."  # noqa: PLR2004 - HTTP's own border
        yield str(status), _described(says, endpoint.response_types)
    problems: dict[int, list[str]] = {}
    for name in endpoint.problems:
        problems.setdefault(PROBLEM_KINDS[name].status.value, []).append(name)
    for status, names in sorted(problems.items()):
        says = "; ".join(f"{PROBLEM_KINDS[name].title} ({name})" for name in names)
        yield str(status), _described(f"{says}.", {PROBLEM_TYPE: ProblemDocument})


def _described(says: str, bodies: Bodies) -> dict[str, Any]:
    return {"description": says, **({"content": _content(bodies)} if bodies else {})}


def _content(bodies: Bodies) -> dict[str, Any]:
    return {media: {"schema": _schema(media, kind)} for media, kind in bodies.items()}


def _schema(media: str, kind: type | None) -> Schema:
    if kind is not None:
        return {"$ref": f"{PREFIX}{kind.__name__}"}
    if media == JSON_TYPE:
        return {"type": "object"}
    return {"type": "string"}
