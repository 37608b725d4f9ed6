"""The HTTP API's extension point: one declaration for each endpoint.

    @endpoint("GET", "/v1/plan", Role.ANALYST, takes=PlanQuery, returns=PlanResult, computes=True)
    def show_plan(api: Api, query: PlanQuery) -> PlanResult:
        # the docstring becomes the description in the OpenAPI document

Routing, authorization, parsing, responses and the OpenAPI path item come from it. `takes` is a
`QueryParams` (passed as `query`) or any other Struct (a JSON body, passed as `body`). A view
returns what `returns` names, that and a status, or a Flask response.

Problems that follow from the declaration (a key, a body, parameters, a name in the path) are
documented without being named; `problems` names the others.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from flask import Blueprint, Response, g, request
from msgspec import Struct

from veilcount_analysis.errors import QueryError
from veilcount_analysis.query_params import QueryParams
from veilcount_shared.wire import JSON_TYPE

from ...intake.group_intake import GroupIntake
from ...intake.shuffled_batches.opening import OpenPart, open_part
from ...queries import CollectionNotFound
from ...queries.export import Stream
from ...records.api_keys import ApiKey, Role
from ...service import Aggregator
from ...store.store_probe import StoreProbe
from .auth import Authenticator
from .collection_metrics import FakeReportFlags
from .computation_gate import ComputationGate, Computations
from .json_io import empty_response, json_response, negotiated, parse_body
from .problems import refusal

View = Callable[..., Any]

EVERY_APP = "this covers all apps: use an analyst's key that is not restricted to some"
_DEVICE = ("no-key", "wrong-role", "too-many", "failed", "unavailable")
_GUARDED = (*_DEVICE, "busy")
_BODY = ("bad-field", "bad-request", "unsupported", "too-large")
_QUERY = ("bad-field", "not-acceptable")


@dataclass(frozen=True, slots=True)
class Api:
    """What the views of one worker share."""

    aggregator: Aggregator
    intake: GroupIntake
    authenticator: Authenticator
    gate: Computations
    probe: StoreProbe
    analysis_is_up: Callable[[], bool] | None = None
    fake_report_flags: FakeReportFlags = field(default_factory=FakeReportFlags)
    open_part: OpenPart = open_part
    metrics_gate: ComputationGate = field(default_factory=partial(ComputationGate, places=1))

    @property
    def key(self) -> ApiKey:
        """The key of the request that is served."""
        key: ApiKey = g.key
        return key


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """One method of one path; `view` is None where it is served in front of Flask."""

    method: str
    path: str
    group: str
    description: str
    role: Role | None = None
    view: View | None = None
    takes: type[Struct] | None = None
    other_bodies: Mapping[str, Callable[[bytes], object] | None] = field(default_factory=dict)
    returns: type | str | None = None
    tables: Mapping[str, Stream] = field(default_factory=dict)
    statuses: tuple[int, ...] = (200,)
    extra_problems: tuple[str, ...] = ()
    computes: bool = False
    stale_keys: bool = False
    every_app: bool = False  # shows what no restricted key may read

    @property
    def query(self) -> type[QueryParams] | None:
        """The parameters of its query string."""
        return self.takes if self.takes and issubclass(self.takes, QueryParams) else None

    @property
    def request_types(self) -> dict[str, type | None]:
        """Types of the body by media type; None: no JSON."""
        other_types = dict.fromkeys(self.other_bodies)
        if self.takes is None or self.query:
            return other_types
        return other_types | {JSON_TYPE: self.takes}

    @property
    def response_types(self) -> dict[str, type | None]:
        """Types of the response by media type; None: no type that is described."""
        if isinstance(self.returns, str):
            return {self.returns: None}
        return {JSON_TYPE: self.returns, **dict.fromkeys(self.tables)} if self.returns else {}

    @property
    def problems(self) -> tuple[str, ...]:
        """All problems that it may answer with."""
        role = () if self.role is None else _DEVICE if self.role is Role.DEVICE else _GUARDED
        body = _BODY if self.request_types else ()
        query = _QUERY if self.query else ()
        path = ("not-found",) if "{" in self.path else ()
        return tuple(dict.fromkeys((*role, *body, *query, *path, *self.extra_problems)))

    def serve(self, api: Api, **path: str) -> Response:
        """Answer a request."""
        self._authorize(api.authenticator)
        if self.role not in {None, Role.DEVICE}:  # another process may have changed definitions
            api.aggregator.catalog_cache.refresh_if_possible()
        if self.role is Role.ANALYST:
            api = replace(api, aggregator=api.aggregator.of_apps(api.key.apps))
        handle = api.gate.bounded(self._handle) if self.computes else self._handle
        return handle(api, **path)

    def _authorize(self, authenticator: Authenticator) -> None:
        header = request.headers.get("Authorization", "")
        if self.role is Role.DEVICE:
            authenticator.admit_device(header)
        elif self.stale_keys:
            g.key = authenticator.admit_with_stale_keys(header)
        elif self.role is not None:
            g.key = authenticator.admit(header, self.role)
        if self.every_app and g.key.apps:
            raise refusal("wrong-role", EVERY_APP)

    def _handle(self, api: Api, **path: str) -> Response:
        assert self.view is not None  # noqa: S101 - only such are routed
        try:
            result = self.view(api, **path, **self._input())
        except CollectionNotFound as error:
            raise refusal("not-found", f"{error} (GET /v1/collections lists all)") from error
        if isinstance(result, Response):
            return result
        if self.query:
            return negotiated(result, self.tables)
        value, status = result if isinstance(result, tuple) else (result, self.statuses[0])
        return empty_response(status) if value is None else json_response(value, status)

    def _input(self) -> dict[str, object]:
        if self.query:
            return {"query": self.query.parse(_stated_arguments())}
        read = self.other_bodies.get(request.mimetype)
        if read:
            return {"body": read(request.get_data())}
        if self.takes:
            return {"body": parse_body(self.takes)}
        if self.other_bodies:
            raise refusal("unsupported", f"give {', '.join(self.other_bodies)}", "Content-Type")
        return {}


def _stated_arguments() -> dict[str, list[str]]:
    """Return the query string, none of it empty: a variable left unset must not mean the default.

    A page's form sends the fields that were left empty, so pages read these as absent.
    """
    arguments = dict(request.args.lists())
    for name, words in arguments.items():
        if "" in words:
            raise QueryError(name, "", "give a value, or leave the parameter out")
    return arguments


#: every endpoint, in the order of their declarations
ENDPOINTS: list[Endpoint] = []


def endpoint(
    method: str,
    path: str,
    role: Role | None = None,
    *,
    problems: tuple[str, ...] = (),
    **declared: Any,
) -> Callable[[View], View]:
    """Declare a view function as an endpoint; see `Endpoint` for what may be declared."""

    def declare(view: View) -> View:
        ENDPOINTS.append(
            Endpoint(
                method=method,
                path=path,
                role=role,
                group=view.__module__.rpartition(".")[2],
                description=" ".join((inspect.getdoc(view) or "").split()),
                view=view,
                extra_problems=problems,
                **declared,
            )
        )
        return view

    return declare


def blueprints(api: Api) -> Iterator[Blueprint]:
    """Yield the endpoints as blueprints, one for each module that declares some."""
    groups: dict[str, Blueprint] = {}
    for declared in ENDPOINTS:
        if declared.view is None:
            continue
        blueprint = groups.setdefault(
            declared.group, Blueprint(declared.group, __package__, template_folder="templates")
        )
        rule = declared.path.replace("{", "<").replace("}", ">")
        serve = partial(declared.serve, api)
        blueprint.add_url_rule(rule, declared.view.__name__, serve, methods=[declared.method])
    yield from groups.values()
